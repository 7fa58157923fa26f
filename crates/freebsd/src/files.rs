//! Opening files, and flags and commands of descriptors.

use crate::errno::Errno;
use crate::host::{Answer, DONE, address, address_of, number, pass};
use crate::terminals;
use crate::user::{self, plain};

/// The directory in which relative paths begin. The number is the same on both systems.
pub(crate) const HERE: u64 = -100_i64 as u64;

/// FreeBSD's bits, and the host's.
type Bits = [(u32, u32)];

/// The host's bits for `bits`. Bits that are not listed are dropped.
fn translated(bits: u32, list: &Bits) -> u32 {
    list.iter().filter(|(ours, _)| bits & ours == *ours).fold(0, |all, (_, host)| all | host)
}

/// Flags of `open`, except the access mode.
#[rustfmt::skip]
const OPEN: &Bits = &[
    (0x4, 0o4000), (0x8, 0o2000), (0x40, 0o20000), (0x80, 0o4_010_000), (0x100, 0o400_000), (0x200, 0o100), (0x400, 0o1000),
    (0x800, 0o200), (0x8000, 0o400), (0x10000, 0o40000), (0x20000, 0o200_000), (0x10_0000, 0o2_000_000), (0x100_0000, 0o10000),
];
const ACCESS: u32 = 3;
const NO_FOLLOW: u32 = 0x100;
/// For searching or execution. The file is opened for reading, as by the UNIX server for Linux
/// programs.
const FOR_NAMING: u32 = 0x44_0000;

fn open_flags(flags: u32) -> u32 {
    let access = if flags & FOR_NAMING != 0 { 0 } else { flags & ACCESS };
    access | translated(flags, OPEN)
}

/// `openat`.
pub(crate) fn open(directory: u64, path: u64, flags: u64, mode: u64) -> Answer {
    let words = [directory, path, u64::from(open_flags(flags as u32)), mode];
    match pass(number::OPENAT, &words) {
        // FreeBSD distinguishes a link that must not be followed from a circle of links.
        Err(Errno::LOOP) if flags as u32 & NO_FOLLOW != 0 => Err(Errno::MLINK),
        other => other,
    }
}

/// Flags of calls with a directory.
const AT: &Bits =
    &[(0x100, 0x200), (0x200, 0x100), (0x400, 0x400), (0x800, 0x200), (0x4000, 0x1000)];

/// The host's flags for a call with a directory.
pub(crate) fn at_flags(flags: u64) -> u64 {
    u64::from(translated(flags as u32, AT))
}

/// `pipe2`, whose flags are among those of `open`.
pub(crate) fn pipe(pair: u64, flags: u64) -> Answer {
    pass(number::PIPE2, &[pair, u64::from(translated(flags as u32, OPEN))])
}

/// FreeBSD's description of a lock.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Lock {
    start: u64,
    bytes: u64,
    process: i32,
    kind_whence: u32,
    system: u64,
}

plain!(Lock);

/// The host's description of a lock.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct HostLock {
    kind_whence: u64,
    start: u64,
    bytes: u64,
    process: u64,
}

/// `fcntl`.
pub(crate) fn control(file: u64, command: u64, word: u64) -> Answer {
    const CLOSE_ON_EXECUTION: u64 = 0o2_000_000;
    let plain = |command| pass(number::FCNTL, &[file, command, word]);
    match command {
        0..=2 => plain(command),
        3 => plain(3).map(|flags| u64::from(open_flags_from_host(flags as u32))),
        4 => pass(number::FCNTL, &[file, 4, u64::from(open_flags(word as u32))]).and(DONE),
        5 => plain(9),
        6 => plain(8),
        10 => duplicate(file, word, 0),
        17 => plain(1030),
        18 => duplicate(file, word, CLOSE_ON_EXECUTION),
        11..=13 => lock(file, command, word),
        _ => Err(Errno::INVAL),
    }
}

/// `dup2`, and the command of `fcntl` that does the same.
pub(crate) fn duplicate(file: u64, to: u64, flags: u64) -> Answer {
    if file != to {
        return pass(number::DUP3, &[file, to, flags]);
    }
    const GET_FLAGS: u64 = 1;
    pass(number::FCNTL, &[file, GET_FLAGS]).map(|_| to)
}

fn open_flags_from_host(flags: u32) -> u32 {
    let list = OPEN.iter().filter(|(_, host)| flags & host == *host);
    list.fold(flags & ACCESS, |all, (ours, _)| all | ours)
}

/// `F_GETLK`, `F_SETLK`, `F_SETLKW`.
fn lock(file: u64, command: u64, place: u64) -> Answer {
    const COMMANDS: [u64; 3] = [5, 6, 7];
    const KINDS: [(u16, u16); 3] = [(1, 0), (3, 1), (2, 2)];
    let mut lock: Lock = user::read(place)?;
    let kind = lock.kind_whence as u16;
    let (_, host_kind) = KINDS.iter().find(|(ours, _)| *ours == kind).ok_or(Errno::INVAL)?;
    let mut host = HostLock {
        kind_whence: u64::from(lock.kind_whence >> 16 << 16 | u32::from(*host_kind)),
        start: lock.start,
        bytes: lock.bytes,
        process: 0,
    };
    let command = COMMANDS[(command as usize - 11) % COMMANDS.len()];
    pass(number::FCNTL, &[file, command, address(&mut host)])?;
    if command == COMMANDS[0] {
        let said = host.kind_whence as u32;
        let kind =
            KINDS.iter().find(|(_, host)| *host == said as u16).map_or(kind, |(ours, _)| *ours);
        lock = Lock {
            start: host.start,
            bytes: host.bytes,
            process: host.process as i32,
            kind_whence: said >> 16 << 16 | u32::from(kind),
            system: 0,
        };
        user::write(place, &lock)?;
    }
    DONE
}

/// `ioctl`: the settings of terminals, and requests whose structures are the same.
pub(crate) fn request(file: u64, request: u64, word: u64) -> Answer {
    const REQUESTS: [(u32, u64); 12] = [
        (0x2000_6601, 0x5451), // FIOCLEX
        (0x2000_6602, 0x5450), // FIONCLEX
        (0x4004_667f, 0x541b), // FIONREAD
        (0x8004_667e, 0x5421), // FIONBIO
        (0x8004_667d, 0x5452), // FIOASYNC
        (0x4008_7468, 0x5413), // TIOCGWINSZ
        (0x8008_7467, 0x5414), // TIOCSWINSZ
        (0x4004_7477, 0x540f), // TIOCGPGRP
        (0x8004_7476, 0x5410), // TIOCSPGRP
        (0x2000_7461, 0x540e), // TIOCSCTTY
        (0x2000_7471, 0x5422), // TIOCNOTTY
        (0x4004_7473, 0x5411), // TIOCOUTQ
    ];
    if let Some(answer) = terminals::request(file, request as u32, word) {
        return answer;
    }
    let known = REQUESTS.iter().find(|(ours, _)| *ours == request as u32);
    let (_, host) = known.ok_or(Errno::NOTTY)?;
    pass(number::IOCTL, &[file, *host, word])
}

/// `utimensat` and `futimens`, with two times at `times`.
pub(crate) fn set_times(directory: u64, path: u64, times: u64, flags: u64) -> Answer {
    /// FreeBSD's and the host's values for "now" and "unchanged", in place of nanoseconds.
    const MARKS: [(i64, i64); 2] = [(-1, (1 << 30) - 1), (-2, (1 << 30) - 2)];
    let flags = at_flags(flags);
    if times == 0 {
        return pass(number::UTIMENSAT, &[directory, path, 0, flags]);
    }
    let mut both: [i64; 4] = user::read(times)?;
    for nanoseconds in [1, 3] {
        let mark = MARKS.iter().find(|(ours, _)| *ours == both[nanoseconds]);
        both[nanoseconds] = mark.map_or(both[nanoseconds], |(_, host)| *host);
    }
    pass(number::UTIMENSAT, &[directory, path, address_of(&both), flags])
}

/// `utimes` and `futimes`: the same in microseconds.
pub(crate) fn set_coarse_times(directory: u64, path: u64, times: u64, flags: u64) -> Answer {
    if times == 0 {
        return pass(number::UTIMENSAT, &[directory, path, 0, flags]);
    }
    let mut both: [i64; 4] = user::read(times)?;
    for micro in [1, 3] {
        both[micro] = both[micro].checked_mul(1000).ok_or(Errno::INVAL)?;
    }
    pass(number::UTIMENSAT, &[directory, path, address_of(&both), flags])
}

/// `sendfile`: from a file to a socket. 0 bytes mean all. Headers and trailers are not supported.
pub(crate) fn send_file(words: &[u64; 6]) -> Answer {
    let [file, socket, offset, bytes, headers, sent_to] = *words;
    if headers != 0 {
        return Err(Errno::INVAL);
    }
    const MOST: u64 = 0x7fff_f000;
    let wanted = if bytes == 0 { u64::MAX } else { bytes };
    let (mut at, mut sent) = (offset, 0);
    let end = loop {
        let next = (wanted - sent).min(MOST);
        match pass(number::SENDFILE, &[socket, file, address(&mut at), next]) {
            Ok(0) => break DONE,
            Ok(some) => sent += some,
            Err(errno) => break Err(errno),
        }
        if sent >= wanted {
            break DONE;
        }
    };
    user::write_if_wanted(sent_to, &sent)?;
    end
}

/// `__getcwd`, which returns nothing but success or an error.
pub(crate) fn current_directory(buffer: u64, bytes: u64) -> Answer {
    pass(number::GETCWD, &[buffer, bytes]).and(DONE)
}

#[cfg(test)]
mod tests {
    use super::{at_flags, open_flags, open_flags_from_host};

    #[test]
    fn flags_of_open_are_the_hosts_and_back() {
        let pairs = [
            (0x4, libc::O_NONBLOCK),
            (0x8, libc::O_APPEND),
            (0x80, libc::O_SYNC),
            (0x100, libc::O_NOFOLLOW),
            (0x200, libc::O_CREAT),
            (0x400, libc::O_TRUNC),
            (0x800, libc::O_EXCL),
            (0x8000, libc::O_NOCTTY),
            (0x20000, libc::O_DIRECTORY),
            (0x10_0000, libc::O_CLOEXEC),
            (0x100_0000, libc::O_DSYNC),
        ];
        for (ours, host) in pairs {
            assert_eq!(open_flags(ours | 2), host as u32 | 2, "{ours:#x}");
        }
        assert_eq!(open_flags(0x40_0001), 0);
        assert_eq!(open_flags_from_host((libc::O_RDWR | libc::O_APPEND) as u32), 2 | 8);
    }

    #[test]
    fn flags_beside_a_directory_are_the_hosts() {
        assert_eq!(at_flags(0x200), libc::AT_SYMLINK_NOFOLLOW as u64);
        assert_eq!(at_flags(0x800), libc::AT_REMOVEDIR as u64);
        assert_eq!(at_flags(0x4000), libc::AT_EMPTY_PATH as u64);
    }
}
