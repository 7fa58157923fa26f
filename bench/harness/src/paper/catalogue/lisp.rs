//! Paper 4: table 1, figures 3 and 4, and the questions of sections 7 and 8.

use super::Entry;
use crate::PartName;
use crate::paper::figure::{Cell, Chart, Claim, Figure, Lines, Published, Series, Table};
use crate::paper::results::{Results, list, spread};
use crate::statistics::Spread;
use serde_json::Value;

const SPARC: &str =
    "SPARCstation 10 model 31, 32 MB, SunOS 4.1.3, threads of its LWP library, 1993";

pub(super) const ENTRIES: [Entry; 5] = [
    Entry {
        id: "4.table1",
        title: "Table 1: execution time with and without caching of cells",
        there: SPARC,
        parts: &[PartName::Cells],
        workloads: &[],
        read: table_1,
        why: "Without a cache, each cell costs a message to the system-call thread and two thread \
              switches. A cache of 100 divides their number by 100, there and here.",
    },
    Entry {
        id: "4.figure3",
        title: "Figure 3: QuickSort of 72, time against size of the cache",
        there: SPARC,
        parts: &[PartName::Cells],
        workloads: &[],
        read: figure_3,
        why: "System time falls with the number of messages and user time stays. Beyond 100 the \
              curve here still falls a little: what remains of a refill is a larger part of a \
              program that runs four hundred times as fast.",
    },
    Entry {
        id: "4.figure4",
        title: "Figure 4: Ackermann (3 3), time against size of the cache",
        there: SPARC,
        parts: &[PartName::Cells],
        workloads: &[],
        read: figure_4,
        why: "As figure 3.",
    },
    Entry {
        id: "4.section7",
        title: "§7: cells that large caches waste",
        there: "named as a problem, not measured",
        parts: &[PartName::Stranded],
        workloads: &[],
        read: section_7,
        why: "Threads that wait hold the cells of their caches, so large fixed caches cause more \
              collections, as the paper fears. A cache that follows each thread's rate, its proposal \
              in §8, avoids that.",
    },
    Entry {
        id: "4.section8",
        title: "§8: length of the time slice",
        there: "100 ms; its effect is left to future work",
        parts: &[PartName::Stranded],
        workloads: &[],
        read: section_8,
        why: "A cache is filled when it is empty, not when a slice begins, so the slice costs no \
              cells. Slices of a millisecond cost time by themselves.",
    },
];

/// A curve's point: a spread of the real time in ms, and the medians of user and system time.
fn at<'a>(curve: &'a Value, cache: &str) -> Option<&'a Value> {
    list(&curve["points"]).iter().find(|point| point["cache"] == cache)
}

fn table_1(results: &Results) -> Result<Figure, String> {
    let cells = results.part("cells")?;
    let programs = [
        ("Ackermann (3 3)", "figure_4", [5.512_369, 1.414_618]),
        ("QuickSort of 72", "figure_3", [3.524_985, 0.496_792]),
    ];
    let real = |figure: &str, cache: &str| {
        let point = at(&cells[figure], cache)?;
        real_of(point)
    };
    let claims = programs.iter().map(|(name, figure, [off, on])| Claim {
        what: format!("{name}: no caching over a cache of 100"),
        published: Published::Exactly(off / on),
        measured: match (real(figure, "off"), real(figure, "100")) {
            (Some(off), Some(on)) => Ok(Spread {
                median: off.median / on.median,
                least: off.least / on.most,
                most: off.most / on.least,
            }),
            _ => Err("was not measured".into()),
        },
    });
    let rows = programs.iter().map(|(name, figure, [off, on])| {
        let ours = ["off", "100", "auto"].map(|cache| real(figure, cache));
        let ours =
            ours.map(|spread| spread.map_or(Cell::None, |spread| Cell::Measured(spread, "ms")));
        let cells = [Cell::Published(*off, "s"), Cell::Published(*on, "s")];
        ((*name).to_owned(), cells.into_iter().chain(ours).collect())
    });
    Ok(Figure {
        claims: claims.collect(),
        tables: vec![Table {
            caption: "Real time".into(),
            columns: [
                "no caching, published",
                "caching, published",
                "no caching, here",
                "cache of 100, here",
                "auto, here",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: rows.collect(),
        }],
        ..Figure::default()
    })
}

fn real_of(point: &Value) -> Option<Spread> {
    spread(&point["real_ms"]).or_else(|| spread(&point["real"]))
}

fn figure_3(results: &Results) -> Result<Figure, String> {
    figure(&results.part("cells")?["figure_3"])
}

fn figure_4(results: &Results) -> Result<Figure, String> {
    figure(&results.part("cells")?["figure_4"])
}

fn figure(curve: &Value) -> Result<Figure, String> {
    let points = list(&curve["points"]);
    let median =
        |point: &Value, key: &str| point[key].as_f64().or_else(|| point[key]["median"].as_f64());
    let line = |name: &str, key: &'static [&'static str]| Series {
        name: name.into(),
        points: points
            .iter()
            .filter_map(|point| {
                let size: f64 = point["cache"].as_str()?.parse().ok()?;
                Some((size, key.iter().find_map(|key| median(point, key))?))
            })
            .collect(),
    };
    let level = |cache: &str| at(curve, cache).and_then(real_of);
    let (off, hundred, most) = (level("off"), level("100"), level("4096"));
    let flat = |spread: Option<Spread>| match (hundred, spread) {
        (Some(hundred), Some(other)) => Ok(Spread {
            median: hundred.median / other.median,
            least: hundred.least / other.most,
            most: hundred.most / other.least,
        }),
        _ => Err("was not measured".into()),
    };
    let rows = points.iter().map(|point| {
        let number =
            |key: &str, unit| median(point, key).map_or(Cell::None, |n| Cell::Counted(n, unit));
        let real = real_of(point).map_or(Cell::None, |real| Cell::Measured(real, "ms"));
        let cells =
            vec![number("messages", ""), number("user_ms", "ms"), number("system_ms", "ms"), real];
        (point["cache"].as_str().unwrap_or_default().to_owned(), cells)
    });
    let mut series = vec![
        line("real time", &["real_ms", "real"]),
        line("user time", &["user_ms"]),
        line("system time", &["system_ms"]),
    ];
    if let Some(off) = off {
        series.push(Series {
            name: "real time, no caching".into(),
            points: vec![(1.0, off.median), (4096.0, off.median)],
        });
    }
    if series[0].points.is_empty() {
        return Err("the curve has no points".into());
    }
    Ok(Figure {
        claims: vec![Claim {
            what: "real time at a cache of 100 over that at 4096 (flat: 1)".into(),
            published: Published::Words("hardly changes from 100 on"),
            measured: flat(most),
        }],
        charts: vec![Chart::Lines(Lines {
            title: "Time against size of the cache".into(),
            axes: ["cells in the cache".into(), "ms".into()],
            logarithmic: [true, false],
            series,
        })],
        tables: vec![Table {
            caption: "By size of the cache".into(),
            columns: ["messages", "user", "system", "real"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }],
        notes: vec!["The published figure is a picture without numbers.".into()],
    })
}

/// A table of configurations, named by `key`.
fn configurations(rows: &Value, caption: &str, name: impl Fn(&Value) -> String) -> Table {
    let columns = [
        ("time", "ms", "ms"),
        ("over auto with 5 ms", "ratio", ""),
        ("unused cells at a collection", "stranded", ""),
        ("collections", "collections", ""),
        ("requests for cells", "asked", ""),
    ];
    let cells = |row: &Value| {
        let cell = |(_, key, unit): &(&str, &str, &'static str)| {
            spread(&row[*key]).map_or(Cell::None, |spread| Cell::Measured(spread, unit))
        };
        columns.iter().map(cell).collect()
    };
    Table {
        caption: caption.into(),
        columns: columns.map(|(title, ..)| title.to_owned()).to_vec(),
        rows: list(rows).iter().map(|row| (name(row), cells(row))).collect(),
    }
}

fn word<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

fn section_7(results: &Results) -> Result<Figure, String> {
    let stranded = results.part("stranded")?;
    let rows = &stranded["section_7"];
    let ratios: Vec<f64> = list(rows)
        .iter()
        .filter(|row| row["cache"] != "auto")
        .filter_map(|row| row["ratio"]["median"].as_f64())
        .collect();
    let points = list(rows)
        .iter()
        .filter_map(|row| Some((word(row, "cache").parse().ok()?, row["ms"]["median"].as_f64()?)));
    let auto = list(rows).iter().find(|row| row["cache"] == "auto");
    let auto = auto.and_then(|row| row["ms"]["median"].as_f64());
    let mut series = vec![Series { name: "fixed size".into(), points: points.collect() }];
    let ends = series[0].points.first().zip(series[0].points.last()).map(|(a, b)| (a.0, b.0));
    if let (Some(auto), Some((first, last))) = (auto, ends) {
        series.push(Series {
            name: "auto (follows the thread's rate)".into(),
            points: vec![(first, auto), (last, auto)],
        });
    }
    Ok(Figure {
        claims: vec![Claim {
            what: "best fixed size over a size that follows the thread's rate, time".into(),
            published: Published::Words("proposed"),
            measured: ratios
                .iter()
                .copied()
                .reduce(f64::min)
                .and_then(|least| Spread::of(&[least]))
                .ok_or_else(|| "was not measured".into()),
        }],
        charts: vec![Chart::Lines(Lines {
            title: "Time of a program with many waiting threads".into(),
            axes: ["cells in each cache".into(), "ms".into()],
            logarithmic: [true, true],
            series,
        })],
        tables: vec![configurations(rows, "With threads that wait", |row| {
            word(row, "cache").to_owned()
        })],
        notes: stranded["note"].as_str().map(str::to_owned).into_iter().collect(),
    })
}

fn section_8(results: &Results) -> Result<Figure, String> {
    let rows = &results.part("stranded")?["section_8"];
    let mut caches: Vec<&str> = list(rows).iter().map(|row| word(row, "cache")).collect();
    caches.sort_unstable();
    caches.dedup();
    let series = caches.iter().map(|cache| Series {
        name: format!("cache: {cache}"),
        points: list(rows)
            .iter()
            .filter(|row| word(row, "cache") == *cache)
            .filter_map(|row| Some((row["slice_ms"].as_f64()?, row["ms"]["median"].as_f64()?)))
            .collect(),
    });
    let name = |row: &Value| format!("{} ms, cache {}", row["slice_ms"], word(row, "cache"));
    Ok(Figure {
        charts: vec![Chart::Lines(Lines {
            title: "Time against the time slice, busy threads alone".into(),
            axes: ["time slice, ms".into(), "ms".into()],
            logarithmic: [true, false],
            series: series.collect(),
        })],
        tables: vec![configurations(rows, "By time slice", name)],
        ..Figure::default()
    })
}
