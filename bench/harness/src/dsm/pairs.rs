//! Figure 3 and table 3: messages and bytes between each pair of eight nodes, by `bench/dsm pairs`.

use crate::statistics::Spread;
use serde_json::{Map, Value, json};

/// The names that the paper gives to the nodes.
const NODES: [&str; 8] = ["pc9", "pc10", "pc11", "pc12", "pc13", "pc14", "pc15", "pc16"];
/// The placements of page managers, as `bench/dsm` and the report name them.
const PLACEMENTS: [(&str, &str); 2] =
    [("one", "one page manager"), ("spread", "page managers where pages are used")];
const ASSUMPTION: &str = "The paper does not say how often each process takes its lock. 100 times \
    is inferred here, as the number that both of its totals fit. If TreadMarks sends 4 messages an \
    acquire (request, lock, request for differences, differences), these are 3,200 of its 3,397. If \
    SMS sends 5 for an acquire by the process that does not manage the lock (request, lock, release, \
    and acknowledgements of the last two), these are 2,000 of its 2,090. Everything is counted from joining to the last barrier. Each counter \
    lies on a page of its own. Bytes are those of messages, without the headers of TCP.";

/// What each node sent to each node: rows are senders.
type Matrix = Vec<Vec<f64>>;

/// The matrices of all rounds.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Lines that the program printed.
    lines: Vec<Value>,
}

impl Pairs {
    /// Adds the matrices that a run printed.
    ///
    /// # Errors
    /// There is not one for each placement, or one is not for eight nodes.
    pub(super) fn add(&mut self, output: &str) -> Result<(), String> {
        let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<_> = lines.filter(|line| line["matrix"].is_string()).collect();
        let is_complete = |line: &Value, what| {
            let matrix = matrix(line, what);
            matrix.is_some_and(|rows| {
                rows.len() == NODES.len() && rows.iter().all(|row| row.len() == NODES.len())
            })
        };
        let are_all = PLACEMENTS.iter().all(|(name, _)| {
            let mut own = lines.iter().filter(|line| line["matrix"] == *name);
            own.any(|line| is_complete(line, "messages") && is_complete(line, "bytes"))
        });
        self.lines.extend(lines);
        if are_all { Ok(()) } else { Err("dsm printed no matrix of eight nodes".into()) }
    }

    /// All rounds of a placement.
    fn of(&self, placement: &str, what: &str) -> Vec<Matrix> {
        let own = self.lines.iter().filter(|line| line["matrix"] == placement);
        own.filter_map(|line| matrix(line, what)).collect()
    }

    /// The medians of all pairs.
    pub(super) fn figure_3(&self) -> Value {
        let medians = |placement, what| {
            let rounds = self.of(placement, what);
            let cell = |from: usize, to: usize| {
                let values: Vec<_> = rounds.iter().map(|matrix| matrix[from][to]).collect();
                Spread::of(&values).map(|spread| spread.median)
            };
            let row = |from| (0..NODES.len()).map(|to| cell(from, to)).collect::<Vec<_>>();
            (0..NODES.len()).map(row).collect::<Vec<_>>()
        };
        let placements: Map<String, Value> = PLACEMENTS
            .iter()
            .map(|(name, _)| {
                let [messages, bytes] = ["messages", "bytes"].map(|what| medians(name, what));
                ((*name).to_owned(), json!({ "messages": messages, "bytes": bytes }))
            })
            .collect();
        json!({ "nodes": NODES, "turns": self.turns(), "assumption": ASSUMPTION,
            "rows": "sender", "columns": "receiver", "matrices": placements })
    }

    /// The totals.
    pub(super) fn table_3(&self) -> Value {
        let totals = |placement, what| {
            let sum = |matrix: Matrix| matrix.iter().flatten().sum::<f64>();
            let sums: Vec<_> = self.of(placement, what).into_iter().map(sum).collect();
            Spread::of(&sums).map(Spread::to_json)
        };
        let placements: Map<String, Value> = PLACEMENTS
            .iter()
            .map(|(name, _)| {
                let [messages, bytes] = ["messages", "bytes"].map(|what| totals(name, what));
                ((*name).to_owned(), json!({ "messages": messages, "bytes": bytes }))
            })
            .collect();
        json!({ "turns": self.turns(), "assumption": ASSUMPTION, "totals": placements })
    }

    fn turns(&self) -> Value {
        self.lines.first().map_or(Value::Null, |line| line["turns"].clone())
    }

    /// Both as tables.
    pub(super) fn markdown(&self) -> String {
        let (figure, table) = (self.figure_3(), self.table_3());
        let mut text = format!(
            "\n## Table 3: the whole program, messages and bytes\n\n{ASSUMPTION}\n\n| | messages | bytes |\n|---|---|---|\n"
        );
        for (name, title) in PLACEMENTS {
            let median = |what| table["totals"][name][what]["median"].as_f64().unwrap_or(f64::NAN);
            text += &format!("| {title} | {:.0} | {:.0} |\n", median("messages"), median("bytes"));
        }
        for (name, title) in PLACEMENTS {
            text += &format!(
                "\n## Figure 3, {title}: messages (bytes), by sender and receiver\n\n| | {} |\n|---|{}\n",
                NODES.join(" | "),
                "---|".repeat(NODES.len())
            );
            for (from, sender) in NODES.iter().enumerate() {
                let row = |what: &str| figure["matrices"][name][what][from].clone();
                text += &format!("| {sender} |{}\n", cells(&row("messages"), &row("bytes")));
            }
        }
        text
    }
}

/// The cells of a sender's row: messages (bytes).
fn cells(messages: &Value, bytes: &Value) -> String {
    let number = |row: &Value, to: usize| row[to].as_f64().unwrap_or(f64::NAN);
    let cell = |to| format!(" {:.0} ({:.0}) |", number(messages, to), number(bytes, to));
    (0..NODES.len()).map(cell).collect()
}

fn matrix(line: &Value, what: &str) -> Option<Matrix> {
    let row = |row: &Value| row.as_array()?.iter().map(Value::as_f64).collect();
    line[what].as_array()?.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::Pairs;

    fn line(placement: &str, value: u64) -> String {
        let rows = vec![vec![value; 8]; 8];
        format!(
            "{{\"matrix\": \"{placement}\", \"turns\": 7, \"messages\": {rows:?}, \"bytes\": {rows:?}}}\n"
        )
    }

    #[test]
    fn totals_are_sums_and_cells_are_medians() {
        let mut pairs = Pairs::default();
        for value in [1, 3, 2] {
            pairs.add(&(line("one", value) + &line("spread", 0))).unwrap();
        }
        let (figure, table) = (pairs.figure_3(), pairs.table_3());
        assert_eq!(figure["matrices"]["one"]["bytes"][7][0], 2.0);
        let total = &table["totals"]["one"]["messages"];
        assert_eq!([&total["least"], &total["median"], &total["most"]], [64.0, 128.0, 192.0]);
        assert_eq!(table["turns"], 7);
    }

    #[test]
    fn a_missing_matrix_is_an_error() {
        assert!(Pairs::default().add(&line("one", 1)).is_err());
    }
}
