//! What the host permits, and what a level stands for there: the pure part of reflection.
//!
//! ```text
//!   level        63 … 32                        31                 30 … 0
//!   real time    round robin, greatest - 1 … 2   as it was started   nicer, up to 19, where there is a way back
//!   nice         down to the lowest nice value   as it was started   the same
//! ```
//!
//! Real-time level 1 is the sentinel's, below whom it watches; the greatest is the monitor's and the maker's, whom those need.

use kyocho_sys::scheduling::{Attributes, Class, OnFork};

use crate::data::priority::Priority;

/// The greatest real-time level that is asked for: one for each level of the fixed band, one below and one above them.
pub(super) const REAL_TIME_MAX: u8 = 34;
/// The least that does: three levels.
pub(super) const REAL_TIME_MIN: u8 = 3;
pub(super) const NICE_LOWEST: i32 = -20;
pub(super) const NICE_HIGHEST: i32 = 19;

/// The fixed band begins above this level (Paper 1, §3.6; [`Feedback`](crate::processor::scheduler::Feedback)).
const NORMAL: i32 = Priority::NORMAL.level() as i32;
const HIGHEST: i32 = Priority::HIGHEST.level() as i32;

/// What may be told to the host about a kernel thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Means {
    /// The greatest level of real time that is permitted; 0: none is.
    pub(super) real_time_max: u8,
    /// The nice value the process was started with, and the lowest and highest that it may give a thread and take back.
    pub(super) nice: i32,
    pub(super) nice_min: i32,
    pub(super) nice_max: i32,
}

impl Means {
    /// Whether there are any.
    pub(super) fn is_any(self) -> bool {
        self.real_time_max != 0 || self.nice_min < self.nice || self.nice < self.nice_max
    }

    /// Whether what runs at `level` is in a real-time class.
    pub(super) fn is_real_time(self, level: u8) -> bool {
        self.real_time_max != 0 && i32::from(level) > NORMAL
    }

    /// How the host is to schedule what runs at `level`. Who starts processes there passes nothing on that is more than usual.
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

    /// Those of whom every microprocess needs. The maker's threads are needed at once, and get a class of their own with their
    /// virtual processor: they inherit.
    pub(super) fn of_helpers(self) -> Attributes {
        let class = Class::Fifo(self.real_time_max);
        Attributes { class, nice: self.nice, on_fork: OnFork::Inherit }
    }
}

/// `value` of `whole`, as part of `span`, rounded to the nearest.
fn scaled(value: i32, whole: i32, span: i32) -> i32 {
    (value * span * 2 + whole) / (2 * whole)
}

#[cfg(test)]
mod tests;
