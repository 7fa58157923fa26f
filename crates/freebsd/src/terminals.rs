//! The settings of a terminal: `struct termios`. Both systems have it, with different numbers for
//! nearly everything.

use crate::errno::Errno;
use crate::host::{Answer, DONE, address, address_of, number, pass};
use crate::user::{self, plain};

const CHARACTERS: usize = 20;
const HOST_CHARACTERS: usize = 19;

/// FreeBSD's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
struct Settings {
    input: u32,
    output: u32,
    line: u32,
    local: u32,
    characters: [u8; CHARACTERS],
    speeds: [u32; 2],
}

/// The host's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
struct HostSettings {
    input: u32,
    output: u32,
    line: u32,
    local: u32,
    discipline: u8,
    characters: [u8; HOST_CHARACTERS],
}

plain!(Settings);

/// Pairs of bits of FreeBSD's and the host's with the same meaning.
type Bits = [(u32, u32)];

#[rustfmt::skip]
const INPUT: &Bits = &[
    (0x1, 0x1), (0x2, 0x2), (0x4, 0x4), (0x8, 0x8), (0x10, 0x10), (0x20, 0x20), (0x40, 0x40), (0x80, 0x80), (0x100, 0x100),
    // IXON, IXOFF, IXANY, IMAXBEL, IUTF8
    (0x200, 0x400), (0x400, 0x1000), (0x800, 0x800), (0x2000, 0x2000), (0x4000, 0x4000),
];
/// OPOST, ONLCR, tabs to spaces, OCRNL, ONOCR, ONLRET.
const OUTPUT: &Bits =
    &[(0x1, 0x1), (0x2, 0x4), (0x4, 0x1800), (0x10, 0x8), (0x20, 0x10), (0x40, 0x20)];
/// Two bits of the size of a character, CSTOPB, CREAD, PARENB, PARODD, HUPCL, CLOCAL, CRTSCTS.
#[rustfmt::skip]
const LINE: &Bits = &[
    (0x100, 0x10), (0x200, 0x20), (0x400, 0x40), (0x800, 0x80), (0x1000, 0x100), (0x2000, 0x200), (0x4000, 0x400), (0x8000, 0x800),
    (0x3_0000, 0x8000_0000),
];
/// ECHOKE, ECHOE, ECHOK, ECHO, ECHONL, ECHOPRT, ECHOCTL, ISIG, ICANON, IEXTEN, EXTPROC, TOSTOP,
/// FLUSHO, PENDIN, NOFLSH.
#[rustfmt::skip]
const LOCAL: &Bits = &[
    (0x1, 0x800), (0x2, 0x10), (0x4, 0x20), (0x8, 0x8), (0x10, 0x40), (0x20, 0x400), (0x40, 0x200), (0x80, 0x1), (0x100, 0x2),
    (0x400, 0x8000), (0x800, 0x1_0000), (0x40_0000, 0x100), (0x80_0000, 0x1000), (0x2000_0000, 0x4000), (0x8000_0000, 0x80),
];
/// Places of characters: EOF, EOL, EOL2, ERASE, WERASE, KILL, REPRINT, INTR, QUIT, SUSP, START,
/// STOP, LNEXT, DISCARD, MIN, TIME.
#[rustfmt::skip]
const PLACES: [(usize, usize); 16] = [
    (0, 4), (1, 11), (2, 16), (3, 2), (4, 14), (5, 3), (6, 12), (8, 0), (9, 1), (10, 10), (12, 8), (13, 9), (14, 15), (15, 13), (16, 6), (17, 5),
];
/// MIN and TIME are numbers and always present.
const NUMBERS: core::ops::RangeInclusive<usize> = 16..=17;
/// A character that is not set.
const NONE: u8 = 0xff;
const HOST_NONE: u8 = 0;
/// Speeds, and the host's bits for them.
#[rustfmt::skip]
const SPEEDS: [(u32, u32); 19] = [
    (0, 0), (50, 1), (75, 2), (110, 3), (134, 4), (150, 5), (200, 6), (300, 7), (600, 8), (1200, 9), (1800, 10), (2400, 11), (4800, 12),
    (9600, 13), (19_200, 14), (38_400, 15), (57_600, 0x1001), (115_200, 0x1002), (230_400, 0x1003),
];
const HOST_SPEED: u32 = 0x100f;

fn to_host(bits: &Bits, word: u32) -> u32 {
    bits.iter().filter(|(ours, _)| word & ours != 0).fold(0, |all, (_, host)| all | host)
}

fn from_host(bits: &Bits, word: u32) -> u32 {
    bits.iter().filter(|(_, host)| word & host == *host).fold(0, |all, (ours, _)| all | ours)
}

impl Settings {
    fn of(host: &HostSettings) -> Self {
        let mut characters = [NONE; CHARACTERS];
        for (ours, theirs) in PLACES {
            let character = host.characters[theirs];
            let is_none = character == HOST_NONE && !NUMBERS.contains(&ours);
            characters[ours] = if is_none { NONE } else { character };
        }
        let speed = SPEEDS.iter().find(|(_, bits)| host.line & HOST_SPEED == *bits);
        Self {
            input: from_host(INPUT, host.input),
            output: from_host(OUTPUT, host.output),
            line: from_host(LINE, host.line),
            local: from_host(LOCAL, host.local),
            characters,
            speeds: [speed.map_or(0, |(speed, _)| *speed); 2],
        }
    }

    /// The host's settings for these. Settings that only the host has remain as `before`.
    fn to_host(self, before: &HostSettings) -> HostSettings {
        let known = |bits: &Bits| bits.iter().fold(0, |all, (_, host)| all | host);
        let merged =
            |bits: &Bits, word: u32, before: u32| before & !known(bits) | to_host(bits, word);
        let mut characters = before.characters;
        for (ours, theirs) in PLACES {
            let character = self.characters[ours];
            let is_none = character == NONE && !NUMBERS.contains(&ours);
            characters[theirs] = if is_none { HOST_NONE } else { character };
        }
        let line = merged(LINE, self.line, before.line);
        let speed = SPEEDS.iter().find(|(speed, _)| *speed == self.speeds[1]);
        let line = speed.map_or(line, |(_, bits)| line & !HOST_SPEED | bits);
        HostSettings {
            input: merged(INPUT, self.input, before.input),
            output: merged(OUTPUT, self.output, before.output),
            line,
            local: merged(LOCAL, self.local, before.local),
            discipline: before.discipline,
            characters,
        }
    }
}

const HOST_GET: u64 = 0x5401;
/// `TIOCGETA`.
const GET: u32 = 0x402c_7413;
/// `TIOCSETA`, `TIOCSETAW`, `TIOCSETAF`, and the host's.
const SET: [(u32, u64); 3] = [(0x802c_7414, 0x5402), (0x802c_7415, 0x5403), (0x802c_7416, 0x5404)];

fn settings(file: u64) -> Result<HostSettings, Errno> {
    let mut host = HostSettings::default();
    pass(number::IOCTL, &[file, HOST_GET, address(&mut host)])?;
    Ok(host)
}

/// `ioctl` about settings; `None` for other requests.
pub(crate) fn request(file: u64, request: u32, word: u64) -> Option<Answer> {
    if request == GET {
        return Some(
            settings(file).and_then(|host| user::write(word, &Settings::of(&host))).and(DONE),
        );
    }
    let (_, set) = SET.iter().find(|(ours, _)| *ours == request)?;
    Some(user::read(word).and_then(|wanted: Settings| {
        let host = wanted.to_host(&settings(file)?);
        pass(number::IOCTL, &[file, *set, address_of(&host)])
    }))
}

#[cfg(test)]
mod tests {
    use super::{GET, HostSettings, INPUT, LINE, LOCAL, OUTPUT, SET, Settings, request};
    use crate::errno::Errno;
    use crate::host::{address, address_of};
    use std::os::fd::AsRawFd;

    #[test]
    fn the_hosts_bits_are_the_hosts() {
        let all = |bits: &super::Bits| bits.iter().fold(0, |all, (_, host)| all | host);
        let raw =
            libc::ICANON | libc::ECHO | libc::ISIG | libc::IEXTEN | libc::TOSTOP | libc::NOFLSH;
        assert_eq!(all(LOCAL) & raw, raw);
        let input =
            libc::BRKINT | libc::ICRNL | libc::INPCK | libc::ISTRIP | libc::IXON | libc::IXOFF;
        assert_eq!(all(INPUT) & input, input);
        assert_eq!(
            all(OUTPUT),
            libc::OPOST | libc::ONLCR | libc::XTABS | libc::OCRNL | libc::ONOCR | libc::ONLRET
        );
        assert_eq!(all(LINE) & libc::CS8, libc::CS8);
        for (ours, host) in [(0x100, libc::ICANON), (0x8, libc::ECHO), (0x80, libc::ISIG)] {
            assert!(LOCAL.contains(&(ours, host)));
        }
    }

    #[test]
    fn what_is_set_is_what_was_asked_for_and_the_rest_stays() {
        let mut host = HostSettings { input: 0x200, discipline: 3, ..HostSettings::default() };
        host.characters[7] = 9;
        let all = |bits: &super::Bits| bits.iter().fold(0, |all, (ours, _)| all | ours);
        let mut characters = [0xff; 20];
        for (ours, _) in super::PLACES {
            characters[ours] = ours as u8 + 1;
        }
        characters[3] = 0xff;
        let wanted = Settings {
            input: all(INPUT),
            output: all(OUTPUT),
            line: all(LINE),
            local: all(LOCAL),
            characters,
            speeds: [115_200; 2],
        };
        let made = wanted.to_host(&host);
        assert_eq!(Settings::of(&made), wanted);
        assert_eq!((made.input & 0x200, made.discipline, made.characters[7]), (0x200, 3, 9));
        let nothing = Settings { characters, speeds: [9600; 2], ..Settings::default() };
        assert_eq!(Settings::of(&nothing.to_host(&made)), nothing);
    }

    #[test]
    fn a_terminal_becomes_raw_and_a_file_is_none() {
        let terminal = std::fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap();
        let file = terminal.as_raw_fd() as u64;
        let mut settings = Settings::default();
        assert_eq!(request(file, GET, address(&mut settings)), Some(Ok(0)));
        assert_ne!(settings.local & 0x108, 0, "canonical, with echo");
        settings.local &= !0x108;
        settings.characters[16] = 5;
        for (set, _) in SET {
            assert_eq!(request(file, set, address_of(&settings)), Some(Ok(0)));
        }
        let mut now = Settings::default();
        assert_eq!(request(file, GET, address(&mut now)), Some(Ok(0)));
        assert_eq!(now, settings);
        let none = std::fs::File::open("/").unwrap().as_raw_fd() as u64;
        assert!(matches!(
            request(none, GET, address(&mut now)),
            Some(Err(Errno::NOTTY | Errno::BADF))
        ));
        assert_eq!(request(file, 0x4004_667f, 0), None);
    }
}
