//! Random look-ups of mapped pages, all tables one after the other in each repeat. The figures are
//! processor time, which excludes other programs but includes their effect on the caches.

use kyocho_pagetable::{
    Clustered, ClusteredLine, FrameNumber, Guarded, Hashed, Linear, PageNumber, PageTable, Radix,
    Rights,
};
use kyocho_sys::clock::thread_cpu_ns;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const REPEATS: usize = 9;
const LOOKUPS: usize = 1 << 17;
const PAGES: u64 = 1 << 19;
const ISLAND: u64 = 16;

/// A table to look pages up in. The sum of the frames proves that it found all.
struct Subject {
    name: &'static str,
    bytes: Option<usize>,
    look: Box<dyn Fn(&[PageNumber]) -> u64>,
    ns: Vec<f64>,
}

fn subject<T: PageTable + 'static>(
    name: &'static str,
    mut table: T,
    pages: &[PageNumber],
) -> Subject {
    for &page in pages {
        let frame = FrameNumber::new(frame_of(page)).expect("32 bits");
        table.map(page, frame, Rights::READ).expect("in reach");
    }
    let bytes = Some(table.bytes());
    let look = move |pages: &[PageNumber]| {
        pages.iter().map(|&page| table.lookup(page).map_or(0, |found| found.frame.get())).sum()
    };
    Subject { name, bytes, look: Box::new(look), ns: Vec::new() }
}

/// The frame of a page, the same in every table.
fn frame_of(page: PageNumber) -> u64 {
    page.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

/// Prints a line for each table: nanoseconds per look-up, bytes per page, and ratios to the first.
pub fn run(shape: &str) -> Result<(), String> {
    let mut random = Random(42);
    let pages: Vec<PageNumber> = match shape {
        "dense" => (0..PAGES).map(|number| page(0x7f00_0000 + number)).collect(),
        "islands" => (0..PAGES / ISLAND)
            .flat_map(|_| {
                let first = random.below(1 << 32) * ISLAND;
                (0..ISLAND).map(move |number| page(first + number))
            })
            .collect(),
        "sparse" => (0..PAGES / 8).map(|_| page(random.below(1 << 36))).collect(),
        other => return Err(format!("no such shape: {other}; use dense, islands or sparse")),
    };
    let order: Vec<PageNumber> =
        (0..LOOKUPS).map(|_| pages[random.below(pages.len() as u64) as usize]).collect();
    let mut subjects = subjects(shape, &pages);
    let expected: u64 = order.iter().map(|&page| frame_of(page)).sum();
    for _ in 0..REPEATS {
        for subject in &mut subjects {
            let start_ns = thread_cpu_ns();
            let sum = (subject.look)(&order);
            let ns = (thread_cpu_ns() - start_ns) as f64 / LOOKUPS as f64;
            if sum != expected {
                return Err(format!("{} found {sum}, not {expected}", subject.name));
            }
            subject.ns.push(ns);
        }
    }
    for subject in &subjects {
        let ratios: Vec<f64> =
            subject.ns.iter().zip(&subjects[0].ns).map(|(ns, base)| ns / base).collect();
        let bytes = subject.bytes.map(|bytes| bytes as f64 / pages.len() as f64);
        println!(
            "{}",
            json!({ "bench": "maps", "shape": shape, "name": subject.name, "ns": median(&subject.ns),
                "ratio": spread(&ratios), "bytes": bytes })
        );
    }
    Ok(())
}

/// The baseline first: linear in a dense space, the radix tree elsewhere.
fn subjects(shape: &str, pages: &[PageNumber]) -> Vec<Subject> {
    let mut subjects = Vec::new();
    if let ("dense", Some(&first), Some(&last)) = (shape, pages.first(), pages.last()) {
        subjects.push(subject("linear", Linear::new(&(first..=last)), pages));
    }
    subjects.extend([
        subject("radix, 4 levels", Radix::<4>::new(), pages),
        subject("hashed", Hashed::new(), pages),
        subject("clustered, 4", Clustered::<4>::new(), pages),
        subject("clustered, 8 in a line", ClusteredLine::new(), pages),
        subject("clustered, 16", Clustered::<16>::new(), pages),
        subject("guarded", Guarded::new(), pages),
    ]);
    let map: hashbrown::HashMap<u64, u64> =
        pages.iter().map(|&page| (page.get(), frame_of(page))).collect();
    subjects.push(Subject {
        name: "hashbrown",
        bytes: Some(map.allocation_size()),
        look: Box::new(move |pages| pages.iter().filter_map(|page| map.get(&page.get())).sum()),
        ns: Vec::new(),
    });
    let map: BTreeMap<u64, u64> = pages.iter().map(|&page| (page.get(), frame_of(page))).collect();
    subjects.push(Subject {
        name: "BTreeMap",
        bytes: None,
        look: Box::new(move |pages| pages.iter().filter_map(|page| map.get(&page.get())).sum()),
        ns: Vec::new(),
    });
    subjects
}

fn page(number: u64) -> PageNumber {
    PageNumber::new(number).expect("52 bits")
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn spread(values: &[f64]) -> Value {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |tenth: usize| sorted[(sorted.len() - 1) * tenth / 10];
    json!({ "median": at(5), "p10": at(1), "p90": at(9) })
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }
}
