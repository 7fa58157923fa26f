//! Paper 3: figures 1 to 5 and table 3.

use super::Entry;
use crate::PartName;
use crate::paper::figure::{
    Bars, Cell, Chart, Claim, Figure, Lines, Matrix, Origin, Published, Series, Table,
};
use crate::paper::results::{Results, first, list, numbers, spread};
use crate::statistics::Spread;
use serde_json::Value;

const ENVIRONMENT_1: &str =
    "Celeron 400 MHz, Intel PRO/1000 network, TurboLinux 6.1, 1 to 8 machines, 2002";
const ENVIRONMENT_2: &str =
    "MMX Pentium 166 MHz, 100 Mbit/s network, FreeBSD 2.2.8, 1 to 8 machines, 2002";

pub(super) const ENTRIES: [Entry; 6] = [
    Entry {
        id: "3.figure1",
        title: "Figure 1: one lock, two processes, old and new scheme",
        there: ENVIRONMENT_1,
        parts: &[PartName::Dsm],
        workloads: &[],
        read: figure_1,
        why: "The old scheme passes on all differences since the last barrier, so its messages grow \
              with every turn; with the new one the manager sends only what the taker lacks.",
    },
    Entry {
        id: "3.figure2",
        title: "Figure 2: eight locks, eight processes, old and new scheme",
        there: ENVIRONMENT_1,
        parts: &[PartName::Dsm],
        workloads: &[],
        read: figure_2,
        why: "As figure 1. Managers that are spread over the nodes serve locks side by side.",
    },
    Entry {
        id: "3.figure3",
        title: "Figure 3: bytes between each pair of eight processes",
        there: ENVIRONMENT_1,
        parts: &[PartName::Dsm],
        workloads: &[],
        read: figure_3,
        why: "Only processes that share a lock talk to each other, if the manager of a page is a \
              process that uses it: the squares lie along the diagonal, as in the paper.",
    },
    Entry {
        id: "3.table3",
        title: "Table 3: messages and bytes in all, beside TreadMarks",
        there: ENVIRONMENT_1,
        parts: &[PartName::Dsm],
        workloads: &[],
        read: table_3,
        why: "The number of messages is a property of the protocol, so it is comparable; the number \
              of bytes depends on the headers of each implementation.",
    },
    Entry {
        id: "3.figure4",
        title: "Figure 4: WATER, speed-up over one node",
        there: ENVIRONMENT_2,
        parts: &[PartName::Dsm],
        workloads: &[],
        read: figure_4,
        why: "The nodes of this run share the cores of one machine, so the curve can rise only to \
              their number; beyond, it shows what more nodes cost.",
    },
    Entry {
        id: "3.figure5",
        title: "Figure 5: SOR 1024 x 1536, ordinary and single-read-write barrier",
        there: ENVIRONMENT_2,
        parts: &[PartName::Dsm],
        workloads: &[],
        read: figure_5,
        why: "The single-read-write barrier leaves a page writable that only one node uses, so no \
              trap occurs at the next write. Traps are a smaller share here, because this machine \
              takes them faster in comparison with its computing.",
    },
];

fn line<'a>(dsm: &'a Value, name: &'a str) -> Option<&'a Value> {
    first(&dsm["lines"], "name", name)
}

fn measured(dsm: &Value, name: &str) -> Result<Spread, String> {
    line(dsm, name).and_then(spread).ok_or_else(|| "was not measured".into())
}

/// Old over new scheme for two placements, with the cost of an increment.
fn schemes(
    results: &Results,
    placements: [(&str, &str); 2],
    published: Published,
) -> Result<Figure, String> {
    let dsm = results.part("dsm")?;
    let claims = placements.map(|(name, what)| Claim {
        what: format!("{what}: old scheme over new, time"),
        published,
        measured: measured(dsm, name),
    });
    let rows = placements.map(|(name, what)| {
        let cell = |suffix: &str, unit| {
            let spread = measured(dsm, &format!("{name}{suffix}"));
            spread.map_or(Cell::None, |spread| Cell::Measured(spread, unit))
        };
        (what.to_owned(), vec![cell("-us", "µs"), cell("-messages", ""), cell("-bytes", "B")])
    });
    let gains: Vec<_> =
        claims.iter().map(|claim| claim.measured.as_ref().ok().map(|s| s.median)).collect();
    Ok(Figure {
        charts: vec![Chart::Bars(Bars {
            title: "How many times as fast the new scheme is".into(),
            height: "old over new".into(),
            logarithmic: false,
            groups: placements.map(|(_, what)| what.to_owned()).to_vec(),
            series: vec![("here".into(), Origin::Here, gains)],
        })],
        claims: claims.to_vec(),
        tables: vec![Table {
            caption: "An increment under the lock, new scheme".into(),
            columns: vec!["time".into(), "messages".into(), "bytes".into()],
            rows: rows.to_vec(),
        }],
        notes: Vec::new(),
    })
}

fn figure_1(results: &Results) -> Result<Figure, String> {
    let placements = [
        ("figure-1-worker", "(1) a worker manages the lock"),
        ("figure-1-other", "(2) another process manages it"),
    ];
    schemes(results, placements, Published::Between(1.6, 2.2))
}

fn figure_2(results: &Results) -> Result<Figure, String> {
    let placements =
        [("figure-2-one", "one process manages all"), ("figure-2-spread", "managers by lock")];
    let mut figure = schemes(results, placements, Published::Words("the new scheme is faster"))?;
    figure.notes.push("The published figure is a picture without numbers.".into());
    Ok(figure)
}

fn figure_3(results: &Results) -> Result<Figure, String> {
    let figure = &results.part("dsm")?["figure_3"];
    let names: Vec<String> =
        list(&figure["nodes"]).iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    let placements =
        [("spread", "page managers where pages are used"), ("one", "one page manager")];
    let matrix = |placement: &str, what: &str| -> Vec<Vec<f64>> {
        list(&figure["matrices"][placement][what]).iter().map(numbers).collect()
    };
    let charts = placements.iter().map(|(placement, title)| {
        Chart::Matrix(Matrix {
            title: format!("Bytes from each process to each, {title}"),
            names: names.clone(),
            unit: "B",
            values: matrix(placement, "bytes"),
        })
    });
    let tables = placements.iter().map(|(placement, title)| {
        let (messages, bytes) = (matrix(placement, "messages"), matrix(placement, "bytes"));
        let rows = names
            .iter()
            .zip(messages.iter().zip(&bytes))
            .map(|(name, (messages, bytes))| (name.clone(), pairs(messages, bytes)));
        Table {
            caption: format!("Messages (bytes), rows send, {title}"),
            columns: names.clone(),
            rows: rows.collect(),
        }
    });
    // How much of the traffic runs between the two processes of a pair.
    let share = |placement: &str| {
        let bytes = matrix(placement, "bytes");
        let all: f64 = bytes.iter().flatten().sum();
        let pairs: f64 = bytes
            .iter()
            .enumerate()
            .flat_map(|(from, row)| {
                row.iter().enumerate().filter(move |(to, _)| from / 2 == to / 2)
            })
            .map(|(_, bytes)| bytes)
            .sum();
        Cell::Counted(100.0 * pairs / all.max(1.0), "%")
    };
    let shares = Table {
        caption: "Share of the bytes that run between processes that share a lock".into(),
        columns: vec!["here".into()],
        rows: placements
            .iter()
            .map(|(name, title)| ((*title).to_owned(), vec![share(name)]))
            .collect(),
    };
    Ok(Figure {
        charts: charts.collect(),
        tables: tables.chain([shares]).collect(),
        notes: figure["assumption"].as_str().map(str::to_owned).into_iter().collect(),
        ..Figure::default()
    })
}

/// The cells of a sender's row: messages (bytes).
fn pairs(messages: &[f64], bytes: &[f64]) -> Vec<Cell> {
    let cell = |(messages, bytes): (&f64, &f64)| match messages {
        0.0 => Cell::None,
        _ => Cell::Text(format!("{messages:.0} ({bytes:.0})")),
    };
    messages.iter().zip(bytes).map(cell).collect()
}

fn table_3(results: &Results) -> Result<Figure, String> {
    let table = &results.part("dsm")?["table_3"];
    let published = [
        ("one", "one page manager", [2090.0, 226_777.0], [3402.0, 195_598.0]),
        ("spread", "page managers where pages are used", [2196.0, 65_697.0], [3397.0, 188_158.0]),
    ];
    let keys = ["messages", "bytes"];
    let rows = published.iter().flat_map(|(name, title, sms, treadmarks)| {
        keys.iter().enumerate().map(move |(index, key)| {
            let ours = spread(&table["totals"][name][key]);
            let cells = vec![
                Cell::Published(sms[index], ""),
                Cell::Published(treadmarks[index], ""),
                ours.map_or(Cell::None, |spread| Cell::Measured(spread, "")),
            ];
            (format!("{title}: {key}"), cells)
        })
    });
    let claims = published.iter().map(|(name, title, sms, treadmarks)| Claim {
        what: format!("{title}: TreadMarks' published messages over ours"),
        published: Published::Exactly(treadmarks[0] / sms[0]),
        measured: spread(&table["totals"][name]["messages"])
            .map(|ours| Spread {
                median: treadmarks[0] / ours.median,
                least: treadmarks[0] / ours.most,
                most: treadmarks[0] / ours.least,
            })
            .ok_or_else(|| "was not measured".into()),
    });
    Ok(Figure {
        claims: claims.collect(),
        tables: vec![Table {
            caption: "Totals of the run".into(),
            columns: ["SMS, published", "TreadMarks, published", "here"]
                .map(str::to_owned)
                .to_vec(),
            rows: rows.collect(),
        }],
        notes: table["assumption"].as_str().map(str::to_owned).into_iter().collect(),
        ..Figure::default()
    })
}

/// Speed-ups of a figure's curves by number of nodes.
fn curves(figure: &Value) -> Figure {
    let cores = figure["cores"].as_f64().unwrap_or(1.0);
    let name = |curve: &Value| curve["what"].as_str().unwrap_or_default().to_owned();
    let series = list(&figure["curves"]).iter().map(|curve| Series {
        name: name(curve),
        points: list(&curve["points"])
            .iter()
            .filter_map(|point| {
                Some((point["nodes"].as_f64()?, point["speed_up"]["median"].as_f64()?))
            })
            .collect(),
    });
    let columns = [
        ("speed-up", "speed_up", ""),
        ("time", "time_us", "µs"),
        ("processor time", "processor_us", "µs"),
        ("noticing writes", "detecting_percent", "%"),
        ("traps, of the time outside the program's code", "traps_percent", "%"),
    ];
    let rows = list(&figure["curves"]).iter().flat_map(|curve| {
        list(&curve["points"]).iter().map(move |point| {
            let cell = |(_, key, unit): &(&str, &str, &'static str)| {
                spread(&point[*key]).map_or(Cell::None, |spread| Cell::Measured(spread, unit))
            };
            (
                format!("{}, {} nodes", name(curve), point["nodes"]),
                columns.iter().map(cell).collect(),
            )
        })
    });
    let unit = figure["unit_of_work"].as_str().unwrap_or("unit of work");
    Figure {
        charts: vec![Chart::Lines(Lines {
            title: format!("Speed-up over one node, on {cores} cores"),
            axes: ["nodes".into(), "times as fast as one node".into()],
            logarithmic: [false, false],
            series: series.collect(),
        })],
        tables: vec![Table {
            caption: format!("By number of nodes; times are those of one {unit}"),
            columns: columns.map(|(title, ..)| title.to_owned()).to_vec(),
            rows: rows.collect(),
        }],
        notes: figure["note"].as_str().map(str::to_owned).into_iter().collect(),
        ..Figure::default()
    }
}

/// A value of one curve at a number of nodes.
fn point(figure: &Value, curve: &str, nodes: u64, key: &str) -> Option<Spread> {
    let curve = first(&figure["curves"], "name", curve)?;
    let point = list(&curve["points"]).iter().find(|point| point["nodes"] == nodes)?;
    spread(&point[key])
}

fn figure_4(results: &Results) -> Result<Figure, String> {
    let figure = &results.part("dsm")?["figure_4"];
    let mut read = curves(figure);
    read.claims.push(Claim {
        what: "two nodes over one".into(),
        published: Published::Picture,
        measured: point(figure, "water", 2, "speed_up").ok_or_else(|| "was not measured".into()),
    });
    read.notes.push(
        "The published figure is a picture; the text says that SMS equals TreadMarks.".into(),
    );
    Ok(read)
}

fn figure_5(results: &Results) -> Result<Figure, String> {
    let figure = &results.part("dsm")?["figure_5"];
    let mut read = curves(figure);
    let shares =
        ["ordinary-traps", "single-traps"].map(|curve| point(figure, curve, 2, "traps_percent"));
    let measured = match shares {
        [Some(ordinary), Some(single)] if single.median > 0.0 => Ok(Spread {
            median: ordinary.median / single.median,
            least: ordinary.least / single.most,
            most: if single.least > 0.0 { ordinary.most / single.least } else { f64::MAX },
        }),
        _ => Err("was not measured".into()),
    };
    read.claims.push(Claim {
        what: "two nodes: share of time in traps, ordinary over single-read-write barrier (there: eight)".into(),
        published: Published::Exactly(49.0 / 9.0),
        measured,
    });
    read.claims.push(Claim {
        what: "two nodes over one, single-read-write barrier".into(),
        published: Published::Picture,
        measured: point(figure, "single", 2, "speed_up").ok_or_else(|| "was not measured".into()),
    });
    read.notes.push(
        "The published curves are a picture; the text gives the shares of 49 % and 9 % \
        for eight machines. Here more than two nodes wait for a core most of the time."
            .into(),
    );
    Ok(read)
}
