//! Reports of the FreeBSD personality, which runs in the clients (`kyocho-freebsd`). They are only
//! counted and shown; no call depends on them.

use crate::options::Personality;
use crate::server::{Answer, DONE, Request};
use kyocho_freebsd::report::{self, ASK, MISSING, TRACED};
use kyocho_sys::error::Errno;

/// The call that reports.
pub(crate) const REPORT: u64 = report::REPORT as u64;

impl Request<'_> {
    /// A report of the emulation library, or of a program that imitates it. It changes nothing but
    /// the output.
    pub(crate) fn report(&self) -> Result<Answer, Errno> {
        let number = self.word(1) as u32;
        match (self.word(0), &self.server.trace) {
            (ASK, trace) => Ok(Answer::Value(trace.is_some().into())),
            (TRACED, Some(trace)) => {
                trace.show_freebsd(self.asked.thread, number, &self.asked.arguments[2..]);
                DONE
            }
            (MISSING, _) => self.server.missing(Personality::FreeBsd, number),
            _ => Err(Errno::INVAL),
        }
    }
}
