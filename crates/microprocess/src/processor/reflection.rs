//! Reflection: informs the host how urgent the running microprocess of a virtual processor is
//! (Paper 1, §3.3.1).
//!
//! The kernel of the paper reads the priority that a switch stored in the shared page *lazily*:
//! when it runs anyway, for example at a clock interrupt. Here the monitor takes the place of that
//! interrupt. It checks a busy virtual processor at least once in a slice. If the level that runs
//! there differs from the level the host knows, it informs the host with [`set_attributes`]. So a
//! switch to another level costs no system call. A level that changes back before the monitor
//! checks costs nothing at all.
//!
//! ```text
//!   switch ──► level published (a store) ─ ─ ─ monitor's check ──► holder, sentinel: sched_setattr
//!   hand-over ──► the new holder gets the level that the host knew for the old one, if that was not normal
//! ```
//!
//! * *Asked, not noticed yet*: a more urgent microprocess in the inbox counts as running, so its
//!   holder does not wait for a CPU.
//! * *Idle*: the last level that ran counts, but at least normal. So a microprocess that wakes
//!   there begins at once.
//! * The sentinel follows its holder. It is in the idle class below a time-sharing holder, and at
//!   the first real-time level below a real-time one. Where its turns cost others CPU time (real
//!   time, or nicer than normal), it pauses after checks that found nothing.
//! * The first real-time holder makes monitor and maker real-time above all others. Otherwise the
//!   holder could wait for them while they wait for its CPU.
//!
//! The best permitted kind is chosen at the first start in the process: real time (with nice
//! values below the normal level), otherwise nice values, otherwise none. A runtime that is started
//! by a thread outside the time-sharing class keeps that thread's class. `sched_ext` is not used:
//! it needs a scheduler that root loads for the whole machine.
//!
//! Children of a raised kernel thread begin at the normal level (`SCHED_RESET_ON_FORK`). The host
//! cannot do that for nicer threads; [`process`](crate::calls::process) and `fork` do it
//! themselves. What foreign code starts below the normal level, with `posix_spawn` or
//! `pthread_create`, inherits the nice value.
//!
//! The host never gives real-time threads all of a CPU: it keeps 5 % for time sharing.

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

mod host_level;
mod permissions;

pub(crate) use host_level::HostLevel;
pub(crate) use permissions::Permissions;
use permissions::{NICE_HIGHEST, NICE_LOWEST, REAL_TIME_MAX, REAL_TIME_MIN};

/// How the host is informed which microprocesses are urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reflection {
    /// By the best of the following that is permitted.
    #[default]
    Auto,
    /// Levels above [`Priority::NORMAL`] by real-time classes (`SCHED_RR`), those below by nice
    /// values. Needs `CAP_SYS_NICE` or a limit (`RLIMIT_RTPRIO`); without them this means `Auto`.
    RealTime,
    /// By nice values. They count only within a session if the host groups sessions
    /// (`sched_autogroup_enabled`). Needs `CAP_SYS_NICE` or a limit (`RLIMIT_NICE`); without them
    /// this means `Off`.
    Nice,
    /// Not at all: priorities hold only among Kyocho processes.
    Off,
}

impl fmt::Display for Reflection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::RealTime => "real-time classes above normal, nice values below",
            Self::Nice => "nice values",
            Self::Auto | Self::Off => {
                "none permitted, or none wanted (CAP_SYS_NICE, RLIMIT_RTPRIO, RLIMIT_NICE)"
            }
        };
        f.write_str(text)?;
        if Path::new("/sys/kernel/sched_ext").exists() {
            f.write_str("; sched_ext, which this kernel has, is not made use of")?;
        }
        Ok(())
    }
}

/// The kind of reflection closest to `wanted` that the host permits, and what it permits. For a
/// runtime that the calling thread starts, whose threads inherit the class of that thread.
pub(crate) fn settle(wanted: Reflection) -> (Reflection, Option<Permissions>) {
    let is_usual = class(ThreadId::current()) == Ok(Some(Class::Normal));
    let Some(all) = (is_usual && wanted != Reflection::Off).then(permitted).flatten() else {
        return (Reflection::Off, None);
    };
    let permissions =
        if wanted == Reflection::Nice { Permissions { real_time_max: 0, ..all } } else { all };
    let settled = match permissions {
        _ if !permissions.is_any() => return (Reflection::Off, None),
        Permissions { real_time_max: 0, .. } => Reflection::Nice,
        _ => Reflection::RealTime,
    };
    (settled, Some(permissions))
}

/// Everything that is permitted, once [`permitted`] was called.
static PERMITTED: OnceLock<Option<Permissions>> = OnceLock::new();

/// Everything that is permitted. Tried out once in the life of the process, on a thread that ends
/// afterwards, since some changes cannot be undone.
fn permitted() -> Option<Permissions> {
    *PERMITTED.get_or_init(|| {
        const STACK_BYTES: usize = 64 << 10;
        // If the thread cannot be made, everything counts as refused.
        start("permissions", STACK_BYTES, try_out).ok()?.join().ok()?
    })
}

/// Raises and lowers the calling thread, to see what is permitted.
fn try_out() -> Option<Permissions> {
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
    // Becoming nicer is always permitted, going back is not.
    let returns = may(Class::Normal, NICE_HIGHEST) && may(Class::Normal, own);
    let nice_max = if returns { NICE_HIGHEST } else { own };
    Some(Permissions { real_time_max, nice: own, nice_min, nice_max })
}

/// What the monitor records about one virtual processor.
#[derive(Debug)]
pub(crate) struct Reflected {
    /// The level that the host is to know for the holders.
    level: AtomicU8,
    /// The highest level announced that the holder may not have noticed yet.
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

    /// The level that the host is to know for the holders.
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// A microprocess at `level` became runnable, and is in the inbox.
    pub(crate) fn announce(&self, level: u8) {
        self.announced.fetch_max(level, Ordering::Relaxed);
    }

    /// Whether the sentinel of this virtual processor must pause after checks that found nothing,
    /// to leave CPU time to others or to the holder.
    pub(crate) fn asks_for_pauses(&self) -> bool {
        self.level() != Priority::NORMAL.level()
    }
}

impl Vp {
    /// The level that the host should know. `is_asked`: the holder has not noticed its inbox yet.
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

    /// Informs the host of changes since the last check. Called by the monitor.
    pub(crate) fn reflect(&'static self, is_asked: bool) {
        let Some(permissions) = self.shared().permissions else { return };
        let level = self.level_for_host(is_asked);
        let holder = self.holder();
        if self.reflected.level() == level && holder.host_level.is(level) {
            return;
        }
        let rises = permissions.is_real_time(level);
        if rises {
            self.raise_helpers(permissions);
        } else {
            // The sentinel is lowered before its holder; otherwise it would be above it.
            self.sentinel.lower();
        }
        self.reflected.level.store(level, Ordering::Relaxed);
        holder.host_level.inform(holder.id(), level, permissions);
        if rises {
            self.sentinel.raise();
        }
    }

    /// Raises the monitor, which is the caller, and the maker above all threads that will be
    /// real-time.
    #[cold]
    fn raise_helpers(&self, permissions: Permissions) {
        let maker = &self.shared().maker;
        if maker.is_raised.load(Ordering::Relaxed) {
            return;
        }
        let Some(thread) = maker.id() else { return };
        RAISED.store(true, Ordering::Relaxed);
        maker.is_raised.store(true, Ordering::Relaxed);
        for helper in [ThreadId::current(), thread] {
            // If refused, they rely on the 5 % of a CPU that the host keeps for time sharing.
            let _later = set_attributes(helper, permissions.of_helpers());
        }
    }
}

/// Runs `body`, which starts a process, with the thread at the normal level.
#[cfg(feature = "io")]
pub(crate) fn at_normal_level<T>(body: impl FnOnce() -> T) -> T {
    match PERMITTED.get() {
        Some(Some(permissions)) if KernelThread::is_ours() => {
            KernelThread::current().host_level.while_normal(ThreadId::current(), *permissions, body)
        }
        _ => body(),
    }
}

/// Resets the child process of a fork, whose only thread is a copy of `thread`, to the normal
/// level. Safe in a signal handler.
pub(crate) fn end_in_child(thread: &KernelThread) {
    if let Some(Some(permissions)) = PERMITTED.get() {
        thread.host_level.end_in_child(*permissions);
    }
}

#[cfg(test)]
mod tests;
