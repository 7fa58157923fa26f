//! What the server hears of the FreeBSD personality, which stands in the clients (`kyocho-freebsd`): no call needs it, it only counts and shows.

use crate::options::Personality;
use crate::server::{Answer, DONE, Request};
use kyocho_freebsd::report::{self, ASK, MISSING, SHOWN};
use kyocho_sys::error::Errno;

/// The call that reports.
pub(crate) const REPORT: u64 = report::REPORT as u64;

impl Request<'_> {
    /// A report of the emulation library, or of a program that pretends to be one: it changes nothing but what is shown.
    pub(crate) fn report(&self) -> Result<Answer, Errno> {
        let number = self.word(1) as u32;
        match (self.word(0), &self.server.trace) {
            (ASK, trace) => Ok(Answer::Value(trace.is_some().into())),
            (SHOWN, Some(trace)) => {
                trace.show_freebsd(self.asked.thread, number, &self.asked.arguments[2..]);
                DONE
            }
            (MISSING, _) => self.server.missing(Personality::FreeBsd, number),
            _ => Err(Errno::INVAL),
        }
    }
}
