//! Paper 1, §6.3: a user scheduler from outside the runtime. Stride scheduling (Waldspurger and
//! Weihl, 1995): every microprocess gets processor time in proportion to its tickets.
//!
//!     cargo run --release --example scheduler
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use kyocho::microprocess::scheduler::{Arrival, Entry, Heap, Scheduler, Slice, report, simulate};
use kyocho::microprocess::{Builder, Priority, Runtime, sleep};

/// The word of an entry that holds its *pass*: the time it used, divided by its tickets.
const PASS: usize = 0;
const SLICE_NS: u64 = 2_000_000;

/// Time charged to microprocesses, by their number of tickets.
type Used = [AtomicU64; TICKETS_MAX + 1];
const TICKETS_MAX: usize = 4;

/// The longest time charged at once: on a busy host a slice may end late.
static LONGEST_NS: AtomicU64 = AtomicU64::new(0);

/// Runs the entry with the least pass. The parameter of a microprocess is its number of tickets.
struct Stride {
    waiting: Heap,
    /// The pass of the entry that ran last. New and woken entries start there, so none saves up
    /// time.
    now: u64,
    used: Arc<Used>,
}

fn tickets(entry: Entry) -> u64 {
    entry.parameter().max(1)
}

impl Scheduler for Stride {
    fn name(&self) -> &'static str {
        "stride"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, _now_ns: u64) {
        let pass = match arrival {
            Arrival::Spawned | Arrival::Woken | Arrival::Unblocked | Arrival::Moved => {
                entry.word(PASS).max(self.now)
            }
            _ => entry.word(PASS),
        };
        entry.set_word(PASS, pass);
        self.waiting.push(entry, pass);
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        let next = self.waiting.pop()?;
        self.now = self.now.max(next.word(PASS));
        Some(next)
    }

    fn remove(&mut self, entry: Entry) {
        self.waiting.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.waiting.first().map(Entry::priority)
    }

    fn preempts(&self, running: Entry, slice: Slice, _now_ns: u64) -> bool {
        slice == Slice::Over && self.waiting.least().is_some_and(|pass| pass <= running.word(PASS))
    }

    fn slice_ns(&self, _entry: Entry) -> u64 {
        SLICE_NS
    }

    fn charge(&mut self, entry: Entry, ran_ns: u64, _now_ns: u64) {
        entry.set_word(PASS, entry.word(PASS) + ran_ns / tickets(entry));
        LONGEST_NS.fetch_max(ran_ns, Ordering::Relaxed);
        if let Some(used) = self.used.get(entry.parameter() as usize) {
            used.fetch_add(ran_ns, Ordering::Relaxed);
        }
    }
}

fn main() {
    let used: Arc<Used> = Arc::default();
    let make = {
        let used = Arc::clone(&used);
        move |_| -> Box<dyn Scheduler> {
            Box::new(Stride { waiting: Heap::new(), now: 0, used: Arc::clone(&used) })
        }
    };
    let summary = simulate(1995, 2, 10_000, &make).expect("nobody lost, nobody twice");
    println!("simulated: {} spawned, {} picked", summary.spawned, summary.picked);
    used.iter().for_each(|used| used.store(0, Ordering::Relaxed));
    LONGEST_NS.store(0, Ordering::Relaxed);

    let runtime = Runtime::builder().virtual_processors(1).scheduler(make).build();
    let counted = Arc::clone(&used);
    runtime.run(move || compete(&counted)).expect("somebody can always run");
    let [_, one, two, _, four] = used.each_ref().map(|used| used.load(Ordering::Relaxed));
    for (tickets, used_ns) in [(1, one), (2, two), (4, four)] {
        let share = used_ns as f64 / (one + two + four) as f64;
        let due = f64::from(tickets) / 7.0;
        println!("{tickets} tickets: {:.1} % of the time, {:.1} due", share * 100.0, due * 100.0);
    }
    // Stride promises, whatever the host does, that no entry is ahead or behind by more than the
    // longest slice.
    let passes = [one, two / 2, four / 4];
    let spread = passes.iter().max().zip(passes.iter().min()).map(|(most, least)| most - least);
    let longest_ns = LONGEST_NS.load(Ordering::Relaxed);
    println!("apart by {:?} ns per ticket, longest slice {longest_ns} ns", spread.unwrap_or(0));
    assert!(spread.is_some_and(|spread| spread <= 2 * longest_ns));
}

/// Lets three microprocesses with 1, 2 and 4 tickets compute for a second.
fn compete(used: &Used) {
    let stop = Arc::new(AtomicBool::new(false));
    let compute = |tickets| {
        let stop = Arc::clone(&stop);
        let body = move || while !stop.load(Ordering::Relaxed) {};
        Builder::new().parameter(tickets).spawn(body).expect("memory for a stack")
    };
    let workers = [1, 2, 4].map(compute);
    while used.iter().map(|used| used.load(Ordering::Relaxed)).sum::<u64>() < 1_000_000_000 {
        sleep(Duration::from_millis(20));
    }
    stop.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().expect("it only counts"));
    assert_eq!((report().name, report().fault), (Some("stride"), None));
}
