//! Paper 1: tables 2 to 4, the remote procedure call, and the size of the package.

use super::Entry;
use crate::PartName;
use crate::paper::figure::{Bars, Cell, Chart, Claim, Figure, Origin, Published, Table};
use crate::paper::results::{Results, first, list, ratio, spread};
use crate::statistics::Spread;

const I486: &str = "i486SX (16 MHz) PC, the authors' kernel 006, 1994";

pub(super) const ENTRIES: [Entry; 5] = [
    Entry {
        id: "1.table2",
        title: "Table 2: null fork",
        there: I486,
        parts: &[PartName::Threads],
        workloads: &["spawn_join", "address_space"],
        read: table_2,
        why: "Creating, ending and joining a microprocess enters no kernel; a kernel thread enters \
              it four times. Kernel entries have become slower in comparison with plain \
              instructions, so the ratios have grown.",
    },
    Entry {
        id: "1.table3",
        title: "Table 3: synchronous message passing",
        there: I486,
        parts: &[PartName::Threads],
        workloads: &["rendezvous"],
        read: table_3,
        why: "A message between microprocesses is a switch of stacks in user mode; between kernel \
              threads it is two wake-ups in the kernel.",
    },
    Entry {
        id: "1.table4",
        title: "Table 4: computation of prime numbers up to 700",
        there: I486,
        parts: &[PartName::Threads],
        workloads: &["sieve", "sieve_messages"],
        read: table_4,
        why: "126 threads pass 9,055 messages, so the program measures little but message passing \
              and switching. All microprocesses share one kernel thread, as in the paper.",
    },
    Entry {
        id: "1.rpc",
        title: "§7: null remote procedure call between address spaces",
        there: "i386SX (16 MHz) PC, kernel 006",
        parts: &[PartName::Gates],
        workloads: &[],
        read: rpc,
        why: "The paper's kernel moves the client's kernel thread into the server's address space. \
              Linux cannot: on one core the host must switch between two threads, which takes most \
              of the call. On two cores the call needs no switch, and the ratio exceeds the paper's.",
    },
    Entry {
        id: "1.size",
        title: "§6: size of the package and of the additions to the kernel",
        there: "C and assembly of the authors' package and kernel",
        parts: &[PartName::Lines],
        workloads: &[],
        read: size,
        why: "A user scheduler is a file of some hundred lines, as the paper intends. The runtime \
              below it is larger than the paper's package: it runs on several processors, on a \
              kernel that it cannot change, and survives kills, forks and signals.",
    },
];

/// A row: its name, the published value, and the measured ones.
type Row = (&'static str, f64, Result<Vec<f64>, String>);

/// A table and its plot of such rows; the first row is that of microprocesses.
fn compare(rows: Vec<Row>, published_unit: &'static str, unit: &'static str) -> Figure {
    let base = rows[0].2.clone();
    let claims = rows[1..].iter().map(|(name, published, values)| Claim {
        what: format!("{name} over microprocess"),
        published: Published::Exactly(published / rows[0].1),
        measured: match (values, &base) {
            (Ok(values), Ok(base)) => ratio(values, base),
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        },
    });
    let claims = claims.collect();
    let spread_of =
        |values: &Result<Vec<f64>, String>| values.as_ref().ok().and_then(|v| Spread::of(v));
    let heights = |here: bool| -> Vec<Option<f64>> {
        let value = |row: &Row, first: f64| {
            if here { spread_of(&row.2).map(|s| s.median / first) } else { Some(row.1 / first) }
        };
        let first = if here { spread_of(&rows[0].2).map_or(1.0, |s| s.median) } else { rows[0].1 };
        rows.iter().map(|row| value(row, first)).collect()
    };
    Figure {
        claims,
        charts: vec![Chart::Bars(Bars {
            title: "Cost, in multiples of a microprocess".into(),
            height: "times a microprocess".into(),
            logarithmic: true,
            groups: rows.iter().map(|row| row.0.to_owned()).collect(),
            series: vec![
                ("published".into(), Origin::Paper, heights(false)),
                ("here".into(), Origin::Here, heights(true)),
            ],
        })],
        tables: vec![Table {
            caption: "Times".into(),
            columns: vec!["published".into(), "here".into()],
            rows: rows
                .iter()
                .map(|row| {
                    let ours = match &row.2 {
                        Ok(_) => spread_of(&row.2).map_or(Cell::None, |s| Cell::Measured(s, unit)),
                        Err(why) => Cell::Text(why.clone()),
                    };
                    (row.0.to_owned(), vec![Cell::Published(row.1, published_unit), ours])
                })
                .collect(),
        }],
        notes: Vec::new(),
    }
}

fn table_2(results: &Results) -> Result<Figure, String> {
    results.part("threads")?;
    let values = |bench, system| results.thread_values(bench, &[], system);
    Ok(compare(
        vec![
            ("microprocess", 78.0, values("spawn_join", "kyocho")),
            ("kernel thread", 328.0, values("spawn_join", "pthread")),
            (
                "address space and kernel thread",
                2990.0,
                values("address_space", "pthread").map(in_ns),
            ),
        ],
        "µs",
        "ns",
    ))
}

/// Microseconds as nanoseconds.
fn in_ns(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|us| us * 1e3).collect()
}

fn table_3(results: &Results) -> Result<Figure, String> {
    results.part("threads")?;
    let values = |system| results.thread_values("rendezvous", &[], system);
    let rows =
        vec![("microprocess", 95.1, values("kyocho")), ("kernel thread", 218.0, values("pthread"))];
    Ok(compare(rows, "µs", "ns"))
}

fn table_4(results: &Results) -> Result<Figure, String> {
    results.part("threads")?;
    let values = |bench, system| results.thread_values(bench, &[700], system);
    Ok(compare(
        vec![
            ("microprocess", 1.16, values("sieve", "kyocho")),
            ("kernel thread, mutex and condition variable", 8.79, values("sieve", "pthread")),
            ("kernel thread, message passing", 2.32, values("sieve_messages", "pthread")),
        ],
        "s",
        "ms",
    ))
}

fn rpc(results: &Results) -> Result<Figure, String> {
    let lines = &results.part("gates")?["lines"];
    let line = |what: &str| first(lines, "what", what).and_then(spread);
    let missing = || "was not measured".to_owned();
    let inverse = |spread: Spread| Spread {
        median: 1.0 / spread.median,
        least: 1.0 / spread.most,
        most: 1.0 / spread.least,
    };
    let rows = list(lines).iter().filter_map(|line| {
        let what = line["what"].as_str()?.to_owned();
        Some((what, vec![spread(line).map_or(Cell::None, |spread| Cell::Measured(spread, ""))]))
    });
    let published = Published::Exactly(393.0 / 61.9);
    Ok(Figure {
        claims: vec![
            Claim {
                what: "same core: served by a kernel thread, over a gate".into(),
                published,
                measured: line("kernel-threads over kyocho: 0 bytes, same core")
                    .ok_or_else(missing),
            },
            Claim {
                what: "two cores: Unix stream socket over a gate".into(),
                published,
                measured: line("kyocho over unix-socket: 0 bytes, other core")
                    .map(inverse)
                    .ok_or_else(missing),
            },
        ],
        tables: vec![
            Table {
                caption: "Null call".into(),
                columns: vec!["published".into()],
                rows: vec![
                    ("ordinary call".into(), vec![Cell::Published(393.0, "µs")]),
                    (
                        "the kernel thread moves to the server".into(),
                        vec![Cell::Published(61.9, "µs")],
                    ),
                ],
            },
            Table {
                caption: "Here: ratios within a round".into(),
                columns: vec!["ratio".into()],
                rows: rows.collect(),
            },
        ],
        ..Figure::default()
    })
}

fn size(results: &Results) -> Result<Figure, String> {
    let sets = &results.part("lines")?["sets"];
    let set = |name: &str| first(sets, "set", name);
    let published: [(&str, &str); 3] =
        [("scheduler", "-"), ("package", "about 600"), ("notification", "some hundred")];
    let rows = published.iter().filter_map(|(name, there)| {
        let set = set(name)?;
        let what = set["what"].as_str().unwrap_or_default().to_owned();
        Some((
            what,
            vec![Cell::Text((*there).into()), Cell::Counted(set["lines"].as_f64()?, "lines")],
        ))
    });
    let groups = published.iter().filter_map(|(name, _)| set(name)).flat_map(|set| {
        list(&set["groups"]).iter().filter_map(move |group| {
            let title = format!("{}: {}", set["set"].as_str()?, group["group"].as_str()?);
            Some((title, vec![Cell::Counted(group["lines"].as_f64()?, "lines")]))
        })
    });
    Ok(Figure {
        tables: vec![
            Table {
                caption: "Lines of code, without comments and tests".into(),
                columns: vec!["published".into(), "here".into()],
                rows: rows.collect(),
            },
            Table {
                caption: "What these consist of".into(),
                columns: vec!["here".into()],
                rows: groups.collect(),
            },
        ],
        ..Figure::default()
    })
}
