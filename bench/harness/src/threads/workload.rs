//! The workloads, their arguments and the marks that Kyocho has to meet.

/// Whether a small or a large value is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// A cost: time or memory.
    Lower,
    /// A rate.
    Higher,
}

/// A mark for Kyocho, as it was stated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// At most this ratio to Go's value, at least for a rate.
    RatioToGo(f64),
    /// At most this value, in the workload's unit.
    AtMost(f64),
}

/// One workload with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name on the command line of a peer.
    pub bench: &'static str,
    /// Its arguments there.
    pub arguments: Vec<u64>,
    /// Its name for readers.
    pub title: String,
    /// Whether less or more is better.
    pub better: Better,
    /// The mark to meet.
    pub target: Option<Target>,
}

/// A second figure of a workload: its field in the result line, its name, its mark.
#[derive(Debug, Clone, Copy)]
pub struct SecondFigure {
    /// The workload.
    pub bench: &'static str,
    /// The field in the line that a peer prints.
    pub field: &'static str,
    /// Its name for readers.
    pub title: &'static str,
    /// The mark to meet.
    pub target: Option<f64>,
}

/// Additional figures of some workloads.
pub const SECOND_FIGURES: [SecondFigure; 4] = [
    SecondFigure {
        bench: "blocked",
        field: "gap_ms",
        title: "longest gap of the ticker, ms",
        target: Some(10.0),
    },
    SecondFigure {
        bench: "page_fault",
        field: "p99_us",
        title: "99th percentile of the stall, us",
        target: None,
    },
    SecondFigure {
        bench: "preempted",
        field: "p99_ms",
        title: "99th percentile of the overshoot, ms",
        target: None,
    },
    SecondFigure {
        bench: "urgent",
        field: "p99_ms",
        title: "99th percentile of the overshoot, ms",
        target: None,
    },
];

impl Workload {
    /// A workload; `target` is its mark.
    pub fn new(
        bench: &'static str,
        arguments: &[u64],
        title: &str,
        target: Option<Target>,
    ) -> Self {
        let better = match bench {
            "semaphores" | "priorities" | "priorities_alone" | "priorities_plain" => Better::Higher,
            _ => Better::Lower,
        };
        Self { bench, arguments: arguments.to_vec(), title: title.into(), better, target }
    }

    /// The workload whose value on Go this one is compared with.
    pub fn baseline(&self) -> &'static str {
        if self.bench == "parked_stackless" { "parked" } else { self.bench }
    }

    /// Its name with its arguments.
    pub fn command(&self) -> String {
        let words = self.arguments.iter().map(|argument| format!(" {argument}"));
        core::iter::once(self.bench.to_owned()).chain(words).collect()
    }
}

/// The workloads named in `only`, or all of them.
///
/// # Errors
/// A name is not that of a workload.
pub fn chosen(only: &[String], quick: bool) -> Result<Vec<Workload>, String> {
    let all = if quick { quick_set() } else { full_set() };
    if let Some(unknown) = only.iter().find(|name| all.iter().all(|work| work.bench != **name)) {
        let mut known: Vec<_> = all.iter().map(|work| work.bench).collect();
        known.dedup();
        return Err(format!("no workload `{unknown}`; there are {}", known.join(", ")));
    }
    let wanted = |work: &Workload| only.is_empty() || only.iter().any(|name| name == work.bench);
    Ok(all.into_iter().filter(wanted).collect())
}

/// All workloads at the size that the marks refer to.
fn full_set() -> Vec<Workload> {
    use Target::{AtMost, RatioToGo};
    let mut set = vec![
        Workload::new("spawn_join", &[], "spawn + join", Some(RatioToGo(0.20))),
        Workload::new("address_space", &[], "new address space", None),
        Workload::new("yield", &[], "yield", Some(RatioToGo(0.30))),
        Workload::new("rendezvous", &[], "rendezvous round trip", Some(RatioToGo(0.25))),
        Workload::new("sieve", &[700], "sieve to 700", Some(RatioToGo(0.45))),
        Workload::new("sieve", &[10_000], "sieve to 10,000", Some(RatioToGo(0.55))),
        Workload::new("sieve_messages", &[700], "sieve to 700, by messages", None),
    ];
    for threads in [2, 4, 8, 16, 32, 64] {
        let title = format!("semaphores ({threads},{threads})");
        let target = (threads == 64).then_some(RatioToGo(1.5));
        set.push(Workload::new("semaphores", &[threads, threads], &title, target));
    }
    set.extend([
        Workload::new("parked", &[10_000], "parked, 10,000", None),
        Workload::new("parked", &[100_000], "parked, 100,000", None),
        Workload::new("parked", &[1_000_000], "parked, 1,000,000", Some(AtMost(5000.0))),
        Workload::new("parked_stackless", &[1_000_000], "parked, stackless", Some(AtMost(600.0))),
        Workload::new("blocked", &[1000], "blocked, 1,000 x 10 ms", Some(RatioToGo(0.6))),
        Workload::new("page_fault", &[], "page fault: neighbour waits", Some(AtMost(50.0))),
        Workload::new("preempted", &[], "preempted: overshoot", Some(AtMost(6.0))),
        Workload::new("urgent", &[], "urgent: overshoot", Some(AtMost(0.2))),
        Workload::new("priorities", &[], "priorities: share of the urgent", Some(RatioToGo(1.98))),
        Workload::new(
            "priorities_alone",
            &[],
            "priorities: without the host",
            Some(RatioToGo(1.9)),
        ),
        Workload::new("priorities_plain", &[], "priorities: beside a plain loop", None),
    ]);
    set
}

/// Each kind of work once, small, without marks.
fn quick_set() -> Vec<Workload> {
    vec![
        Workload::new("spawn_join", &[20_000], "spawn + join", None),
        Workload::new("address_space", &[500], "new address space", None),
        Workload::new("yield", &[100_000], "yield", None),
        Workload::new("rendezvous", &[20_000], "rendezvous round trip", None),
        Workload::new("sieve", &[700], "sieve to 700", None),
        Workload::new("sieve", &[2000], "sieve to 2,000", None),
        Workload::new("sieve_messages", &[700], "sieve to 700, by messages", None),
        Workload::new("semaphores", &[2, 2, 100], "semaphores (2,2)", None),
        Workload::new("semaphores", &[64, 64, 100], "semaphores (64,64)", None),
        Workload::new("parked", &[10_000], "parked, 10,000", None),
        Workload::new("parked_stackless", &[10_000], "parked, stackless", None),
        Workload::new("blocked", &[100], "blocked, 100 x 10 ms", None),
        Workload::new("page_fault", &[40], "page fault: neighbour waits", None),
        Workload::new("preempted", &[40], "preempted: overshoot", None),
        Workload::new("urgent", &[40], "urgent: overshoot", None),
        Workload::new("priorities", &[500], "priorities: share of the urgent", None),
        Workload::new("priorities_alone", &[500], "priorities: without the host", None),
        Workload::new("priorities_plain", &[500], "priorities: beside a plain loop", None),
    ]
}
