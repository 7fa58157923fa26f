//! Signals: their numbers, sets of them, and the program's action for each.
//!
//! The host has one handler for all, `deliver`, and the mask of the program. The table here
//! contains the program's own handlers.
//!
//! **Invariant:** `SIGSYS` is never blocked while the program runs, and its handler is always the
//! library's, because a system call that traps while it is blocked ends the process. The same holds
//! for memory faults, by which the library detects addresses that are not mapped.

use crate::errno::Errno;
use crate::host::{Answer, DONE, address, address_of, number, pass};
use crate::user::{self, plain};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Signals of the host that the library uses itself.
pub(crate) const BUS: u32 = 7;
pub(crate) const SEGV: u32 = 11;
pub(crate) const SYS: u32 = 31;
/// FreeBSD's signals are numbered from 1 to this.
const SIGNALS_MAX: usize = 128;
/// FreeBSD's numbers of signals that need special treatment.
const KILL: u32 = 9;
const STOP: u32 = 17;
/// The first real-time signals of FreeBSD and of the host, and how many exist on both.
const REAL_TIME: (u32, u32) = (65, 34);
const REAL_TIME_COUNT: u32 = 31;

/// The host's number for each of FreeBSD's signals, from 0. Signals that the host lacks are mapped
/// to 16, 30, 32 and 33, which the host's programs do not use.
#[rustfmt::skip]
const HOST: [u8; 34] = [
    0, 1, 2, 3, 4, 5, 6, 16, 8, 9, 7, 11, 31, 13, 14, 15, 23, 19, 20, 18, 17, 21, 22, 29, 24, 25, 26, 27, 28, 30, 10, 12, 32, 33,
];

/// The host's number of a FreeBSD signal.
pub(crate) fn to_host(signal: u32) -> Option<u32> {
    let (ours, theirs) = REAL_TIME;
    match signal {
        0 => None,
        1..=33 => Some(u32::from(HOST[signal as usize])),
        _ if (ours..ours + REAL_TIME_COUNT).contains(&signal) => Some(signal - ours + theirs),
        _ => None,
    }
}

/// FreeBSD's number for a signal of the host; 0 if there is none.
pub(crate) fn from_host(signal: u32) -> u32 {
    let (ours, theirs) = REAL_TIME;
    if (theirs..theirs + REAL_TIME_COUNT).contains(&signal) {
        return signal - theirs + ours;
    }
    HOST.iter().position(|host| u32::from(*host) == signal).unwrap_or(0) as u32
}

/// A set of FreeBSD signals.
pub(crate) type Set = [u32; 4];

const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Signals that are never blocked while the program runs.
const NEVER_BLOCKED: u64 = bit(SYS) | bit(SEGV) | bit(BUS);

/// The host's set, without those that must not be blocked.
pub(crate) fn set_to_host(set: Set) -> u64 {
    let has = |signal: &u32| set[(*signal as usize - 1) / 32] >> ((signal - 1) % 32) & 1 != 0;
    let host = (1..=SIGNALS_MAX as u32).filter(has).filter_map(to_host);
    host.fold(0, |set, signal| set | bit(signal)) & !NEVER_BLOCKED
}

pub(crate) fn set_from_host(set: u64) -> Set {
    let mut ours = [0; 4];
    for signal in (1..=64).filter(|signal| set & bit(*signal) != 0).map(from_host) {
        if signal > 0 {
            ours[(signal as usize - 1) / 32] |= 1 << ((signal - 1) % 32);
        }
    }
    ours
}

/// FreeBSD's `struct sigaction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Action {
    /// 0: the default action; 1: ignored.
    pub(crate) handler: u64,
    pub(crate) flags: u32,
    pub(crate) mask: Set,
    pub(crate) padding: u32,
}

plain!(Action);

impl Action {
    /// Whether it is a handler to be called.
    pub(crate) fn is_handled(&self) -> bool {
        self.handler > 1
    }
}

/// FreeBSD's flags and the host's. The flag for additional information has no counterpart: the host
/// always provides it.
const FLAGS: [(u32, u64); 6] = [
    (0x01, 0x0800_0000), // alternate stack
    (0x02, 0x1000_0000), // restart
    (0x04, 0x8000_0000), // once
    (0x08, 0x0000_0001), // no news of stopped children
    (0x10, 0x4000_0000), // may interrupt itself
    (0x20, 0x0000_0002), // no statuses of children
];
const ONCE: u32 = 0x04;
const WITH_INFO: u64 = 0x04;
const RESTORER: u64 = 0x0400_0000;
const ALTERNATE_STACK: u64 = 0x0800_0000;
const MAY_INTERRUPT_ITSELF: u64 = 0x4000_0000;

/// The host's `struct sigaction`.
#[repr(C)]
struct HostAction {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

struct Entry {
    handler: AtomicU64,
    flags: AtomicU32,
    mask: [AtomicU32; 4],
}

static TABLE: [Entry; SIGNALS_MAX + 1] = [const {
    Entry {
        handler: AtomicU64::new(0),
        flags: AtomicU32::new(0),
        mask: [const { AtomicU32::new(0) }; 4],
    }
}; SIGNALS_MAX + 1];

/// The program's action for FreeBSD signal `signal`.
pub(crate) fn action(signal: u32) -> Action {
    let entry = &TABLE[signal as usize % TABLE.len()];
    Action {
        handler: entry.handler.load(Relaxed),
        flags: entry.flags.load(Relaxed),
        mask: [0, 1, 2, 3].map(|index: usize| entry.mask[index].load(Relaxed)),
        padding: 0,
    }
}

fn keep(signal: u32, action: &Action) {
    let entry = &TABLE[signal as usize % TABLE.len()];
    for (to, from) in entry.mask.iter().zip(action.mask) {
        to.store(from, Relaxed);
    }
    entry.flags.store(action.flags, Relaxed);
    entry.handler.store(action.handler, Relaxed);
}

/// Resets a handler that is to be called only once.
pub(crate) fn note_call(signal: u32, action: &Action) {
    if action.flags & ONCE != 0 {
        keep(signal, &Action { handler: 0, ..*action });
    }
}

/// Installs `handler` at the host for `signal`. Traps and memory faults need theirs from the first
/// instruction on.
pub(crate) fn install(signal: u32, handler: u64, flags: u64, mask: u64) -> Answer {
    let action = HostAction {
        handler,
        flags: flags | WITH_INFO | RESTORER,
        restorer: kyocho_arch::emulation::signal_return(),
        mask,
    };
    pass(number::RT_SIGACTION, &[u64::from(signal), address_of(&action), 0, 8])
}

/// Installs the handlers that the library itself needs.
pub(crate) fn install_own(trap: u64, deliver: u64) -> Answer {
    install(SYS, trap, ALTERNATE_STACK | MAY_INTERRUPT_ITSELF, 0)?;
    for signal in [SEGV, BUS] {
        install(signal, deliver, ALTERNATE_STACK | MAY_INTERRUPT_ITSELF, 0)?;
    }
    let mut set = NEVER_BLOCKED;
    const UNBLOCK: u64 = 1;
    pass(number::RT_SIGPROCMASK, &[UNBLOCK, address(&mut set), 0, 8])
}

/// Resets a host signal to its default action.
pub(crate) fn reset(signal: u32) -> Answer {
    let action = HostAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    pass(number::RT_SIGACTION, &[u64::from(signal), address_of(&action), 0, 8])
}

/// The host's action for `signal` as long as the library has installed no handler: default or
/// ignored, which a program inherits.
fn inherited(signal: u32) -> Result<Option<u64>, Errno> {
    let mut action = HostAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    pass(number::RT_SIGACTION, &[u64::from(signal), 0, address(&mut action), 8])?;
    Ok(Some(action.handler).filter(|handler| *handler <= 1))
}

/// `sigaction`.
pub(crate) fn set_action(signal: u64, new: u64, old: u64, deliver: u64) -> Answer {
    let signal = u32::try_from(signal).map_err(|_| Errno::INVAL)?;
    let host = to_host(signal).ok_or(Errno::INVAL)?;
    let wanted: Option<Action> = if new == 0 { None } else { Some(user::read(new)?) };
    if wanted.is_some() && matches!(signal, KILL | STOP) {
        return Err(Errno::INVAL);
    }
    let own = NEVER_BLOCKED & bit(host) != 0;
    let mut before = action(signal);
    if let Some(handler) = if own { None } else { inherited(host)? } {
        before.handler = handler;
    }
    if let Some(wanted) = wanted {
        keep(signal, &wanted);
        set_host_action(host, own, &wanted, deliver)?;
    }
    user::write_if_wanted(old, &before)?;
    DONE
}

/// Installs `deliver` at the host if the program has a handler. Signals that the library handles
/// itself (`own`) always have one.
fn set_host_action(signal: u32, own: bool, wanted: &Action, deliver: u64) -> Answer {
    let known = FLAGS.iter().filter(|(ours, _)| wanted.flags & ours != 0);
    let known = known.filter(|(ours, _)| !own || *ours != ONCE);
    let flags = known.fold(0, |all, (_, host)| all | host);
    let mask = set_to_host(wanted.mask);
    match signal {
        SYS => DONE,
        _ if wanted.is_handled() => install(signal, deliver, flags, mask),
        _ if own => install(signal, deliver, ALTERNATE_STACK | MAY_INTERRUPT_ITSELF, 0),
        _ => install(signal, wanted.handler, flags, mask),
    }
}

#[cfg(test)]
mod tests {
    use super::{from_host, set_from_host, set_to_host, to_host};
    use proptest::prelude::{any, proptest};

    #[test]
    fn numbers_go_there_and_back() {
        for signal in (1..=33).chain(65..96) {
            assert_eq!(from_host(to_host(signal).unwrap()), signal);
        }
        for none in [0, 34, 64, 96, 128, u32::MAX] {
            assert_eq!(to_host(none), None);
        }
        assert_eq!(to_host(30), Some(libc::SIGUSR1 as u32));
        assert_eq!(to_host(20), Some(libc::SIGCHLD as u32));
        assert_eq!(to_host(12), Some(libc::SIGSYS as u32));
    }

    proptest! {
        #[test]
        fn sets_keep_all_that_may_be_blocked(set in any::<u64>()) {
            let kept = set & !super::NEVER_BLOCKED;
            // The last real-time signals of the host have no counterparts.
            assert_eq!(set_to_host(set_from_host(set)), kept);
        }
    }

    #[test]
    fn a_full_set_blocks_neither_traps_nor_faults() {
        assert_eq!(set_to_host([u32::MAX; 4]) & super::NEVER_BLOCKED, 0);
    }
}
