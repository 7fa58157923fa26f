//! The error for which std's channels have no stable name.

use core::{error::Error, fmt};

/// Why [`Sender::send_timeout`](super::Sender::send_timeout) did not send. Holds the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// The time limit passed before there was room, or a receiver.
    Timeout(T),
    /// All receivers are dropped, or the channel is closed.
    Disconnected(T),
}

impl<T> SendTimeoutError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(message) | Self::Disconnected(message) => message,
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timed out waiting on send operation",
            Self::Disconnected(_) => "sending on a disconnected channel",
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(_) => f.write_str("Timeout(..)"),
            Self::Disconnected(_) => f.write_str("Disconnected(..)"),
        }
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

impl<T> Error for SendTimeoutError<T> {}
