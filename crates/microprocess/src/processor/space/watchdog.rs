//! Measures against unreliable user schedulers, which do not answer an event (Paper 1, §3.4).
//!
//! The paper sets a timer when an event occurs, and ends or demotes a program whose user scheduler
//! does not return. Here the monitor leaves every event in the attention word. The holder reads
//! that word whenever it unmasks events, and whenever it is interrupted. A holder that sleeps or
//! waits for a CPU answers when it runs again. So only a bit that stays there while the holder
//! *uses CPU time* proves a fault, one of three:
//!
//! | observed | §3.4 | cause |
//! |---|---|---|
//! | masked, a microprocess runs | 1 | events were masked and not unmasked |
//! | masked, no microprocess runs | 2 | Blocked, or Resumed, is not answered: the thread that received the virtual processor does not dispatch |
//! | not masked | 3 | Preempted is not answered by a `yield`: the signal does not arrive |

use core::fmt;
use std::process;

use kyocho_sys::clock::cpu_ns_of;
use kyocho_sys::scheduling::{Class, set_class};
use kyocho_sys::standard_error::tell;
use kyocho_sys::task::ThreadId;

use crate::processor::vp::Vp;

/// How much CPU time a holder uses before an event counts as unanswered.
const LIMIT_NS: u64 = 500_000_000;

/// The action against a virtual processor that uses CPU time and no longer answers events. In each
/// case a line on standard error names the virtual processor, the cause and what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnUnanswered {
    /// Only that line.
    #[default]
    Report,
    /// From then on its kernel thread gets only CPU time that no other thread wants (`SCHED_IDLE`).
    Demote,
    /// The process ends, by `SIGABRT`.
    End,
}

/// Why a virtual processor does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Masked,
    Blocked,
    Preempted,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Masked => "keeps events masked",
            Self::Blocked => "does not answer Blocked: nothing is dispatched",
            Self::Preempted => "does not yield after Preempted (is SIGURG blocked?)",
        })
    }
}

/// An event that has not been answered yet.
#[derive(Debug, Clone, Copy)]
struct Unanswered {
    holder: ThreadId,
    /// When the event was first seen: how often attention had been served, and how much CPU time
    /// the holder had used.
    served: u64,
    used_ns: u64,
}

/// What the monitor records of one virtual processor that does not answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Suspicion {
    began: Option<Unanswered>,
    /// The action was taken.
    acted: bool,
}

impl Suspicion {
    /// Called at each check. `is_unanswered`: there is an event in the attention word of `vp`. Acts
    /// if it has been there for too long.
    pub(crate) fn look(&mut self, vp: &'static Vp, is_unanswered: bool) {
        let Some(now) = Unanswered::seen(vp).filter(|_| is_unanswered) else {
            *self = Self::default();
            return;
        };
        let same =
            self.began.filter(|began| (began.holder, began.served) == (now.holder, now.served));
        let Some(began) = same else {
            *self = Self { began: Some(now), acted: false };
            return;
        };
        if now.used_ns >= began.used_ns + LIMIT_NS && !self.acted {
            self.acted = true;
            act(vp, now.holder);
        }
    }
}

impl Unanswered {
    fn seen(vp: &'static Vp) -> Option<Self> {
        let holder = vp.holder().id()?;
        let used_ns = cpu_ns_of(holder)?;
        Some(Self { holder, served: vp.counters.served.get(), used_ns })
    }
}

/// Reports `vp` and takes the action. Allocates nothing and takes no lock: the holder may have the
/// allocator's lock, or that of standard error. The monitor has other virtual processors to serve.
fn act(vp: &'static Vp, holder: ThreadId) {
    let is_masked = vp.holder().is_masked();
    let running = vp.current.get();
    let cause = match running {
        _ if !is_masked => Cause::Preempted,
        Some(_) => Cause::Masked,
        None => Cause::Blocked,
    };
    let action = vp.shared().limits.on_unanswered;
    let done = match action {
        OnUnanswered::Report => "",
        OnUnanswered::Demote => "; it is demoted",
        OnUnanswered::End => "; the process ends",
    };
    let index = vp.index;
    let said = match running {
        None => tell(format_args!("kyocho: virtual processor {index} {cause}{done}")),
        Some(record) => {
            let (process, local, name) = (process::id(), record.id(), record.name.get());
            let name = name.as_str().unwrap_or("(no name)");
            tell(format_args!("kyocho: microprocess {process}:{local} ({name}) {cause}{done}"))
        }
    };
    // If standard error accepts nothing now, the report is lost.
    let _unread = said;
    match action {
        OnUnanswered::Report => {}
        OnUnanswered::Demote => {
            // This needs no permission, so only an injected fault makes it fail.
            let _as_it_was = set_class(holder, Class::Idle);
        }
        OnUnanswered::End => process::abort(),
    }
}

#[cfg(test)]
mod tests;
