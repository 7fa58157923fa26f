//! Processes: waiting for them, signalling them, and their limits.

use crate::deliver;
use crate::errno::Errno;
use crate::frame::Info;
use crate::host::{Answer, DONE, address, address_of, number, pass};
use crate::signals;
use crate::user;

/// FreeBSD's status for the host's status of a process that stopped or ended.
fn status(host: i32) -> i32 {
    const GOES_ON: i32 = 0xffff;
    const SIGNAL: i32 = 0x7f;
    const STOPPED: i32 = 0x7f;
    /// FreeBSD uses the number of the signal.
    const CONTINUED: i32 = 0x13;
    let ours = |signal: i32| signals::from_host(signal as u32) as i32;
    if host == GOES_ON {
        return CONTINUED;
    }
    match host & SIGNAL {
        0 => host,
        STOPPED => ours(host >> 8 & 0xff) << 8 | STOPPED,
        signal => host & !SIGNAL | ours(signal),
    }
}

/// Options of waits: FreeBSD's bits, and those of `wait4` and `waitid`.
const OPTIONS: [(u64, u64); 5] = [(1, 1), (2, 2), (4, 8), (8, 0x100_0000), (16, 4)];

fn options(ours: u64) -> u64 {
    OPTIONS.iter().filter(|(bit, _)| ours & bit != 0).fold(0, |all, (_, host)| all | host)
}

/// `wait4`.
pub(crate) fn wait(process: u64, place: u64, wanted: u64, usage: u64) -> Answer {
    /// Ended processes are always included, and `wait4` rejects the others.
    const KNOWN: u64 = 7;
    let mut host = 0_i32;
    let ended =
        pass(number::WAIT4, &[process, address(&mut host), options(wanted & KNOWN), usage])?;
    if ended != 0 {
        user::write_if_wanted(place, &status(host))?;
    }
    Ok(ended)
}

/// `wait6`: waits for processes by kind and number, and returns more information.
pub(crate) fn wait_by_kind(words: &[u64; 6]) -> Answer {
    let [kind, id, place, wanted, usage, info] = *words;
    const KINDS: [(u64, u64); 3] = [(0, 1), (2, 2), (7, 0)];
    let (_, host_kind) = KINDS.iter().find(|(ours, _)| *ours == kind).ok_or(Errno::INVAL)?;
    let mut came = Info::NONE;
    let mut used = [0_u64; 18];
    let words = [*host_kind, id, address(&mut came), options(wanted), address(&mut used)];
    pass(number::WAITID, &words)?;
    if came.signal == 0 {
        return DONE;
    }
    user::write_if_wanted(place, &status_of(&came))?;
    if usage != 0 {
        // The usage of the process and of its children. The host returns both as one.
        user::write(usage, &used)?;
        user::write(usage + size_of_val(&used) as u64, &[0_u64; 18])?;
    }
    user::write_if_wanted(info, &deliver::translate(&came))?;
    Ok(came.process() as u64)
}

/// The status that corresponds to `info`.
fn status_of(info: &Info) -> i32 {
    const WITH_CORE: i32 = 0x80;
    status(match (info.code, info.status()) {
        (1, code) => (code & 0xff) << 8,
        (2, signal) => signal,
        (3, signal) => signal | WITH_CORE,
        (4 | 5, signal) => signal << 8 | 0x7f,
        _ => 0xffff,
    })
}

/// `kill`.
pub(crate) fn send(process: u64, signal: u64) -> Answer {
    pass(number::KILL, &[process, wanted(signal)?])
}

/// `thr_kill`: to a thread of this process.
pub(crate) fn send_to_thread(thread: u64, signal: u64) -> Answer {
    let process = pass(number::GETPID, &[])?;
    send_to_thread_of(process, thread, signal)
}

/// `thr_kill2`.
pub(crate) fn send_to_thread_of(process: u64, thread: u64, signal: u64) -> Answer {
    pass(number::TGKILL, &[process, thread, wanted(signal)?])
}

/// The signal to send. 0 asks whether the process exists.
fn wanted(signal: u64) -> Result<u64, Errno> {
    match signal as u32 {
        0 => Ok(0),
        signal => signals::to_host(signal).map(u64::from).ok_or(Errno::INVAL),
    }
}

/// The host's number for each of FreeBSD's limits, from 0. 255: there is none.
const LIMITS: [u8; 12] = [0, 1, 2, 3, 4, 5, 8, 6, 7, 255, 9, 9];
const UNLIMITED: u64 = i64::MAX as u64;

fn limit(id: u64) -> Result<u64, Errno> {
    LIMITS
        .get(id as u32 as usize)
        .filter(|host| **host != u8::MAX)
        .map(|host| u64::from(*host))
        .ok_or(Errno::INVAL)
}

/// `getrlimit`.
pub(crate) fn get_limit(id: u64, place: u64) -> Answer {
    let mut both = [0_u64; 2];
    pass(number::PRLIMIT64, &[0, limit(id)?, 0, address(&mut both)])?;
    user::write(place, &both.map(|value| value.min(UNLIMITED)))?;
    DONE
}

/// `setrlimit`.
pub(crate) fn set_limit(id: u64, place: u64) -> Answer {
    let both: [u64; 2] = user::read(place)?;
    let both = both.map(|value| if value >= UNLIMITED { u64::MAX } else { value });
    pass(number::PRLIMIT64, &[0, limit(id)?, address_of(&both), 0])
}

/// `getdtablesize`: how many descriptors the process may have.
pub(crate) fn descriptors() -> Answer {
    const DESCRIPTORS: u64 = 8;
    let mut both = [0_u64; 2];
    pass(number::PRLIMIT64, &[0, limit(DESCRIPTORS)?, 0, address(&mut both)])?;
    Ok(both[0].min(i32::MAX as u64))
}

/// `procctl`: the signal that a process gets when its parent ends.
pub(crate) fn control(command: u64, place: u64) -> Answer {
    const SET_DEATH_SIGNAL: u64 = 11;
    const HOST_SET_DEATH_SIGNAL: u64 = 1;
    if command != SET_DEATH_SIGNAL {
        return Err(Errno::INVAL);
    }
    let signal: i32 = user::read(place)?;
    pass(number::PRCTL, &[HOST_SET_DEATH_SIGNAL, wanted(signal as u64)?])
}

#[cfg(test)]
mod tests {
    use super::{get_limit, limit, status, status_of, wait, wait_by_kind};
    use crate::errno::Errno;
    use crate::frame::Info;
    use crate::host::address;

    #[test]
    fn statuses_carry_freebsds_signals() {
        assert_eq!(status(7 << 8), 7 << 8);
        assert_eq!(status(libc::SIGUSR1), 30);
        assert_eq!(status(libc::SIGBUS | 0x80), 10 | 0x80);
        assert_eq!(status(libc::SIGSTOP << 8 | 0x7f), 17 << 8 | 0x7f);
        assert_eq!(status(0xffff), 0x13);
        let mut info = Info { signal: libc::SIGCHLD, code: 1, ..Info::NONE };
        info.rest[1] = 42;
        assert_eq!(status_of(&info), 42 << 8);
    }

    #[test]
    fn limits_are_named_as_the_host_names_them() {
        assert_eq!(limit(8), Ok(u64::from(libc::RLIMIT_NOFILE)));
        assert_eq!(limit(6), Ok(u64::from(libc::RLIMIT_MEMLOCK)));
        assert_eq!(limit(10), Ok(u64::from(libc::RLIMIT_AS)));
        assert_eq!(limit(9), Err(Errno::INVAL));
        assert_eq!(limit(99), Err(Errno::INVAL));
        let mut both = [0_u64; 2];
        assert_eq!(get_limit(8, address(&mut both)), Ok(0));
        assert!(both[0] > 0 && both[0] <= both[1] && both[1] <= i64::MAX as u64);
    }

    #[test]
    fn a_child_is_waited_for_both_ways() {
        let mut child = std::process::Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let process = u64::from(child.id());
        let mut status = 0_i32;
        let look = [0, process, address(&mut status), 16 | 8, 0, 0];
        assert_eq!(wait_by_kind(&look), Ok(process));
        assert_eq!(status, 3 << 8);
        assert_eq!(wait(process, address(&mut status), 0, 0), Ok(process));
        assert_eq!(status, 3 << 8);
        assert_eq!(wait(process, address(&mut status), 0, 0), Err(Errno(libc::ECHILD)));
        assert!(child.wait().is_err());
    }
}
