//! Reports about the first program: from the warden to the server, and from the server to the
//! front.

use crate::errors::host;
use crate::options::Outcome;
use kyocho_sys::error::Errno;
use kyocho_sys::passing;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Two ends of a channel. Not inherited by programs that are executed.
///
/// # Errors
/// `MFILE`: no more descriptors.
pub(crate) fn channel() -> Result<(OwnedFd, OwnedFd), Errno> {
    let kind = SocketType::SEQPACKET;
    rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).map_err(host)
}

/// A report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The program has this process number. The message brings its listener.
    Started(u32),
    /// It could not be started.
    Failed(i32),
    /// It stopped, for example by a key of its terminal.
    Stopped,
    /// It ended.
    Ended(Outcome),
    /// The warden was killed, and everything with it.
    Lost,
}

const REPORT_BYTES: usize = 8;

impl Report {
    /// Sends the report, with descriptors.
    ///
    /// # Errors
    /// `PIPE`: the other side has ended.
    pub(crate) fn send(
        self,
        channel: BorrowedFd<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        passing::send(channel, &self.to_bytes(), descriptors).map(drop)
    }

    /// Sends the last report. Blocks until the other side has received it and closed its end, as it
    /// does after a last report.
    ///
    /// # Errors
    /// The other side has ended without receiving it. A killed process keeps its end open for a
    /// while, so that a successful [`send`](Self::send) alone says nothing about it.
    pub(crate) fn send_last(self, channel: BorrowedFd<'_>) -> Result<(), Errno> {
        self.send(channel, &[])?;
        // If an end is closed with a message in its queue, the host reports `CONNRESET` at the
        // other end. Otherwise this is the end of the channel.
        passing::receive(channel, &mut [0; REPORT_BYTES]).map(drop)
    }

    /// Receives the next report; `None` once the other side has ended. Blocks.
    pub(crate) fn receive(channel: BorrowedFd<'_>) -> Option<(Self, Vec<OwnedFd>)> {
        let mut bytes = [0; REPORT_BYTES];
        let (count, descriptors) = passing::receive(channel, &mut bytes).ok()?;
        Self::from_bytes(bytes)
            .filter(|_| count == REPORT_BYTES)
            .map(|report| (report, descriptors))
    }

    fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let (kind, value) = match self {
            Self::Started(process) => (0_u32, process),
            Self::Failed(errno) => (1, errno as u32),
            Self::Stopped => (2, 0),
            Self::Ended(Outcome::Exited(status)) => (3, u32::from(status)),
            Self::Ended(Outcome::Signalled(signal)) => (4, signal as u32),
            Self::Lost => (5, 0),
        };
        (u64::from(kind) << 32 | u64::from(value)).to_ne_bytes()
    }

    fn from_bytes(bytes: [u8; REPORT_BYTES]) -> Option<Self> {
        let word = u64::from_ne_bytes(bytes);
        let value = word as u32;
        Some(match word >> 32 {
            0 => Self::Started(value),
            1 => Self::Failed(value as i32),
            2 => Self::Stopped,
            3 => Self::Ended(Outcome::Exited(value as u8)),
            4 => Self::Ended(Outcome::Signalled(value as i32)),
            5 => Self::Lost,
            _ => return None,
        })
    }
}

/// Writes `text` to standard error. If that is closed, nothing is written.
pub(crate) fn complain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Report, channel};
    use crate::options::Outcome;
    use kyocho_sys::prim::thread;
    use std::os::fd::AsFd;

    #[test]
    fn reports_arrive_as_they_were_sent() {
        for report in [
            Report::Started(7),
            Report::Failed(38),
            Report::Stopped,
            Report::Lost,
            Report::Ended(Outcome::Exited(255)),
            Report::Ended(Outcome::Signalled(9)),
        ] {
            let (from, to) = channel().unwrap();
            report.send(from.as_fd(), &[]).unwrap();
            assert_eq!(Report::receive(to.as_fd()).unwrap().0, report);
            drop(from);
            assert!(Report::receive(to.as_fd()).is_none());
        }
        assert_eq!(Report::from_bytes([0xff; 8]), None);
    }

    #[test]
    fn a_last_report_is_an_error_if_the_other_side_ends_without_receiving_it() {
        let (from, to) = channel().unwrap();
        let sending = thread::spawn(move || Report::Lost.send_last(from.as_fd()));
        assert_eq!(Report::receive(to.as_fd()).unwrap().0, Report::Lost);
        drop(to);
        assert_eq!(sending.join().unwrap(), Ok(()));

        for earlier in [None, Some(Report::Stopped)] {
            let (from, to) = channel().unwrap();
            if let Some(earlier) = earlier {
                earlier.send(from.as_fd(), &[]).unwrap();
            }
            let sending = thread::spawn(move || Report::Lost.send_last(from.as_fd()));
            while !kyocho_sys::descriptor::is_readable(to.as_fd()).unwrap() {}
            drop(to);
            assert!(sending.join().unwrap().is_err());
        }
    }
}
