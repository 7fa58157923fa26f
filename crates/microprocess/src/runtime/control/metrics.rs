//! Counters in Prometheus' text format, version 0.0.4.

use core::fmt::Write;

use super::snapshot::Snapshot;
use crate::data::statistics::Statistics;

/// A counter: its name, its help text, and how to read it.
type Metric = (&'static str, &'static str, fn(&Statistics) -> u64);

/// The counters of each virtual processor.
const COUNTERS: &[Metric] = &[
    ("switches", "A microprocess began to run on a virtual processor.", |c| c.switches),
    ("spawned", "A microprocess was created.", |c| c.spawned),
    ("ended", "A microprocess ended.", |c| c.ended),
    ("blocked", "A kernel thread slept in the kernel and lost its virtual processor.", |c| {
        c.blocked
    }),
    ("unblocked", "Such a thread woke up.", |c| c.unblocked),
    ("resumed", "A kernel thread of the pool received a virtual processor.", |c| c.resumed),
    ("preempted", "A microprocess was stopped in code that does not call the runtime.", |c| {
        c.preempted
    }),
    ("shared", "A runnable microprocess moved to an idle virtual processor.", |c| c.shared),
    ("gathered", "A virtual processor moved all its microprocesses to another one.", |c| {
        c.gathered
    }),
    (
        "travels",
        "A channel or lock was used by another virtual processor than the last time.",
        |c| c.travels,
    ),
    ("completed", "An operation of input or output completed.", |c| c.completed),
    ("timers", "A timer expired.", |c| c.timers),
];

/// The counters of an address space.
///
/// ```
/// use kyocho_microprocess::control::{metrics, snapshot};
/// let text = metrics::text(&snapshot(0));
/// assert!(text.contains("# TYPE kyocho_switches_total counter"));
/// ```
#[must_use]
pub fn text(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    let process = snapshot.process;
    for (name, help, value) in COUNTERS {
        header(&mut out, &format!("{name}_total"), help, "counter");
        for vp in &snapshot.virtual_processors {
            let labels = format!("pid=\"{process}\",vp=\"{}\"", vp.number);
            line(&mut out, &format!("{name}_total"), &labels, value(&vp.counters));
        }
    }
    let pid = format!("pid=\"{process}\"");
    let alive = snapshot.microprocesses.len() + snapshot.left_off;
    header(&mut out, "microprocesses", "The number of microprocesses.", "gauge");
    line(&mut out, "microprocesses", &pid, alive as u64);
    header(&mut out, "kernel_threads", "The number of kernel threads of the runtimes.", "gauge");
    line(&mut out, "kernel_threads", &pid, u64::from(snapshot.kernel_threads));
    out
}

fn header(out: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "# HELP kyocho_{name} {help}\n# TYPE kyocho_{name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: u64) {
    let _ = writeln!(out, "kyocho_{name}{{{labels}}} {value}");
}
