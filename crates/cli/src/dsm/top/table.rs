//! The table of `kyocho dsm top`: the pure part.

use kyocho_dsm::counters::NodeCounters;
use kyocho_sys::prim::clock::Instant;
use std::collections::BTreeMap;

/// The counters of the nodes of this host, and when they were read.
pub(super) struct Sample {
    pub(super) nodes: Vec<NodeCounters>,
    pub(super) at: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A number of events since the start.
    Count,
    /// A number that rises and falls.
    Level,
    /// Nanoseconds since the start.
    Time,
}

/// A column of figures.
struct Column {
    title: &'static str,
    figure: &'static str,
    unit: Unit,
    /// If lines are too short for all columns, those with the lowest rank are left out.
    rank: u8,
}

const fn column(title: &'static str, figure: &'static str, unit: Unit, rank: u8) -> Column {
    Column { title, figure, unit, rank }
}

const COLUMNS: [Column; 10] = [
    column("pages", "pages", Unit::Level, 3),
    column("faults", "read_faults", Unit::Count, 8),
    column("traps", "write_faults", Unit::Count, 2),
    column("diffs", "pages_compared", Unit::Count, 0),
    column("words", "words_written", Unit::Count, 1),
    column("sent", "messages_sent", Unit::Count, 5),
    column("bytes", "bytes_sent", Unit::Count, 7),
    column("locks", "locks", Unit::Count, 4),
    column("lock wait", "locking_ns", Unit::Time, 6),
    column("barrier", "at_barriers_ns", Unit::Time, 9),
];

/// Wide enough for most figures, so that columns keep their places.
const CELL_COLUMNS_MIN: usize = 5;

/// Explains the figures: totals, or rates between two looks.
pub(super) const fn units(is_rate: bool) -> &'static str {
    if is_rate {
        "per second; pages: usable now; waits: % of time"
    } else {
        "so far; pages: usable now; waits in seconds"
    }
}

/// A line of titles, and one line for each node with its figures. With an earlier look `before`,
/// the figures are rates since then. Columns are left out until lines have at most `columns_max`
/// columns, or only names and waits are left.
pub(super) fn lines(now: &Sample, before: Option<&Sample>, columns_max: usize) -> Vec<String> {
    if now.nodes.is_empty() {
        return vec!["no nodes run here; start some by `kyocho dsm run -n N PROGRAM`".to_owned()];
    }
    let cells = cells(now, before);
    let widths: Vec<usize> = (0..cells[0].len())
        .map(|at| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .map(|widest| widest.max(CELL_COLUMNS_MIN))
        .collect();
    let visible = visible(&widths, columns_max);
    cells.iter().map(|row| line(row, &widths, &visible)).collect()
}

/// The columns to show: run and node, some of [`COLUMNS`], and the waits.
fn visible(widths: &[usize], columns_max: usize) -> Vec<usize> {
    let mut visible: Vec<usize> = (0..widths.len()).collect();
    let width = |visible: &[usize]| visible.iter().map(|&at| widths[at] + 1).sum::<usize>();
    while width(&visible) > columns_max {
        let figures = visible.iter().filter_map(|&at| Some((COLUMNS.get(at.checked_sub(2)?)?, at)));
        let Some((_, least)) = figures.min_by_key(|(column, _)| column.rank) else { break };
        visible.retain(|&at| at != least);
    }
    visible
}

/// Formats a row: names to the left, figures to the right.
fn line(row: &[String], widths: &[usize], visible: &[usize]) -> String {
    let cell = |&at: &usize| match at {
        0 => format!("{:<width$}", row[at], width = widths[at]),
        at if at + 1 == row.len() => format!(" {}", row[at]),
        at => format!("{:>width$}", row[at], width = widths[at]),
    };
    let text = visible.iter().map(cell).collect::<Vec<_>>().join(" ");
    text.trim_end().to_owned()
}

/// The titles, then a row for each node: its run, its rank, its figures, what it waits for.
fn cells(now: &Sample, before: Option<&Sample>) -> Vec<Vec<String>> {
    let seconds = before.map_or(0.0, |before| (now.at - before.at).as_secs_f64());
    let earlier: BTreeMap<_, _> = before
        .into_iter()
        .flat_map(|before| &before.nodes)
        .map(|node| ((&node.run, node.rank), node))
        .collect();
    let titles = COLUMNS.iter().map(|column| column.title);
    let titles = ["run", "node"].into_iter().chain(titles).chain(["waits for"]);
    let mut rows = vec![titles.map(str::to_owned).collect()];
    for node in &now.nodes {
        let then = earlier.get(&(&node.run, node.rank));
        let figures = COLUMNS.iter().map(|column| {
            let figure = node.figure(column.figure);
            let added = then.map(|then| figure.saturating_sub(then.figure(column.figure)));
            cell(figure, added, seconds, column.unit)
        });
        let mut row = vec![node.run.clone(), node.rank.to_string()];
        row.extend(figures);
        row.push(node.waits_for.clone().unwrap_or_default());
        rows.push(row);
    }
    rows
}

/// A figure: the total, or the rate since the earlier look. For a time the rate is a share in
/// percent.
fn cell(figure: u64, added: Option<u64>, seconds: f64, unit: Unit) -> String {
    match (added, unit) {
        (Some(added), Unit::Time) => format!("{:.0} %", added as f64 / seconds / 1e7),
        (Some(added), Unit::Count) => short(added as f64 / seconds),
        (None, Unit::Time) => format!("{:.2} s", figure as f64 / 1e9),
        (None, Unit::Count) | (_, Unit::Level) => short(figure as f64),
    }
}

/// A number in few characters.
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
    use super::{COLUMNS, Sample, lines, short};
    use core::time::Duration;
    use kyocho_dsm::counters::NodeCounters;
    use kyocho_sys::prim::clock::Instant;

    /// Two nodes of one run.
    fn look(at: Instant, figures: &[(&str, u64)]) -> Sample {
        let figures = figures.iter().map(|&(name, figure)| (name.to_owned(), figure)).collect();
        let first = NodeCounters {
            run: "here-1".to_owned(),
            rank: 2,
            nodes: 3,
            process: 1,
            waits_for: Some("lock 3".to_owned()),
            figures,
        };
        let second = NodeCounters { rank: 11, waits_for: None, ..first.clone() };
        Sample { nodes: vec![first, second], at }
    }

    #[test]
    fn the_first_look_shows_totals_and_the_next_rates() {
        let begun = Instant::now();
        let figures = |bytes, ns| [("pages", 9), ("bytes_sent", bytes), ("locking_ns", ns)];
        let first = look(begun, &figures(500, 1_500_000_000));
        let row = |now: &Sample, before: Option<&Sample>| -> Vec<String> {
            let line = lines(now, before, usize::MAX).swap_remove(1);
            line.split_whitespace().map(str::to_owned).collect()
        };
        let cells = row(&first, None);
        assert_eq!(cells[..3], ["here-1", "2", "9"]);
        assert_eq!((cells[8].as_str(), &cells[10..12]), ("500", &["1.50".into(), "s".into()][..]));
        assert_eq!(cells[cells.len() - 2..], ["lock", "3"]);
        let second = look(begun + Duration::from_secs(2), &figures(2500, 2_500_000_000));
        let cells = row(&second, Some(&first));
        assert_eq!((cells[2].as_str(), cells[8].as_str()), ("9", "1000"));
        assert_eq!(cells[10..12], ["50", "%"]);
    }

    #[test]
    fn short_lines_lose_columns_and_keep_names_and_waits() {
        let figures: Vec<_> = COLUMNS.iter().map(|column| (column.figure, 99_999)).collect();
        let now = look(Instant::now(), &figures);
        let whole = lines(&now, None, usize::MAX);
        let whole_columns = whole.iter().map(String::len).max().unwrap();
        assert!(whole_columns > 80, "{whole:?}");
        for columns_max in 0..=whole_columns {
            let lines = lines(&now, None, columns_max);
            assert!(lines[0].starts_with("run") && lines[0].ends_with("waits for"), "{lines:?}");
            assert!(lines[1].starts_with("here-1") && lines[1].ends_with("lock 3"), "{lines:?}");
            let columns = lines.iter().map(String::len).max().unwrap();
            assert!(columns <= columns_max.max("here-1    11  waits for".len()), "{lines:#?}");
        }
        let at_80 = &lines(&now, None, 80)[0];
        for title in ["faults", "bytes", "lock wait", "barrier"] {
            assert!(at_80.contains(title), "{at_80}");
        }
        assert_eq!(lines(&now, None, whole_columns + 2), whole);
    }

    #[test]
    fn great_numbers_are_short() {
        assert_eq!(
            [0.0, 99_999.0, 123_456.0, 5e7, 5e10].map(short),
            ["0", "99999", "123k", "50M", "50G"]
        );
    }

    #[test]
    fn an_empty_table_says_what_to_do() {
        let none = Sample { nodes: Vec::new(), at: Instant::now() };
        let lines = lines(&none, None, 80);
        assert!(lines.len() == 1 && lines[0].contains("kyocho dsm run") && lines[0].len() <= 80);
    }
}
