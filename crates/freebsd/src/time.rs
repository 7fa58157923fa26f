//! Clocks.

use crate::errno::Errno;
use crate::host::{Answer, number, pass};

/// The host's number of a clock.
pub(crate) fn clock(id: u64) -> Result<u64, Errno> {
    Ok(match id {
        // Real time: plain, precise, fast, in whole seconds.
        0 | 9 | 10 | 13 => 0,
        // Time since the start, with or without sleep. FreeBSD has two names for one clock.
        4 | 5 | 7 | 8 | 11 | 12 => 1,
        1 | 2 | 15 => 2,
        14 => 3,
        _ => return Err(Errno::INVAL),
    })
}

/// `clock_gettime`.
pub(crate) fn read(id: u64, place: u64) -> Answer {
    pass(number::CLOCK_GETTIME, &[clock(id)?, place])
}

/// `clock_getres`.
pub(crate) fn resolution(id: u64, place: u64) -> Answer {
    pass(number::CLOCK_GETRES, &[clock(id)?, place])
}

/// `clock_nanosleep`. Its one flag has the same number.
pub(crate) fn sleep(id: u64, flags: u64, wanted: u64, left: u64) -> Answer {
    pass(number::CLOCK_NANOSLEEP, &[clock(id)?, flags, wanted, left])
}
