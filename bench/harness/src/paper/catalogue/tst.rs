//! Paper 0: figures 12 and 13, tables 1 and 2; on this processor, and on MIPS in an emulator.

use super::Entry;
use crate::PartName;
use crate::paper::figure::{
    Bars, Cell, Chart, Claim, Figure, Lines, Origin, Published, Series, Table,
};
use crate::paper::results::{Results, list, numbers, ratio, with};
use crate::statistics::Spread;
use serde_json::Value;

const PS2: &str = "PlayStation 2 (Emotion Engine, a MIPS without ll and sc), PS2 Linux, 2000; means \
                   of 12 runs without the least and the greatest";

pub(super) const ENTRIES: [Entry; 7] = [
    Entry {
        id: "0.figure12",
        title: "Figure 12: elapsed time of simple operations",
        there: PS2,
        parts: &[PartName::Locks],
        workloads: &[],
        read: figure_12,
        why: "A system call enters the kernel for each test-and-set; a restartable sequence is a \
              few instructions of user mode. Kernel entries have become slower in comparison with \
              plain instructions, so the ratio is larger than in 2000.",
    },
    Entry {
        id: "0.figure12-mips",
        title: "Figure 12 on the paper's architecture",
        there: PS2,
        parts: &[],
        workloads: &[],
        read: figure_12_mips,
        why: "The emulator counts instructions, not time: a kernel entry costs what its \
              instructions cost, without the exception itself, and still exceeds the published \
              ratio.",
    },
    Entry {
        id: "0.figure13",
        title: "Figure 13: items per second, producers and consumers",
        there: "as figure 12; 20 seconds a run",
        parts: &[PartName::Locks],
        workloads: &[],
        read: figure_13,
        why: "All methods of kernel threads pay for blocking and waking in the kernel, so the \
              method of test-and-set matters less than in figure 12, as in the paper. Microprocesses \
              block without the kernel, and show what remains.",
    },
    Entry {
        id: "0.figure13-mips",
        title: "Figure 13 on the paper's architecture",
        there: "as figure 12; 20 seconds a run",
        parts: &[],
        workloads: &[],
        read: figure_13_mips,
        why: "With a system call for each test-and-set, threads find the guard taken more often and \
              yield, so the gain grows with the number of threads.",
    },
    Entry {
        id: "0.table1",
        title: "Table 1: footprint",
        there: "code of PS2 Linux's library, daemon, module and kernel",
        parts: &[PartName::Locks],
        workloads: &[],
        read: table_1,
        why: "x86-64 needs no kernel module: the preemption handler of the runtime restarts \
              sequences, and Linux has rseq. Lamport's algorithm remains the largest, because it \
              keeps variables for every participant and cleans up after the dead.",
    },
    Entry {
        id: "0.table1-mips",
        title: "Table 1 on the paper's architecture",
        there: "code of PS2 Linux's library, daemon, module and kernel",
        parts: &[],
        workloads: &[],
        read: table_1_mips,
        why: "The same parts as in the paper, in a Linux of 2022: a module with the sequence, and a \
              patch to the kernel's exception exit and fault handler.",
    },
    Entry {
        id: "0.table2",
        title: "Table 2: features",
        there: "the authors' judgement",
        parts: &[PartName::Locks],
        workloads: &[],
        read: table_2,
        why: "Restartable sequences keep the paper's advantages: safe, fast, nothing to clean up. \
              What they need instead of its kernel patch is a scheduler of their own, or rseq.",
    },
];

/// The methods of the part `locks`, and those of the paper that they stand for.
const METHODS: [(&str, &str); 6] = [
    ("restartable", "restartable (k1/magic)"),
    ("rseq", "rseq (k1/magic)"),
    ("signals-blocked", "signals blocked (di/ei)"),
    ("atomics", "atomic instruction (ll/sc)"),
    ("lamport", "Lamport"),
    ("system-call", "system call"),
];
const OPERATIONS: [&str; 3] = ["sem_wait", "trylock", "tst"];

fn operation_ns(locks: &Value, operation: &str, method: &str) -> Vec<f64> {
    let name = format!("{operation} {method}");
    let lines = with(&locks["small"], "bench", "operations").filter(|line| line["name"] == *name);
    lines.filter_map(|line| line["ns"]["median"].as_f64()).collect()
}

fn figure_12(results: &Results) -> Result<Figure, String> {
    let locks = results.part("locks")?;
    let ns = |operation, method| operation_ns(locks, operation, method);
    let claims = OPERATIONS.map(|operation| Claim {
        what: format!("{operation}: system call over restartable sequence"),
        published: Published::AtLeast(7.0),
        measured: ratio(&ns(operation, "system-call"), &ns(operation, "restartable")),
    });
    let rows = METHODS.map(|(method, title)| {
        let cells = OPERATIONS.map(|operation| {
            Spread::of(&ns(operation, method)).map_or(Cell::None, |ns| Cell::Measured(ns, "ns"))
        });
        (title.to_owned(), cells.to_vec())
    });
    let series = METHODS.map(|(method, title)| {
        let gains = OPERATIONS.map(|operation| {
            let gain = ratio(&ns(operation, "system-call"), &ns(operation, method));
            gain.ok().map(|gain| gain.median)
        });
        (title.to_owned(), Origin::Here, gains.to_vec())
    });
    Ok(Figure {
        claims: claims.to_vec(),
        tables: vec![Table {
            caption: "Time of an operation".into(),
            columns: OPERATIONS.map(str::to_owned).to_vec(),
            rows: rows.to_vec(),
        }],
        charts: vec![gains_chart(&OPERATIONS, series.to_vec())],
        notes: vec![
            "The published figure is a picture; its text gives the ratio of 7 to the system call, \
             and says that k1/magic equals di/ei."
                .into(),
        ],
    })
}

fn gains_chart(operations: &[&str], series: Vec<(String, Origin, Vec<Option<f64>>)>) -> Chart {
    Chart::Bars(Bars {
        title: "How many times as fast as by a system call".into(),
        height: "times as fast".into(),
        logarithmic: true,
        groups: operations.iter().map(|name| (*name).to_owned()).collect(),
        series,
    })
}

fn figure_13(results: &Results) -> Result<Figure, String> {
    let figure = &results.part("locks")?["figure_13"];
    let crowds = numbers(&figure["crowds"]);
    let curves = list(&figure["curves"]);
    let items = |curve: &Value| list(&curve["items_per_s"]).iter().map(Value::as_f64).collect();
    let named = |name: &str| -> Vec<Option<f64>> {
        curves.iter().find(|curve| curve["name"] == name).map(items).unwrap_or_default()
    };
    let (rseq, call) = (named("rseq"), named("system-call"));
    let gains: Vec<f64> =
        rseq.iter().zip(&call).filter_map(|(rseq, call)| Some((*rseq)? / (*call)?)).collect();
    let title = |name: &str| {
        let method = METHODS.iter().find(|(method, _)| *method == name);
        method.map_or(name, |(_, title)| title).to_owned()
    };
    let rows = curves.iter().map(|curve| {
        let cell = |items: Option<f64>| {
            items.map_or(Cell::None, |items| Cell::Counted(items / 1e3, "k/s"))
        };
        let cells: Vec<Option<f64>> = items(curve);
        (title(curve["name"].as_str().unwrap_or_default()), cells.into_iter().map(cell).collect())
    });
    let series = curves.iter().map(|curve| Series {
        name: title(curve["name"].as_str().unwrap_or_default()),
        points: crowds
            .iter()
            .zip(items(curve) as Vec<Option<f64>>)
            .filter_map(|(crowd, items)| Some((*crowd, items?)))
            .collect(),
    });
    let measured = Spread::of(&gains).ok_or_else(|| "a method did not run".to_owned());
    Ok(Figure {
        claims: vec![Claim {
            what: "rseq over system call, all sizes of crowd".into(),
            published: Published::AtLeast(1.9),
            measured,
        }],
        tables: vec![Table {
            caption: "Thousand items a second, by producers and consumers".into(),
            columns: crowds.iter().map(|crowd| format!("({crowd}, {crowd})")).collect(),
            rows: rows.collect(),
        }],
        charts: vec![Chart::Lines(Lines {
            title: "Items a second, by size of the crowd".into(),
            axes: ["producers, and as many consumers".into(), "items a second".into()],
            logarithmic: [true, true],
            series: series.collect(),
        })],
        notes: vec!["The published figure is a picture; its text gives the ratio of 1.9.".into()],
    })
}

fn table_1(results: &Results) -> Result<Figure, String> {
    let rows = list(&results.part("locks")?["table_1_bytes"]);
    let parts = |row: &Value| -> Vec<f64> {
        let keys = ["library", "support", "daemon"];
        keys.iter().map(|key| row[key].as_f64().unwrap_or(0.0)).collect()
    };
    let total = |method: &str| {
        let row = rows
            .iter()
            .find(|row| row["method"].as_str().is_some_and(|name| name.starts_with(method)));
        row.map(|row| parts(row).iter().sum::<f64>())
    };
    let measured = match (total("lamport"), total("restartable")) {
        (Some(lamport), Some(restartable)) if restartable > 0.0 => {
            ratio(&[lamport], &[restartable])
        }
        _ => Err("a method has no size".into()),
    };
    let ours = rows.iter().map(|row| {
        let parts = parts(row);
        let total: f64 = parts.iter().sum();
        let cells = parts.into_iter().chain([total]).map(|bytes| Cell::Counted(bytes, "B"));
        (row["method"].as_str().unwrap_or_default().to_owned(), cells.collect())
    });
    Ok(Figure {
        claims: vec![Claim {
            what: "size: Lamport over k1/magic (here: restartable sequences)".into(),
            published: Published::Exactly(14.36 / 3.18),
            measured,
        }],
        tables: vec![
            published_footprint(),
            Table {
                caption: "Here, x86-64: bytes of code".into(),
                columns: ["test-and-set", "support", "daemon", "total"].map(str::to_owned).to_vec(),
                rows: ours.collect(),
            },
        ],
        ..Figure::default()
    })
}

/// Table 1 as published.
fn published_footprint() -> Table {
    let rows: [(&str, [f64; 4]); 5] = [
        ("library", [0.68, 0.29, 12.70, 0.08]),
        ("daemon", [0.0, 0.0, 1.66, 0.0]),
        ("module", [2.34, 0.0, 0.0, 0.0]),
        ("kernel", [0.16, 0.04, 0.0, 0.49]),
        ("total", [3.18, 0.33, 14.36, 0.57]),
    ];
    let cell = |kb: &f64| if *kb > 0.0 { Cell::Published(*kb, "KB") } else { Cell::None };
    Table {
        caption: "Published".into(),
        columns: ["k1/magic", "di/ei", "lamport", "system call"].map(str::to_owned).to_vec(),
        rows: rows
            .iter()
            .map(|(name, sizes)| ((*name).to_owned(), sizes.iter().map(cell).collect()))
            .collect(),
    }
}

fn table_2(results: &Results) -> Result<Figure, String> {
    results.part("locks")?;
    let text = |words: &[&str]| words.iter().map(|word| Cell::Text((*word).into())).collect();
    let published: [(&str, [&str; 4]); 4] = [
        ("safety", ["safe", "UNSAFE", "safe", "safe"]),
        ("efficiency", ["excellent", "excellent", "good", "POOR"]),
        ("resource handling", ["easy", "easy", "DIFFICULT", "unnecessary"]),
        ("footprint", ["medium", "small", "large", "small"]),
    ];
    let ours: [(&str, [&str; 6]); 4] = [
        (
            "excludes",
            [
                "microprocesses of one virtual processor",
                "threads of one CPU",
                "handlers of one thread",
                "all threads",
                "all participants",
                "all threads",
            ],
        ),
        (
            "a thread that never leaves can be preempted",
            ["yes", "yes", "no: its signals are blocked", "yes", "yes", "yes"],
        ),
        (
            "resources",
            [
                "a word of the virtual processor",
                "an area for each thread, registered by the C library",
                "none",
                "none",
                "a slot for each thread",
                "a word",
            ],
        ),
        (
            "a thread dies inside",
            [
                "nothing to clean up",
                "nothing to clean up",
                "nothing to clean up",
                "the lock stays taken",
                "cleaned up",
                "the section stays taken",
            ],
        ),
    ];
    Ok(Figure {
        tables: vec![
            Table {
                caption: "Published (capitals: a serious disadvantage)".into(),
                columns: ["k1/magic", "di/ei", "lamport", "system call"]
                    .map(str::to_owned)
                    .to_vec(),
                rows: published.iter().map(|(name, words)| ((*name).into(), text(words))).collect(),
            },
            Table {
                caption: "Here".into(),
                columns: METHODS.map(|(_, title)| title.to_owned()).to_vec(),
                rows: ours.iter().map(|(name, words)| ((*name).into(), text(words))).collect(),
            },
        ],
        notes: vec![
            "Speed is in figure 12, footprint in table 1; the rest is not measured.".into(),
        ],
        ..Figure::default()
    })
}

fn figure_12_mips(results: &Results) -> Result<Figure, String> {
    let cells = &results.part("mips")?["figure_12"];
    let methods = names(cells, "method");
    let operations = names(cells, "operation");
    let find = |method: &str, operation: &str| {
        let mut cells = list(cells).iter();
        cells.find(|cell| cell["method"] == method && cell["operation"] == operation)
    };
    let gain =
        |method: &str, operation: &str| find(method, operation)?["over_system_call"].as_f64();
    let claims = operations.iter().map(|operation| Claim {
        what: format!("{operation}: system call over k1/magic, in instructions"),
        published: Published::AtLeast(7.0),
        measured: gain("k1/magic", operation)
            .and_then(|gain| Spread::of(&[gain]))
            .ok_or_else(|| "was not measured".into()),
    });
    let rows = methods.iter().map(|method| {
        let cell = |operation: &String| {
            let spread = find(method, operation).and_then(|cell| mean(cell, "instructions"));
            spread.map_or(Cell::None, |spread| Cell::Measured(spread, "instructions"))
        };
        (method.clone(), operations.iter().map(cell).collect())
    });
    let series = methods.iter().map(|method| {
        let gains = operations.iter().map(|operation| gain(method, operation)).collect();
        (method.clone(), Origin::Here, gains)
    });
    let names: Vec<_> = operations.iter().map(String::as_str).collect();
    Ok(Figure {
        claims: claims.collect(),
        tables: vec![Table {
            caption: "Instructions of an operation, the kernel's included".into(),
            columns: operations.clone(),
            rows: rows.collect(),
        }],
        charts: vec![gains_chart(&names, series.collect())],
        notes: Vec::new(),
    })
}

fn figure_13_mips(results: &Results) -> Result<Figure, String> {
    let cells = &results.part("mips")?["figure_13"];
    let methods = names(cells, "method");
    let mut crowds: Vec<f64> =
        list(cells).iter().filter_map(|cell| cell["producers"].as_f64()).collect();
    crowds.sort_by(f64::total_cmp);
    crowds.dedup();
    let find = |method: &str, crowd: f64| {
        let mut cells = list(cells).iter();
        cells.find(|cell| cell["method"] == method && cell["producers"].as_f64() == Some(crowd))
    };
    const UNIT: &str = "items_per_million_instructions";
    let gains: Vec<f64> = crowds
        .iter()
        .filter_map(|crowd| find("k1/magic", *crowd)?["over_system_call"].as_f64())
        .collect();
    let rows = methods.iter().map(|method| {
        let cell = |crowd: &f64| {
            let spread = find(method, *crowd).and_then(|cell| mean(cell, UNIT));
            spread.map_or(Cell::None, |spread| Cell::Measured(spread, ""))
        };
        (method.clone(), crowds.iter().map(cell).collect())
    });
    let series = methods.iter().map(|method| Series {
        name: method.clone(),
        points: crowds
            .iter()
            .filter_map(|crowd| Some((*crowd, find(method, *crowd)?[UNIT].as_f64()?)))
            .collect(),
    });
    Ok(Figure {
        claims: vec![Claim {
            what: "k1/magic over system call, all sizes of crowd".into(),
            published: Published::AtLeast(1.9),
            measured: Spread::of(&gains).ok_or_else(|| "was not measured".into()),
        }],
        tables: vec![Table {
            caption: "Items in a million instructions".into(),
            columns: crowds.iter().map(|crowd| format!("({crowd}, {crowd})")).collect(),
            rows: rows.collect(),
        }],
        charts: vec![Chart::Lines(Lines {
            title: "Items in a million instructions, by size of the crowd".into(),
            axes: ["producers, and as many consumers".into(), "items".into()],
            logarithmic: [true, true],
            series: series.collect(),
        })],
        notes: Vec::new(),
    })
}

fn table_1_mips(results: &Results) -> Result<Figure, String> {
    let rows = list(&results.part("mips")?["table_1_bytes"]);
    let parts: Vec<String> = rows
        .first()
        .and_then(Value::as_object)
        .map(|row| row.keys().filter(|key| *key != "method" && *key != "total").cloned().collect())
        .unwrap_or_default();
    let columns: Vec<String> =
        rows.iter().filter_map(|row| Some(row["method"].as_str()?.to_owned())).collect();
    let line = |part: &str| {
        let cell = |row: &Value| match row[part].as_f64() {
            Some(bytes) => Cell::Counted(bytes / 1024.0, "KB"),
            None => Cell::None,
        };
        (part.to_owned(), rows.iter().map(cell).collect())
    };
    let total = |method: &str| {
        rows.iter().find(|row| row["method"] == method).and_then(|row| row["total"].as_f64())
    };
    let measured = match (total("lamport"), total("k1/magic")) {
        (Some(lamport), Some(magic)) => ratio(&[lamport], &[magic]),
        _ => Err("a method has no size".into()),
    };
    Ok(Figure {
        claims: vec![Claim {
            what: "size: Lamport over k1/magic".into(),
            published: Published::Exactly(14.36 / 3.18),
            measured,
        }],
        tables: vec![
            published_footprint(),
            Table {
                caption: "Here, MIPS".into(),
                columns,
                rows: parts.iter().map(String::as_str).chain(["total"]).map(line).collect(),
            },
        ],
        ..Figure::default()
    })
}

/// The different words under `key`, in their order.
fn names(cells: &Value, key: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in list(cells).iter().filter_map(|cell| cell[key].as_str()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The mean of a cell, with its least and greatest run.
fn mean(cell: &Value, unit: &str) -> Option<Spread> {
    let number = |key: &str| cell[key].as_f64();
    Some(Spread { median: number(unit)?, least: number("least")?, most: number("most")? })
}
