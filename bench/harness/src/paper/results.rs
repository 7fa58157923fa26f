//! The measured values of all parts, as their JSON has them.

use crate::statistics::Spread;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the parts returned, by name, or why they failed.
#[derive(Debug, Default)]
pub struct Results {
    parts: BTreeMap<String, Result<Value, String>>,
    /// Reasons of the parts that can be absent.
    absent: BTreeMap<String, String>,
}

impl Results {
    /// Adds the JSON of a part, or the reason why it failed.
    pub fn insert(&mut self, part: &str, result: Result<Value, String>) {
        self.parts.insert(part.to_owned(), result);
    }

    /// The JSON of a part.
    ///
    /// # Errors
    /// It failed, or was not run.
    pub fn part(&self, name: &str) -> Result<&Value, String> {
        match (self.parts.get(name), self.absent.get(name)) {
            (Some(Ok(value)), _) => Ok(value),
            (Some(Err(why)), _) => Err(format!("the part `{name}` failed: {why}")),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Err(format!("the part `{name}` was not run")),
        }
    }

    /// Adds a part that can be absent, which is no failure.
    pub fn add_optional(&mut self, part: &str, result: Result<Value, String>) {
        match result {
            Ok(value) => self.insert(part, Ok(value)),
            Err(why) => drop(self.absent.insert(part.to_owned(), why)),
        }
    }

    /// The machine of the first part that names it.
    pub fn host(&self) -> Option<String> {
        let mut parts = self.parts.values().flatten();
        parts.find_map(|part| Some(part["host"].as_str()?.to_owned()))
    }

    /// An error that names the parts that failed.
    ///
    /// # Errors
    /// One failed.
    pub fn failures(&self) -> Result<(), String> {
        let failed: Vec<_> = self
            .parts
            .iter()
            .filter(|(_, part)| part.is_err())
            .map(|(name, _)| name.as_str())
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    /// The values of a thread workload on a system, a value for each round.
    ///
    /// # Errors
    /// It did not run, and why.
    pub fn thread_values(
        &self,
        bench: &str,
        arguments: &[u64],
        system: &str,
    ) -> Result<Vec<f64>, String> {
        let work = list(&self.part("threads")?["workloads"]).iter().find(|work| {
            let given: Vec<u64> = list(&work["args"]).iter().filter_map(Value::as_u64).collect();
            work["bench"] == bench && (arguments.is_empty() || given == arguments)
        });
        let work = work.ok_or_else(|| format!("the workload `{bench}` was not run"))?;
        let cell = &work["systems"][system];
        match numbers(&cell["values"]) {
            values if !values.is_empty() => Ok(values),
            _ => {
                let why = cell["unsupported"].as_str().or(cell["failed"].as_str());
                let why = why.unwrap_or("the system could not be built");
                Err(format!("`{bench}` on {system}: {why}"))
            }
        }
    }
}

/// The elements of an array; none of another value.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The numbers of an array.
pub fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().filter_map(Value::as_f64).collect()
}

/// A spread from its `median`, `least` and `most`.
pub fn spread(value: &Value) -> Option<Spread> {
    let number = |key: &str| value[key].as_f64();
    Some(Spread { median: number("median")?, least: number("least")?, most: number("most")? })
}

/// The elements of `lines` in which `key` is `value`.
pub fn with<'a>(
    lines: &'a Value,
    key: &'a str,
    value: &'a str,
) -> impl Iterator<Item = &'a Value> + 'a {
    list(lines).iter().filter(move |line| line[key] == value)
}

/// The first element of `lines` in which `key` is `value`.
pub fn first<'a>(lines: &'a Value, key: &str, value: &str) -> Option<&'a Value> {
    list(lines).iter().find(|line| line[key] == value)
}

/// The spread of the ratios of two series, round by round.
///
/// # Errors
/// A series is empty.
pub fn ratio(upper: &[f64], lower: &[f64]) -> Result<Spread, String> {
    let ratios: Vec<f64> = upper.iter().zip(lower).map(|(upper, lower)| upper / lower).collect();
    Spread::of(&ratios).ok_or_else(|| "no round was run".into())
}

#[cfg(test)]
mod tests {
    use super::Results;
    use serde_json::json;

    #[test]
    fn the_reason_for_a_missing_value_is_told() {
        let mut results = Results::default();
        assert!(results.thread_values("yield", &[], "go").unwrap_err().contains("not run"));
        results.insert("threads", Err("no compiler".into()));
        assert!(results.thread_values("yield", &[], "go").unwrap_err().contains("no compiler"));
        let systems =
            json!({ "go": { "unsupported": "has none" }, "kyocho": { "values": [1, 2] } });
        let work = json!({ "bench": "yield", "args": [7], "systems": systems });
        results.insert("threads", Ok(json!({ "workloads": [work] })));
        assert!(results.thread_values("yield", &[], "go").unwrap_err().contains("has none"));
        assert_eq!(results.thread_values("yield", &[7], "kyocho").unwrap(), [1.0, 2.0]);
        assert!(results.thread_values("yield", &[8], "kyocho").is_err());
    }
}
