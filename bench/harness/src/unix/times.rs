//! Table 4: real, user and system time of each line, native and under the server.

use crate::statistics::Spread;
use serde_json::{Value, json};

/// The lines of the paper's table.
const IN_PAPER: [&str; 8] = ["pipes", "scall", "fcall", "fcalla", "sieve", "dwrite", "dread", "sh"];
const NOTE: &str = "Nanoseconds of one repetition. User and system time are those of the program \
    and of its children, as getrusage reports them to it; the paper does not say whether its \
    columns contain the server's time. `server` is the processor time of all other processes of \
    the instance (server, warden, the command): that of the whole tree, less the program's own, \
    less that of an instance whose program does nothing. The latter varies by milliseconds a run, \
    and on a busy machine by up to 0.2 s, so a short line's figure can be only that variation. \
    The kernel splits a process's time into user and system time by samples, at each tick of its \
    clock: the sum is exact, the split is not for short runs.";

/// Times of one repetition, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) real_ns: f64,
    pub(super) user_ns: f64,
    pub(super) system_ns: f64,
    /// Processor time of the instance beside the program. Natively there is none.
    pub(super) server_ns: Option<f64>,
}

impl Times {
    /// Reads what the program prints: real, user and system time.
    pub(super) fn from_output(output: &str) -> Option<Self> {
        let values: Result<Vec<f64>, _> = output.split_whitespace().map(str::parse).collect();
        let &[real_ns, user_ns, system_ns] = &values.ok()?[..] else { return None };
        Some(Self { real_ns, user_ns, system_ns, server_ns: None })
    }
}

/// The times of a line in all rounds: native, inside.
pub(super) type Rounds = Vec<[Times; 2]>;

fn side(rounds: &[[Times; 2]], side: usize) -> Value {
    let spread = |field: fn(&Times) -> Option<f64>| {
        let values: Vec<_> = rounds.iter().filter_map(|pair| field(&pair[side])).collect();
        Spread::of(&values).map(Spread::to_json)
    };
    json!({ "real": spread(|times| Some(times.real_ns)),
        "user": spread(|times| Some(times.user_ns)),
        "sys": spread(|times| Some(times.system_ns)),
        "server": spread(|times| times.server_ns) })
}

/// The table: by line, its description and its times.
pub(super) fn table_4<'a>(lines: impl Iterator<Item = (&'a str, &'a str, &'a Rounds)>) -> Value {
    let rows: Vec<_> = lines
        .map(|(name, what, rounds)| {
            json!({ "name": name, "what": what, "in_paper": IN_PAPER.contains(&name),
                "native": side(rounds, 0), "inside": side(rounds, 1) })
        })
        .collect();
    json!({ "note": NOTE, "unit": "ns", "rows": rows })
}

/// The same as a table, medians.
pub(super) fn markdown(table: &Value) -> String {
    let mut text = format!(
        "\n## Table 4: real, user and system time\n\n{NOTE}\n\n| | native real | user | sys | inside real | user | sys | server |\n|---|---|---|---|---|---|---|---|\n"
    );
    for row in table["rows"].as_array().into_iter().flatten() {
        text += &format!("| {} |", row["name"].as_str().unwrap_or_default());
        for (side, keys) in [
            ("native", &["real", "user", "sys"][..]),
            ("inside", &["real", "user", "sys", "server"]),
        ] {
            for key in keys {
                let median = row[side][key]["median"].as_f64();
                text += &median.map_or_else(|| " |".into(), |median| format!(" {median:.1} |"));
            }
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Times, table_4};

    #[test]
    fn the_three_times_of_a_line_are_read() {
        let times = Times::from_output("101.5 60.25 40.125\n").unwrap();
        assert_eq!([times.real_ns, times.user_ns, times.system_ns], [101.5, 60.25, 40.125]);
        assert!(Times::from_output("101.5\n").is_none());
    }

    #[test]
    fn native_and_inside_are_apart_and_only_inside_has_a_server() {
        let times = |real_ns, server_ns| Times { real_ns, user_ns: 1.0, system_ns: 2.0, server_ns };
        let rounds = vec![[times(10.0, None), times(30.0, Some(5.0))]; 3];
        let table = table_4([("scall", "getpid", &rounds), ("mix", "more", &rounds)].into_iter());
        let row = &table["rows"][0];
        assert_eq!(
            [&row["native"]["real"]["median"], &row["inside"]["real"]["median"]],
            [10.0, 30.0]
        );
        assert_eq!(row["inside"]["server"]["most"], 5.0);
        assert!(row["native"]["server"].is_null());
        assert_eq!([&row["in_paper"], &table["rows"][1]["in_paper"]], [true, false]);
    }
}
