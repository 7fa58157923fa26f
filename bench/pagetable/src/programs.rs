//! Traces of real programs, on each TLB and each table.

use kyocho_pagetable::placement::{AddressSpace, Policy};
use kyocho_pagetable::tlb::{Organisation, Outcome, Tlb};
use kyocho_pagetable::trace::{Recorder, Trace, page_of_lackey_line};
use kyocho_pagetable::{
    Clustered, ClusteredLine, Guarded, Hashed, LineCache, LineSet, PageNumber, PageTable, Radix,
};
use serde_json::json;
use std::io::BufRead;

const ENTRIES: usize = 64;
/// The R4400 has 48 entries, each of two pages.
const PAIRS: usize = 48;
/// Most misses that are recorded, to be walked in each table.
const MISSES_MAX: usize = 1 << 24;

type Space = AddressSpace<Clustered<16>>;

/// The organisations; the first, 64 entries of 4 KiB pages, is the baseline.
const ORGANISATIONS: [(&str, Organisation, Policy, usize); 9] = [
    ("4 KiB pages", Organisation::Pages, Policy::Scattered, ENTRIES),
    ("pairs (R4400, 48 entries)", Organisation::Pairs, Policy::Scattered, PAIRS),
    ("superpages, at the first touch", Organisation::Superpages, superpages(1), ENTRIES),
    ("superpages, at 12 of 16", Organisation::Superpages, superpages(12), ENTRIES),
    ("superpages, at 16 of 16", Organisation::Superpages, superpages(16), ENTRIES),
    ("complete sub-blocks", Organisation::CompleteSubblocks, Policy::Scattered, ENTRIES),
    (
        "complete sub-blocks, prefetched",
        Organisation::CompleteSubblocksPrefetched,
        Policy::Scattered,
        ENTRIES,
    ),
    ("partial sub-blocks, all placed", Organisation::PartialSubblocks, subblocks(100), ENTRIES),
    ("partial sub-blocks, 80 % placed", Organisation::PartialSubblocks, subblocks(80), ENTRIES),
];

const fn superpages(promote_at: u32) -> Policy {
    Policy::Superpages { promote_at }
}

const fn subblocks(placed_percent: u64) -> Policy {
    Policy::Subblocks { placed_percent }
}

/// The simulation of one organisation.
struct Subject {
    tlb: Tlb,
    space: Space,
    misses: u64,
    subblock_misses: u64,
}

impl Subject {
    fn access(&mut self, page: PageNumber) -> Result<Outcome, String> {
        let mut outcome = self.tlb.access(page, self.space.table(), &mut ());
        if outcome == Outcome::Unmapped {
            self.space.touch(page).map_err(|why| why.to_string())?;
            outcome = self.tlb.access(page, self.space.table(), &mut ());
        }
        match outcome {
            Outcome::Miss => self.misses += 1,
            Outcome::SubblockMiss => self.subblock_misses += 1,
            _ => {}
        }
        Ok(outcome)
    }
}

/// A program's run through all organisations.
pub struct Run {
    subjects: Vec<Subject>,
    references: u64,
    /// Pages in the order of their first touch.
    touched: Vec<PageNumber>,
    /// Pages that missed in the first organisation.
    missed: Vec<PageNumber>,
    last: Option<PageNumber>,
}

impl Run {
    fn new() -> Self {
        let subjects = ORGANISATIONS.map(|(_, organisation, policy, entries)| Subject {
            tlb: Tlb::new(organisation, entries),
            space: AddressSpace::new(Clustered::new(), policy),
            misses: 0,
            subblock_misses: 0,
        });
        let subjects = subjects.into();
        Self { subjects, references: 0, touched: Vec::new(), missed: Vec::new(), last: None }
    }

    fn touch(&mut self, page: PageNumber) -> Result<(), String> {
        if self.last.replace(page) == Some(page) {
            return Ok(()); // a hit everywhere that changes nothing
        }
        for (place, subject) in self.subjects.iter_mut().enumerate() {
            let faults = subject.space.touched();
            let missed = subject.access(page)? != Outcome::Hit;
            if place == 0 && missed && self.missed.len() < MISSES_MAX {
                self.missed.push(page);
            }
            if place == 0 && subject.space.touched() > faults {
                self.touched.push(page);
            }
        }
        Ok(())
    }

    /// Prints a line for each organisation and each table.
    pub fn print(&self, program: &str) {
        let base = self.subjects.first().map_or(1, |subject| subject.misses.max(1)) as f64;
        for (subject, (name, ..)) in self.subjects.iter().zip(ORGANISATIONS) {
            let all = subject.misses + subject.subblock_misses;
            println!(
                "{}",
                json!({ "bench": "tlb", "program": program, "name": name, "misses": subject.misses,
                    "subblock_misses": subject.subblock_misses, "ratio": all as f64 / base,
                    "per_1000": all as f64 * 1e3 / self.references.max(1) as f64,
                    "references": self.references, "pages": self.touched.len() })
            );
        }
        self.walk(program, "radix, 4 levels", Radix::<4>::new);
        self.walk(program, "hashed", Hashed::new);
        self.walk(program, "clustered, 4", Clustered::<4>::new);
        self.walk(program, "clustered, 8 in a line", ClusteredLine::new);
        self.walk(program, "clustered, 16", Clustered::<16>::new);
        self.walk(program, "guarded", Guarded::new);
    }

    /// Lines of each miss's walk in one table, and its memory with one entry per page and with
    /// sub-blocks.
    fn walk<T: PageTable>(&self, program: &str, name: &str, new: impl Fn() -> T) {
        let filled = |policy| {
            let mut space = AddressSpace::new(new(), policy);
            let reached = self.touched.iter().filter(|&&page| space.touch(page).is_ok()).count();
            (space, reached)
        };
        let (space, reached) = filled(Policy::Scattered);
        let (compact, _) = filled(subblocks(100));
        let (mut lines, mut cache, mut looks) = (LineSet::default(), LineCache::default(), 0);
        for &page in &self.missed {
            lines.clear();
            space.table().walk(page, &mut lines);
            looks += lines.count();
            lines.iter().for_each(|line| cache.access(line));
        }
        let misses = self.missed.len().max(1) as f64;
        let bytes = |space: &AddressSpace<T>| space.table().bytes() as f64 / reached.max(1) as f64;
        println!(
            "{}",
            json!({ "bench": "walks", "program": program, "name": name,
                "lines": looks as f64 / misses, "lines_missed": cache.misses() as f64 / misses,
                "bytes": bytes(&space), "bytes_subblocks": bytes(&compact),
                "out_of_reach": self.touched.len() - reached })
        );
    }
}

/// Runs lackey's output.
pub fn of_lackey(input: impl BufRead) -> Result<Run, String> {
    let mut run = Run::new();
    for_each_page(input, |page| {
        run.references += 1;
        run.touch(page).map(|()| true)
    })?;
    if run.references == 0 {
        return Err("no line of valgrind --tool=lackey --trace-mem=yes on standard input".into());
    }
    Ok(run)
}

/// Runs a recording.
pub fn of_recording(file: &str) -> Result<Run, String> {
    let bytes = std::fs::read(file).map_err(|why| format!("cannot read {file}: {why}"))?;
    let trace = Trace::new(&bytes).map_err(|why| format!("{file}: {why}"))?;
    let mut run = Run::new();
    run.references = trace.references();
    for page in trace {
        run.touch(page.map_err(|why| format!("{file}: {why}"))?)?;
    }
    Ok(run)
}

/// Records lackey's output.
pub fn record(input: impl BufRead, file: &str, bytes_max: usize) -> Result<(), String> {
    let mut recorder = Recorder::default();
    for_each_page(input, |page| {
        recorder.touch(page);
        Ok(recorder.bytes() < bytes_max)
    })?;
    std::fs::write(file, recorder.finish()).map_err(|why| format!("cannot write {file}: {why}"))
}

/// Calls `visit` with each touch until it returns that it has enough.
fn for_each_page(
    mut input: impl BufRead,
    mut visit: impl FnMut(PageNumber) -> Result<bool, String>,
) -> Result<(), String> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line).map_err(|why| why.to_string())?;
        if read == 0 {
            return Ok(());
        }
        match page_of_lackey_line(&line) {
            Some(page) if !visit(page)? => return Ok(()),
            _ => {}
        }
    }
}
