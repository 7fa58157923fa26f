//! Paper 2: tables 3 and 4, and the page tables that it asks for.

use super::Entry;
use crate::PartName;
use crate::paper::figure::{Bars, Cell, Chart, Claim, Figure, Origin, Published, Table};
use crate::paper::results::{Results, first, list, ratio, spread, with};
use crate::statistics::Spread;
use serde_json::Value;

pub(super) const ENTRIES: [Entry; 5] = [
    Entry {
        id: "2.table3",
        title: "Table 3: lines for the port to a new machine",
        there: "Mach 3 (MK83) and Lites 1.1.u3, changed for the NWS-5000 (R4400)",
        parts: &[PartName::Lines],
        workloads: &[],
        read: table_3,
        why: "Kyocho runs above Linux, so a port needs no drivers, no boot and no TLB handlers: \
              what depends on the processor is the switch of contexts, the restartable sequences, \
              and the start of UNIX programs.",
    },
    Entry {
        id: "2.table4",
        title: "Table 4: ByteBenchmark under the UNIX server",
        there: "NEWS NWS-5000 (R4400, 32 MB), NEWS-OS 4 against Mach 3 with Lites, 1997; times have \
                a meaning only relative to each other",
        parts: &[PartName::Unix],
        workloads: &[],
        read: table_4,
        why: "Both servers cost nothing where a program computes. Calls that need no server are \
              made by the host here, and cost less than in Lites; those that the server answers \
              cost a round trip to another process in both.",
    },
    Entry {
        id: "2.pagetables",
        title: "§2: time and space of page tables for 64-bit spaces",
        there: "not measured: the paper announces it for the finished port",
        parts: &[PartName::Pagetable],
        workloads: &[],
        read: page_tables,
        why: "A clustered page table keeps the entries of neighbouring pages in one cache line, and \
              allocates nothing for the empty parts of the space, as the paper expects.",
    },
    Entry {
        id: "2.tlb",
        title: "§2: TLB misses with superpages and sub-blocks",
        there: "not measured: the paper refers to simulations",
        parts: &[PartName::Pagetable],
        workloads: &[],
        read: tlb,
        why: "Traces of real programs through a model of a TLB of 64 entries. Superpages and \
              sub-blocks cover more memory with each entry, so fewer accesses miss.",
    },
    Entry {
        id: "2.walks",
        title: "§2: memory that a TLB miss reads, and size of the tables of real programs",
        there: "not measured: the paper announces it for the finished port",
        parts: &[PartName::Pagetable],
        workloads: &[],
        read: walks,
        why: "The address space of a real program is a few dense parts far from each other, for \
              which clustered and guarded tables are made.",
    },
];

fn table_3(results: &Results) -> Result<Figure, String> {
    let sets = &results.part("lines")?["sets"];
    let groups = |name: &str| -> Vec<(String, Vec<Cell>)> {
        let groups = first(sets, "set", name).map_or(&[][..], |set| list(&set["groups"]));
        let row = |group: &Value| {
            let lines = group["lines"].as_f64()?;
            Some((group["group"].as_str()?.to_owned(), vec![Cell::Counted(lines, "lines")]))
        };
        groups.iter().filter_map(row).collect()
    };
    let published: [(&str, f64); 21] = [
        ("independent of MIPS: tools (COFF)", 150.0),
        ("independent of MIPS: microkernel (endian)", 50.0),
        ("independent of MIPS: microkernel (SCSI)", 500.0),
        ("independent of MIPS: Lites (fixes)", 50.0),
        ("MIPS: mips.cpu.h", 525.0),
        ("MIPS: mips.init.c", 326.0),
        ("MIPS: trap.c", 72.0),
        ("MIPS: pmap.c", 56.0),
        ("MIPS: as.macro.h", 234.0),
        ("MIPS: start.s", 383.0),
        ("MIPS: locore.s", 622.0),
        ("MIPS: tlbctl.s", 1209.0),
        ("MIPS: cache.s", 1140.0),
        ("MIPS: endian", 150.0),
        ("MIPS: Lites (signal)", 1315.0),
        ("NEWS: ROM", 300.0),
        ("NEWS: diskless", 1209.0),
        ("NEWS: APbus", 3881.0),
        ("NEWS: ESCC", 170.0),
        ("NEWS: SCSI", 2302.0),
        ("NEWS: Lites (NEWS-OS 4)", 500.0),
    ];
    let table = |caption: &str, name: &str| Table {
        caption: caption.into(),
        columns: vec!["here".into()],
        rows: groups(name),
    };
    Ok(Figure {
        tables: vec![
            Table {
                caption: "Published: lines changed or added".into(),
                columns: vec!["lines".into()],
                rows: published
                    .iter()
                    .map(|(name, lines)| {
                        ((*name).to_owned(), vec![Cell::Published(*lines, "lines")])
                    })
                    .collect(),
            },
            table("Here: by dependence on the processor", "machine"),
            table("Here: the UNIX server for Linux programs", "linux"),
            table("Here: the emulation of FreeBSD, as NEWS-OS 4 was emulated there", "freebsd"),
        ],
        notes: vec![
            "The published numbers of round tens are approximate in the paper. Lines here are \
             counted by `bench/lines`, without comments and tests."
                .into(),
        ],
        ..Figure::default()
    })
}

/// Table 4 as published, in ms: real, user and system time under NEWS-OS, then under Lites.
const PUBLISHED: [(&str, [f64; 6]); 8] = [
    ("pipes", [0.6, 0.0, 0.2, 8.6, 0.5, 1.3]),
    ("scall", [6.1, 0.7, 5.3, 6.0, 3.3, 2.7]),
    ("fcall", [3.5, 3.5, 0.0, 4.0, 3.9, 0.0]),
    ("fcalla", [0.2, 0.2, 0.0, 0.3, 0.2, 0.0]),
    ("sieve", [0.1, 0.1, 0.0, 0.2, 0.2, 0.0]),
    ("dwrite", [2.0, 0.0, 0.1, 1.5, 0.0, 0.3]),
    ("dread", [0.1, 0.0, 0.1, 2.0, 0.2, 0.5]),
    ("sh", [0.5, 0.0, 0.0, 0.6, 0.0, 0.2]),
];

fn table_4(results: &Results) -> Result<Figure, String> {
    let unix = results.part("unix")?;
    let rows = &unix["table_4"]["rows"];
    let row = |name: &str| first(rows, "name", name);
    let value =
        |name: &str, side: &str, key: &str| row(name).and_then(|row| spread(&row[side][key]));
    // Speed inside over natively, within a round.
    let speed = |name: &str| {
        let prefix = format!("{name}:");
        let lines = list(&unix["lines"]).iter();
        let mut own = lines
            .filter(|line| line["what"].as_str().is_some_and(|what| what.starts_with(&prefix)));
        own.next().and_then(spread)
    };
    let claims = PUBLISHED.iter().map(|(name, times)| Claim {
        what: format!("{name}: speed under the server over natively"),
        published: Published::Exactly(times[0] / times[3]),
        measured: speed(name).ok_or_else(|| "was not measured".into()),
    });
    let published = PUBLISHED.iter().map(|(name, times)| {
        ((*name).to_owned(), times.iter().map(|ms| Cell::Published(*ms, "ms")).collect())
    });
    let ours = PUBLISHED.iter().map(|(name, _)| {
        let native = ["real", "user", "sys"].map(|key| value(name, "native", key));
        let inside = ["real", "user", "sys", "server"].map(|key| value(name, "inside", key));
        let cell = |spread: Option<Spread>| {
            spread.map_or(Cell::None, |spread| Cell::Measured(spread, "ns"))
        };
        ((*name).to_owned(), native.into_iter().chain(inside).map(cell).collect())
    });
    let others = list(rows).iter().filter(|row| row["in_paper"] == false).filter_map(|row| {
        let name = row["name"].as_str()?;
        let cells = ["native", "inside"]
            .map(|side| value(name, side, "real").map_or(Cell::None, |s| Cell::Measured(s, "ns")));
        let speed = speed(name).map_or(Cell::None, |s| Cell::Measured(s, "of native"));
        Some((row["what"].as_str()?.to_owned(), cells.into_iter().chain([speed]).collect()))
    });
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let median = |name: &&str| speed(name).map(|spread| spread.median);
    let names: Vec<&str> = PUBLISHED.iter().map(|(name, _)| *name).collect();
    Ok(Figure {
        claims: claims.collect(),
        charts: vec![Chart::Bars(Bars {
            title: "Speed under the UNIX server, natively 1".into(),
            height: "of native speed".into(),
            logarithmic: true,
            groups: words(&names),
            series: vec![
                (
                    "published (Lites)".into(),
                    Origin::Paper,
                    PUBLISHED.iter().map(|(_, times)| Some(times[0] / times[3])).collect(),
                ),
                ("here".into(), Origin::Here, names.iter().map(median).collect()),
            ],
        })],
        tables: vec![
            Table {
                caption: "Published".into(),
                columns: words(&[
                    "NEWS-OS real",
                    "NEWS-OS user",
                    "NEWS-OS sys",
                    "MK+Lites real",
                    "MK+Lites user",
                    "MK+Lites sys",
                ]),
                rows: published.collect(),
            },
            Table {
                caption: "Here".into(),
                columns: words(&[
                    "native real",
                    "native user",
                    "native sys",
                    "inside real",
                    "inside user",
                    "inside sys",
                    "of the server",
                ]),
                rows: ours.collect(),
            },
            Table {
                caption: "Here: lines that the paper does not have".into(),
                columns: words(&["native", "inside", "speed"]),
                rows: others.collect(),
            },
        ],
        notes: unix["table_4"]["note"].as_str().map(str::to_owned).into_iter().collect(),
    })
}

/// The different names of a bench's lines, in their order.
fn names(lines: &Value, bench: &str, key: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in with(lines, "bench", bench).filter_map(|line| line[key].as_str()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn page_tables(results: &Results) -> Result<Figure, String> {
    let lines = &results.part("pagetable")?["lines"];
    let values = |shape: &str, name: &str, key: &str| -> Vec<f64> {
        with(lines, "bench", "maps")
            .filter(|line| line["shape"] == shape && line["name"] == name)
            .filter_map(|line| line[key].as_f64())
            .collect()
    };
    const CLUSTERED: &str = "clustered, 8 in a line";
    const RADIX: &str = "radix, 4 levels";
    let claim = |what: &str, shape: &str, key: &str| Claim {
        what: what.into(),
        published: Published::Words("expected to be better"),
        measured: ratio(&values(shape, RADIX, key), &values(shape, CLUSTERED, key)),
    };
    let shapes = names(lines, "maps", "shape");
    let tables = shapes.iter().map(|shape| {
        let mut kinds: Vec<String> = Vec::new();
        for line in with(lines, "bench", "maps").filter(|line| line["shape"] == **shape) {
            let name = line["name"].as_str().unwrap_or_default();
            if !kinds.iter().any(|known| known == name) {
                kinds.push(name.to_owned());
            }
        }
        let rows = kinds.into_iter().map(|kind| {
            let ns = Spread::of(&values(shape, &kind, "ns"));
            let bytes = values(shape, &kind, "bytes").first().copied();
            let cells = vec![
                ns.map_or(Cell::None, |ns| Cell::Measured(ns, "ns")),
                bytes.map_or(Cell::None, |bytes| Cell::Counted(bytes, "B")),
            ];
            (kind, cells)
        });
        Table {
            caption: format!("Random look-ups, {shape} space"),
            columns: vec!["a look-up".into(), "memory for a page".into()],
            rows: rows.collect(),
        }
    });
    let kinds: Vec<String> =
        vec!["linear".into(), RADIX.into(), CLUSTERED.into(), "guarded".into()];
    let groups = names(lines, "maps", "shape");
    let series = kinds.iter().filter_map(|kind| {
        let heights: Vec<Option<f64>> = groups
            .iter()
            .map(|shape| Spread::of(&values(shape, kind, "ns")).map(|spread| spread.median))
            .collect();
        heights.iter().any(Option::is_some).then(|| (kind.clone(), Origin::Here, heights))
    });
    Ok(Figure {
        claims: vec![
            claim("space of islands, time: radix tree over clustered", "islands", "ns"),
            claim("space of islands, memory: radix tree over clustered", "islands", "bytes"),
        ],
        charts: vec![Chart::Bars(Bars {
            title: "Time of a look-up".into(),
            height: "ns".into(),
            logarithmic: false,
            groups: groups.clone(),
            series: series.collect(),
        })],
        tables: tables.collect(),
        notes: Vec::new(),
    })
}

fn tlb(results: &Results) -> Result<Figure, String> {
    let lines = &results.part("pagetable")?["lines"];
    let programs = names(lines, "tlb", "program");
    let kinds = names(lines, "tlb", "name");
    let value = |program: &str, kind: &str, key: &str| {
        let mut own = with(lines, "bench", "tlb")
            .filter(|line| line["program"] == program && line["name"] == kind);
        own.next().and_then(|line| line[key].as_f64())
    };
    let rows = kinds.iter().map(|kind| {
        let cell = |program: &String| {
            value(program, kind, "per_1000").map_or(Cell::None, |n| Cell::Counted(n, "per 1000"))
        };
        (kind.clone(), programs.iter().map(cell).collect())
    });
    let claims = kinds.iter().skip(1).filter_map(|kind| {
        let ratios: Vec<f64> = programs
            .iter()
            .filter_map(|program| {
                let (base, here) =
                    (value(program, kinds.first()?, "misses")?, value(program, kind, "misses")?);
                (here > 0.0).then(|| base / here)
            })
            .collect();
        Some(Claim {
            what: format!("misses: {} over {kind}", kinds.first()?),
            published: Published::Words("fewer misses"),
            measured: Spread::of(&ratios).ok_or_else(|| "no misses".into()),
        })
    });
    let series = kinds.iter().map(|kind| {
        let heights = programs.iter().map(|program| value(program, kind, "per_1000")).collect();
        (kind.clone(), Origin::Here, heights)
    });
    Ok(Figure {
        claims: claims.collect(),
        charts: vec![Chart::Bars(Bars {
            title: "TLB misses in a thousand accesses".into(),
            height: "misses".into(),
            logarithmic: true,
            groups: programs.clone(),
            series: series.collect(),
        })],
        tables: vec![Table {
            caption:
                "TLB misses in a thousand accesses; the spread of a ratio is over the programs"
                    .into(),
            columns: programs.clone(),
            rows: rows.collect(),
        }],
        notes: notes(results)?,
    })
}

fn walks(results: &Results) -> Result<Figure, String> {
    let lines = &results.part("pagetable")?["lines"];
    let tables = names(lines, "walks", "program").into_iter().map(|program| {
        let rows =
            with(lines, "bench", "walks").filter(|line| line["program"] == *program).map(|line| {
                let cell = |key: &str, unit| {
                    line[key].as_f64().map_or(Cell::None, |n| Cell::Counted(n, unit))
                };
                let cells = vec![
                    cell("lines", "lines"),
                    cell("lines_missed", "lines"),
                    cell("bytes", "B"),
                    cell("bytes_subblocks", "B"),
                ];
                (line["name"].as_str().unwrap_or_default().to_owned(), cells)
            });
        Table {
            caption: format!("Misses of {program}"),
            columns: vec![
                "cache lines a miss".into(),
                "of these not in 32 KiB".into(),
                "memory for a page".into(),
                "with sub-blocks".into(),
            ],
            rows: rows.collect(),
        }
    });
    Ok(Figure { tables: tables.collect(), notes: notes(results)?, ..Figure::default() })
}

/// The programs that were not traced, and why.
fn notes(results: &Results) -> Result<Vec<String>, String> {
    let notes = list(&results.part("pagetable")?["notes"]).iter();
    Ok(notes.filter_map(|note| note.as_str().map(str::to_owned)).collect())
}
