//! The errors of calls and connections.

use core::fmt;
use std::io;

use kyocho_sys::error::Errno;

/// The reason why a call or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The other side is gone: its process ended, or it closed the connection. The call may or may
    /// not have been served.
    Closed,
    /// No server listens on the path, or the host refused the connection.
    Connect(io::ErrorKind),
    /// The server does not serve this user.
    Refused,
    /// Request or reply is longer than a frame. Pass a [`Region`](crate::Region) instead.
    TooLong {
        /// The length, in bytes.
        bytes: usize,
        /// The bound, in bytes.
        bytes_max: usize,
    },
    /// The time limit passed first. The server may still serve the call; its reply is discarded.
    TimedOut,
    /// The other side broke the protocol; the connection is closed. A [typed](crate::typed) call
    /// returns this also if it cannot decode the reply; then the connection stays open.
    Protocol,
    /// The server answered with a failure.
    Failed(Failure),
    /// The host refused memory, a descriptor or a kernel thread.
    Host(io::ErrorKind),
}

/// A failure that the server reports in place of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The object has no such method.
    NoMethod,
    /// The handle names no object that was granted to this client; or the client has all the
    /// handles it may have.
    NoHandle,
    /// The arguments cannot be decoded as those of the method.
    BadArguments,
    /// The client has no such region, or the slice lies outside of it.
    NoRegion,
    /// The reply is longer than a frame.
    ReplyTooLong,
    /// The service panicked, or its microprocess was killed.
    Panicked,
    /// A code that the service chose.
    Code(u32),
}

/// Numbers from here on encode [`Failure::Code`].
const CODES_MIN: u32 = 16;

impl Failure {
    /// The number that encodes the failure in a frame; never 0.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::NoMethod => 1,
            Self::NoHandle => 2,
            Self::BadArguments => 3,
            Self::NoRegion => 4,
            Self::ReplyTooLong => 5,
            Self::Panicked => 6,
            Self::Code(code) => CODES_MIN.saturating_add(code),
        }
    }

    /// The failure that a number in a frame encodes; `None` for 0. An unknown number decodes as
    /// `Panicked`.
    pub(crate) fn alleged(number: u32) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Self::NoMethod,
            2 => Self::NoHandle,
            3 => Self::BadArguments,
            4 => Self::NoRegion,
            5 => Self::ReplyTooLong,
            number if number >= CODES_MIN => Self::Code(number - CODES_MIN),
            _ => Self::Panicked,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMethod => f.write_str("the object has no such method"),
            Self::NoHandle => {
                f.write_str("the handle names no object that was granted to this client")
            }
            Self::BadArguments => {
                f.write_str("the arguments cannot be decoded as those of the method")
            }
            Self::NoRegion => {
                f.write_str("there is no such region, or it is shorter than the slice")
            }
            Self::ReplyTooLong => f.write_str("the reply is longer than a frame: use a region"),
            Self::Panicked => f.write_str("the service panicked or was killed"),
            Self::Code(code) => write!(f, "the service failed with code {code}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the other side of the gate is gone"),
            Self::Connect(why) => write!(f, "cannot connect to the gate: {why}"),
            Self::Refused => f.write_str("the gate does not serve this user"),
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "{bytes} bytes exceed the bound of {bytes_max}: pass a region")
            }
            Self::TimedOut => f.write_str("the gate did not answer within the time limit"),
            Self::Protocol => f.write_str("the other side of the gate broke the protocol"),
            Self::Failed(failure) => failure.fmt(f),
            Self::Host(why) => write!(f, "the host refused a resource for the gate: {why}"),
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
    fn decoding_an_encoded_failure_returns_it() {
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
        assert_eq!(Failure::alleged(9), Some(Failure::Panicked), "an unknown number is a failure");
    }
}
