//! Why a call did not return what was asked for.

use core::fmt;
use std::io;

use kyocho_sys::error::Errno;

/// Why a call, or a connection, failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The other side is gone: its process ended, or it closed the connection. The call may or may not have been served.
    Closed,
    /// Nobody listens there, or the connection could not be made.
    Connect(io::ErrorKind),
    /// The server does not serve this user.
    Refused,
    /// Request or reply is longer than a frame holds: hand a [`Region`](crate::Region) over.
    TooLong {
        /// How long.
        bytes: usize,
        /// The most that fits.
        bytes_max: usize,
    },
    /// The time was over first. The server may still serve the call; its answer is dropped.
    TimedOut,
    /// The other side broke the protocol; the connection is closed.
    Protocol,
    /// The server's answer: it could not do it.
    Failed(Failure),
    /// The host gave no memory, descriptor or kernel thread.
    Host(io::ErrorKind),
}

/// A server's answer that is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// There is no such method.
    NoMethod,
    /// The handle names nothing that this client was given.
    NoHandle,
    /// The arguments are not what the method takes.
    BadArguments,
    /// There is no such region, or it is shorter than what was said.
    NoRegion,
    /// The reply does not fit into a frame.
    ReplyTooLong,
    /// The service panicked, or was killed.
    Panicked,
    /// Said by the service itself.
    Code(u32),
}

/// Codes from here on are [`Failure::Code`]'s.
const OWN_CODES: u32 = 16;

impl Failure {
    /// Its number in a frame; never 0.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::NoMethod => 1,
            Self::NoHandle => 2,
            Self::BadArguments => 3,
            Self::NoRegion => 4,
            Self::ReplyTooLong => 5,
            Self::Panicked => 6,
            Self::Code(code) => OWN_CODES.saturating_add(code),
        }
    }

    /// What a number in a frame says; 0 is no failure.
    pub(crate) fn alleged(number: u32) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Self::NoMethod,
            2 => Self::NoHandle,
            3 => Self::BadArguments,
            4 => Self::NoRegion,
            5 => Self::ReplyTooLong,
            number if number >= OWN_CODES => Self::Code(number - OWN_CODES),
            _ => Self::Panicked,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMethod => f.write_str("there is no such method"),
            Self::NoHandle => f.write_str("the handle names nothing that this client was given"),
            Self::BadArguments => f.write_str("the arguments are not what the method takes"),
            Self::NoRegion => f.write_str("there is no such region, or it is shorter"),
            Self::ReplyTooLong => f.write_str("the reply does not fit into a frame: use a region"),
            Self::Panicked => f.write_str("the service panicked, or was killed"),
            Self::Code(code) => write!(f, "the service answers with code {code}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the other side of the gate is gone"),
            Self::Connect(why) => write!(f, "no connection to the gate: {why}"),
            Self::Refused => f.write_str("the gate does not serve this user"),
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "{bytes} bytes, but a frame holds {bytes_max}: hand a region over")
            }
            Self::TimedOut => f.write_str("the gate did not answer in time"),
            Self::Protocol => f.write_str("the other side of the gate broke the protocol"),
            Self::Failed(failure) => failure.fmt(f),
            Self::Host(why) => write!(f, "the host gives no resources for a gate: {why}"),
        }
    }
}

impl core::error::Error for Error {}

impl core::error::Error for Failure {}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Host(error.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn failures_survive_the_frame() {
        let all = [
            Failure::NoMethod,
            Failure::NoHandle,
            Failure::BadArguments,
            Failure::NoRegion,
            Failure::ReplyTooLong,
            Failure::Panicked,
            Failure::Code(0),
            Failure::Code(77),
        ];
        for failure in all {
            assert_eq!(Failure::alleged(failure.number()), Some(failure));
        }
        assert_eq!(Failure::alleged(0), None);
        assert_eq!(Failure::alleged(9), Some(Failure::Panicked), "nonsense is a failure");
    }
}
