//! What the host permits, and how levels map to its classes: the pure part of reflection.
//!
//! ```text
//!   level        63 … 32                        31              30 … 0
//!   real time    round robin, greatest - 1 … 2   as at the start   nicer, up to 19, if the host permits the way back
//!   nice         down to the lowest nice value   as at the start   the same
//! ```
//!
//! Real-time level 1 is for sentinels, which must be below their holders. The greatest is for the
//! monitor and the maker, which every holder needs.

use kyocho_sys::scheduling::{Attributes, Class, OnFork};

use crate::data::priority::Priority;

/// The greatest real-time level that is asked for: one for each level of the fixed band, one below
/// them and one above.
pub(super) const REAL_TIME_MAX: u8 = 34;
/// The least number of real-time levels that suffices.
pub(super) const REAL_TIME_MIN: u8 = 3;
pub(super) const NICE_LOWEST: i32 = -20;
pub(super) const NICE_HIGHEST: i32 = 19;

/// The fixed band begins above this level (Paper 1, §3.6;
/// [`Feedback`](crate::processor::scheduler::Feedback)).
const NORMAL: i32 = Priority::NORMAL.level() as i32;
const HIGHEST: i32 = Priority::HIGHEST.level() as i32;

/// What the host permits for the kernel threads of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// The greatest real-time level permitted; 0 if none is.
    pub(super) real_time_max: u8,
    /// The nice value at the start of the process, and the lowest and highest that a thread may get
    /// and leave again.
    pub(super) nice: i32,
    pub(super) nice_min: i32,
    pub(super) nice_max: i32,
}

impl Permissions {
    /// Whether anything is permitted.
    pub(super) fn is_any(self) -> bool {
        self.real_time_max != 0 || self.nice_min < self.nice || self.nice < self.nice_max
    }

    /// Whether `level` maps to a real-time class.
    pub(super) fn is_real_time(self, level: u8) -> bool {
        self.real_time_max != 0 && i32::from(level) > NORMAL
    }

    /// How the host is to schedule a thread that runs `level`. Processes that the thread starts
    /// inherit neither a real-time class nor a raised nice value.
    pub(super) fn attributes(self, level: u8) -> Attributes {
        let above = i32::from(level) - NORMAL;
        let class = if self.is_real_time(level) {
            let span = i32::from(self.real_time_max) - i32::from(REAL_TIME_MIN);
            Class::RoundRobin(2 + scaled(above - 1, HIGHEST - NORMAL - 1, span) as u8)
        } else {
            Class::Normal
        };
        let nice = match above {
            0.. => self.nice - scaled(above, HIGHEST - NORMAL, self.nice - self.nice_min),
            _ => self.nice + scaled(-above, NORMAL, self.nice_max - self.nice),
        };
        Attributes { class, nice, on_fork: OnFork::Reset }
    }

    /// The attributes of monitor and maker, which every microprocess needs. Threads that the maker
    /// starts inherit these attributes, since such a thread is needed at once. It gets attributes
    /// of its own when it receives a virtual processor.
    pub(super) fn of_helpers(self) -> Attributes {
        let class = Class::Fifo(self.real_time_max);
        Attributes { class, nice: self.nice, on_fork: OnFork::Inherit }
    }
}

/// Scales `value` from the range `whole` to the range `span`, rounded to the nearest.
fn scaled(value: i32, whole: i32, span: i32) -> i32 {
    (value * span * 2 + whole) / (2 * whole)
}

#[cfg(test)]
mod tests;
