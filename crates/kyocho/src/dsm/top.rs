//! `kyocho dsm top`: what the nodes on this host count, live.
//!
//! On a terminal the table is drawn again each second until a key of the terminal ends the command; elsewhere it is printed once.

use core::fmt::Write;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;

use kyocho_dsm::counters::{self, Counted};
use kyocho_sys::prim::clock::Instant;
use kyocho_sys::prim::thread;

use crate::dsm::TopArguments;
use crate::terminal::{complain, line};

/// Between two looks.
const REFRESH: Duration = Duration::from_secs(1);
/// To the upper left corner, and nothing below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// What came of a look, and when it was.
struct Look {
    nodes: Vec<Counted>,
    at: Instant,
}

pub(crate) fn command(arguments: &TopArguments) -> ExitCode {
    let live = !arguments.json && !arguments.once && std::io::stdout().is_terminal();
    let mut before: Option<Look> = None;
    loop {
        let nodes = match counters::of_this_host() {
            Ok(nodes) => nodes,
            Err(why) => {
                complain(&format!("kyocho dsm top: {why}"));
                return ExitCode::FAILURE;
            }
        };
        if arguments.json {
            line(&serde_json::json!(nodes).to_string());
            return ExitCode::SUCCESS;
        }
        let now = Look { nodes, at: Instant::now() };
        let table = table(&now, before.as_ref());
        if !live {
            line(table.trim_end());
            return ExitCode::SUCCESS;
        }
        line(&format!("{CLEAR}{table}"));
        before = Some(now);
        thread::park_timeout(REFRESH);
    }
}

/// The columns: a title, a figure, and whether it is a time.
const COLUMNS: [(&str, &str, Unit); 10] = [
    ("pages", "pages", Unit::Count),
    ("faults", "read_faults", Unit::Count),
    ("traps", "write_faults", Unit::Count),
    ("diffs", "pages_compared", Unit::Count),
    ("words", "words_written", Unit::Count),
    ("sent", "messages_sent", Unit::Count),
    ("bytes", "bytes_sent", Unit::Count),
    ("locks", "locks", Unit::Count),
    ("lock wait", "locking_ns", Unit::Time),
    ("barrier", "at_barriers_ns", Unit::Time),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Count,
    Time,
}

/// All nodes, with what their figures are, and beside a look before, what was added each second.
fn table(now: &Look, before: Option<&Look>) -> String {
    if now.nodes.is_empty() {
        return "no nodes run here; start some by `kyocho dsm run -n N PROGRAM`\n".to_owned();
    }
    let seconds = before.map_or(0.0, |before| (now.at - before.at).as_secs_f64());
    let earlier: BTreeMap<_, _> = before
        .into_iter()
        .flat_map(|before| &before.nodes)
        .map(|node| ((&node.run, node.rank), node))
        .collect();
    let mut text = format!("{:<20} {:>5}", "run", "node");
    COLUMNS.iter().for_each(|(title, ..)| append(&mut text, &format!(" {title:>10}")));
    append(&mut text, "  waits for\n");
    for node in &now.nodes {
        append(&mut text, &format!("{:<20} {:>5}", node.run, node.rank));
        let then = earlier.get(&(&node.run, node.rank));
        for (_, name, unit) in COLUMNS {
            let added = then.map(|then| node.figure(name).saturating_sub(then.figure(name)));
            append(
                &mut text,
                &format!(" {:>10}", cell(node.figure(name), added, seconds, (name, unit))),
            );
        }
        append(&mut text, &format!("  {}\n", node.waits_for.as_deref().unwrap_or("")));
    }
    let unit = if before.is_some() { "a second" } else { "so far" };
    append(
        &mut text,
        &format!(
            "counts {unit}, of pages those usable now; waits as a share of time, or in seconds so far\n"
        ),
    );
    text
}

fn append(text: &mut String, more: &str) {
    // A string takes everything.
    let _taken = text.write_str(more);
}

/// A figure so far, or what was added to it each second; of times the share.
fn cell(figure: u64, added: Option<u64>, seconds: f64, (name, unit): (&str, Unit)) -> String {
    match (added, unit) {
        (Some(added), Unit::Time) => format!("{:.0} %", added as f64 / seconds / 1e7),
        (Some(added), Unit::Count) if name != "pages" => short(added as f64 / seconds),
        (None, Unit::Time) => format!("{:.2} s", figure as f64 / 1e9),
        (_, Unit::Count) => short(figure as f64),
    }
}

/// A number in few letters.
fn short(number: f64) -> String {
    let (scale, letter) = match number {
        1e10.. => (1e9, "G"),
        1e7.. => (1e6, "M"),
        1e5.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{:.0}{letter}", number / scale)
}

#[cfg(test)]
mod tests {
    use super::{Look, short, table};
    use core::time::Duration;
    use kyocho_dsm::counters::Counted;
    use kyocho_sys::prim::clock::Instant;
    use std::collections::BTreeMap;

    fn look(at: Instant, bytes: u64, locking_ns: u64) -> Look {
        let figures = [("pages", 9), ("bytes_sent", bytes), ("locking_ns", locking_ns)];
        let figures: BTreeMap<_, _> =
            figures.into_iter().map(|(name, figure)| (name.to_owned(), figure)).collect();
        let (run, waits_for) = ("here-1".to_owned(), Some("lock 3".to_owned()));
        Look { nodes: vec![Counted { run, rank: 2, nodes: 3, process: 1, waits_for, figures }], at }
    }

    #[test]
    fn the_first_look_tells_what_is_and_the_next_what_was_added() {
        let begun = Instant::now();
        let first = look(begun, 500, 1_500_000_000);
        let text = table(&first, None);
        assert!(text.contains("so far"));
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[..3], ["here-1", "2", "9"]);
        assert_eq!((row[8], &row[10..12]), ("500", &["1.50", "s"][..]));
        assert!(text.contains("lock 3"));
        let second = look(begun + Duration::from_secs(2), 2500, 2_500_000_000);
        let text = table(&second, Some(&first));
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!((row[2], row[8], &row[10..12]), ("9", "1000", &["50", "%"][..]));
    }

    #[test]
    fn great_numbers_are_short() {
        assert_eq!(
            [0.0, 99_999.0, 123_456.0, 5e7, 5e10].map(short),
            ["0", "99999", "123k", "50M", "50G"]
        );
    }

    #[test]
    fn nothing_says_what_to_do() {
        let none = Look { nodes: Vec::new(), at: Instant::now() };
        assert!(table(&none, None).contains("kyocho dsm run"));
    }
}
