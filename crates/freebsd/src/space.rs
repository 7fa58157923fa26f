//! Memory: mappings and advice.

use crate::errno::Errno;
use crate::host::{Answer, DONE, number, pass};

const ANONYMOUS: u64 = 0x1000;
const GUARD: u64 = 0x2000;
const EXCLUSIVE: u64 = 0x4000;
const FIXED: u64 = 0x10;
const KIND: u64 = 3;
const PROTECTION: u64 = 7;
/// A stack. On FreeBSD it grows; here all of it is mapped at once.
const STACK: u64 = 0x400;

mod host {
    pub(super) const ANONYMOUS: u64 = 0x20;
    pub(super) const FIXED: u64 = 0x10;
    pub(super) const NO_REPLACE: u64 = 0x10_0000;
    pub(super) const PRIVATE: u64 = 2;
}

/// `mmap`.
pub(crate) fn map(words: &[u64; 6]) -> Answer {
    let [place, bytes, protection, flags, file, offset] = *words;
    let flags = flags & 0xffff_ffff;
    let mut kind = flags & KIND;
    let mut wanted = 0;
    let nameless = flags & (ANONYMOUS | GUARD | STACK) != 0;
    if nameless {
        wanted |= host::ANONYMOUS;
        kind = if kind == 0 { host::PRIVATE } else { kind };
    }
    if flags & FIXED != 0 {
        wanted |= if flags & EXCLUSIVE != 0 { host::NO_REPLACE } else { host::FIXED };
    }
    // Upper bits limit what `mprotect` may ask for later. The host has no such limit.
    let protection = if flags & GUARD != 0 { 0 } else { protection & PROTECTION };
    let file = if nameless { u64::MAX } else { file };
    pass(number::MMAP, &[place, bytes, protection, kind | wanted, file, offset])
}

/// `madvise`.
pub(crate) fn advise(place: u64, bytes: u64, advice: u64) -> Answer {
    const FREE: u64 = 8;
    match advice {
        // Advice that keeps the contents. It is dropped: the host's advice of the same name
        // discards them.
        4 | 6..=10 => DONE,
        0..=3 => pass(number::MADVISE, &[place, bytes, advice]),
        5 => pass(number::MADVISE, &[place, bytes, FREE]),
        _ => Err(Errno::INVAL),
    }
}

/// `msync`.
pub(crate) fn synchronize(place: u64, bytes: u64, flags: u64) -> Answer {
    const WAIT: u64 = 4;
    let flags = if flags & 1 == 0 { flags & 2 | WAIT } else { flags & 3 };
    pass(number::MSYNC, &[place, bytes, flags])
}

#[cfg(test)]
mod tests {
    use super::{advise, map};
    use crate::errno::Errno;
    use crate::host::pass;
    use crate::user;

    #[test]
    fn memory_is_mapped_advised_and_kept_where_it_may_not_be_replaced() {
        let none = u64::MAX;
        let place = map(&[0, 8192, 3, 0x1002, none, 0]).unwrap();
        user::write(place, &7_u64).unwrap();
        assert_eq!(advise(place, 4096, 4), Ok(0));
        assert_eq!(user::read::<u64>(place), Ok(7));
        assert_eq!(advise(place, 4096, 5), Ok(0));
        assert_eq!(advise(place, 4096, 77), Err(Errno::INVAL));
        assert_eq!(map(&[place, 4096, 3, 0x5012, none, 0]), Err(Errno::EXIST));
        assert_eq!(map(&[place, 4096, 3, 0x1012, none, 0]), Ok(place));
        pass(libc::SYS_munmap as u32, &[place, 8192]).unwrap();
    }
}
