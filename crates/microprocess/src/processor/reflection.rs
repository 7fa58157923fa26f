//! Reflection: the host learns how urgent is what runs on a virtual processor (Paper 1, §3.3.1).
//!
//! The kernel of the paper reads the priority that a switch stored in the shared page, *lazily*: when it gets control anyway, by a clock
//! interrupt say. Here the monitor is that clock. At each look at a busy virtual processor, which is at least once in a slice, it compares the level
//! that runs with the level that the host was told, and tells it by [`set_attributes`] if they differ. So a switch to another level costs
//! no system call; one that is undone before the monitor looks costs nothing at all.
//!
//! ```text
//!   switch ──► level published (a store) ─ ─ ─ monitor's look ──► holder, sentinel: sched_setattr
//!   hand-over ──► the heir is told what the one before was told, if it was told something else
//! ```
//!
//! * *Asked, not noticed yet*: a holder that is to look at something counts as running that, so it is not left waiting for its CPU.
//! * *Idle* counts as what ran last, but for the lowest, which rise to normal: who wakes there begins at once.
//! * The sentinel follows: of the idle class below time sharing, the first real-time level below real time. Where its turns cost the
//!   holder or others (real time; nicer than usual), it pauses after looks that found nothing.
//! * The first real-time holder makes monitor and maker real time above all, or they would wait for it to wait for them.
//!
//! The best means permitted is chosen at the first start in the process: real time (with nice values below the normal level), else nice
//! values, else none. A runtime that is started by a thread of another class than time sharing keeps that class. `sched_ext` is not made use of: where a kernel
//! has it, a scheduler would have to be loaded for the whole machine, by root.
//!
//! Children of a raised kernel thread begin as usual (`SCHED_RESET_ON_FORK`). The host has no such thing for nicer ones:
//! [`process`](crate::calls::process) and `fork` put that right; what foreign code starts by `posix_spawn` or `pthread_create` below the normal
//! level is as nice as that.
//!
//! The host never gives a real-time thread all of a CPU: 5 % are kept for time sharing.

use core::fmt;
use std::path::Path;
use std::sync::OnceLock;

use kyocho_sys::prim::atomic::{AtomicU8, Ordering};
use kyocho_sys::scheduling::{Attributes, Class, OnFork, class, nice, set_attributes};
use kyocho_sys::task::ThreadId;
use kyocho_sys::thread::start;

use crate::data::priority::Priority;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::space::NOTHING;
use crate::processor::vp::Vp;
use crate::protocol::pause::RAISED;

mod means;
mod told;

pub(crate) use means::Means;
use means::{NICE_HIGHEST, NICE_LOWEST, REAL_TIME_MAX, REAL_TIME_MIN};
pub(crate) use told::Told;

/// How the host is told which microprocesses are urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reflection {
    /// By the best means that is permitted.
    #[default]
    Auto,
    /// Above [`Priority::NORMAL`] by real-time classes (`SCHED_RR`), below by nice values. Needs `CAP_SYS_NICE` or a limit
    /// (`RLIMIT_RTPRIO`); without, as `Auto`.
    RealTime,
    /// By nice values, within a session where the host groups sessions (`sched_autogroup_enabled`). Needs `CAP_SYS_NICE` or a limit
    /// (`RLIMIT_NICE`); without, as `Off`.
    Nice,
    /// Not at all: priorities hold among Kyocho processes.
    Off,
}

impl fmt::Display for Reflection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let means = match self {
            Self::RealTime => "real-time classes above normal, nice values below",
            Self::Nice => "nice values",
            Self::Auto | Self::Off => {
                "none permitted, or none wanted (CAP_SYS_NICE, RLIMIT_RTPRIO, RLIMIT_NICE)"
            }
        };
        f.write_str(means)?;
        if Path::new("/sys/kernel/sched_ext").exists() {
            f.write_str("; sched_ext, which this kernel has, is not made use of")?;
        }
        Ok(())
    }
}

/// What the host permits of what is wanted, and by which means, for a runtime that the calling thread starts: its threads inherit that
/// one's class.
pub(crate) fn settle(wanted: Reflection) -> (Reflection, Option<Means>) {
    let is_usual = class(ThreadId::current()) == Ok(Some(Class::Normal));
    let Some(all) = (is_usual && wanted != Reflection::Off).then(permitted).flatten() else {
        return (Reflection::Off, None);
    };
    let means = if wanted == Reflection::Nice { Means { real_time_max: 0, ..all } } else { all };
    let settled = match means {
        _ if !means.is_any() => return (Reflection::Off, None),
        Means { real_time_max: 0, .. } => Reflection::Nice,
        _ => Reflection::RealTime,
    };
    (settled, Some(means))
}

/// Everything that is permitted, once somebody has asked.
static PERMITTED: OnceLock<Option<Means>> = OnceLock::new();

/// Everything that is permitted, tried out once in the life of the process, by a thread that ends afterwards: some of it could not
/// be taken back.
fn permitted() -> Option<Means> {
    *PERMITTED.get_or_init(|| {
        const STACK_BYTES: usize = 64 << 10;
        // Refused: then so is the rest.
        start("permissions", STACK_BYTES, try_out).ok()?.join().ok()?
    })
}

/// Raises and lowers the calling thread.
fn try_out() -> Option<Means> {
    let me = ThreadId::current();
    if class(me) != Ok(Some(Class::Normal)) {
        return None;
    }
    let own = nice(me).ok()?;
    let may = |class, nice| {
        set_attributes(me, Attributes { class, nice, on_fork: OnFork::Reset }).is_ok()
    };
    let is_permitted = |level: &u8| may(Class::RoundRobin(*level), own);
    let real_time_max = (REAL_TIME_MIN..=REAL_TIME_MAX).rev().find(is_permitted).unwrap_or(0);
    if !may(Class::Normal, own) {
        return None;
    }
    let nice_min = (NICE_LOWEST..own).find(|&nice| may(Class::Normal, nice)).unwrap_or(own);
    // Up is always permitted, back is not.
    let returns = may(Class::Normal, NICE_HIGHEST) && may(Class::Normal, own);
    let nice_max = if returns { NICE_HIGHEST } else { own };
    Some(Means { real_time_max, nice: own, nice_min, nice_max })
}

/// What the monitor keeps about one virtual processor and the host.
#[derive(Debug)]
pub(crate) struct Reflected {
    /// The level that holders are told.
    level: AtomicU8,
    /// The highest that was announced and perhaps not noticed yet.
    announced: AtomicU8,
}

impl Reflected {
    pub(crate) const fn new() -> Self {
        let normal = Priority::NORMAL.level();
        Self { level: AtomicU8::new(normal), announced: AtomicU8::new(0) }
    }

    /// As it was at first.
    pub(crate) fn renew(&self) {
        self.level.store(Priority::NORMAL.level(), Ordering::Relaxed);
        self.announced.store(0, Ordering::Relaxed);
    }

    /// What holders are told.
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// Something at `level` became runnable, and lies in the inbox.
    pub(crate) fn announce(&self, level: u8) {
        self.announced.fetch_max(level, Ordering::Relaxed);
    }

    /// Whether the sentinel of such a holder is in the way of others, or in its own.
    pub(crate) fn asks_for_pauses(&self) -> bool {
        self.level() != Priority::NORMAL.level()
    }
}

impl Vp {
    /// The level that the host should know of; `is_asked`: the holder has not noticed something yet.
    fn level_for_host(&self, is_asked: bool) -> u8 {
        let normal = Priority::NORMAL.level();
        if !is_asked {
            self.reflected.announced.store(0, Ordering::Relaxed);
        }
        match self.listing.published() {
            NOTHING => self.reflected.level().max(normal),
            level if is_asked => {
                level.max(normal).max(self.reflected.announced.load(Ordering::Relaxed))
            }
            level => level,
        }
    }

    /// Tells the host what has changed since the last look. By the monitor.
    pub(crate) fn reflect(&'static self, is_asked: bool) {
        let Some(means) = self.shared().means else { return };
        let level = self.level_for_host(is_asked);
        let holder = self.holder();
        if self.reflected.level() == level && holder.told.is(level) {
            return;
        }
        let rises = means.is_real_time(level);
        if rises {
            self.raise_helpers(means);
        } else {
            // Before the holder, or it would be above it.
            self.sentinel.lower();
        }
        self.reflected.level.store(level, Ordering::Relaxed);
        holder.told.tell(holder.id(), level, means);
        if rises {
            self.sentinel.raise();
        }
    }

    /// Puts monitor, which calls, and maker above all that will run in real time.
    #[cold]
    fn raise_helpers(&self, means: Means) {
        let maker = &self.shared().maker;
        if maker.is_raised.load(Ordering::Relaxed) {
            return;
        }
        let Some(thread) = maker.id() else { return };
        RAISED.store(true, Ordering::Relaxed);
        maker.is_raised.store(true, Ordering::Relaxed);
        for helper in [ThreadId::current(), thread] {
            // Refused: then they wait for the 5 % of a CPU that the host keeps for time sharing.
            let _later = set_attributes(helper, means.of_helpers());
        }
    }
}

/// Runs `body`, which starts a process, as the host would run it if it knew of no priorities.
pub(crate) fn as_usual<T>(body: impl FnOnce() -> T) -> T {
    match PERMITTED.get() {
        Some(Some(means)) if KernelThread::is_ours() => {
            KernelThread::current().told.untold(ThreadId::current(), *means, body)
        }
        _ => body(),
    }
}

/// The child process of a fork, whose only thread was `thread`, is nobody special. Safe in a signal handler.
pub(crate) fn end_in_child(thread: &KernelThread) {
    if let Some(Some(means)) = PERMITTED.get() {
        thread.told.end_in_child(*means);
    }
}

#[cfg(test)]
mod tests;
