//! What the control socket carries: one line of JSON a request, one a reply.
//!
//! ```text
//!   {"version":1,"do":"kill","id":12}        ──►
//!                                            ◄──  {"done":true}   or   {"error":"no such microprocess, or it has ended"}
//! ```
//!
//! Lines are bounded in both directions; what is unknown, too long or no JSON is an error that says so, and ends the connection. A
//! request is an allegation of another process: everything in it is checked here, once.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;
use crate::data::priority::Priority;
use crate::processor::trace::Timeline;

/// The protocol's number; a server answers no other.
pub const VERSION: u32 = 1;
/// The longest request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 4096;
/// The longest reply, in bytes.
pub const REPLY_BYTES_MAX: usize = 64 << 20;
/// The most microprocesses that one reply lists.
pub const ENTRIES_MAX: usize = 100_000;

/// What is asked of an address space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Request {
    /// What goes on, with at most so many microprocesses.
    Snapshot {
        /// At most [`ENTRIES_MAX`].
        entries_max: usize,
    },
    /// The counters, as text for Prometheus.
    Metrics {},
    /// Ends a microprocess.
    Kill {
        /// Its number in the address space.
        id: u64,
    },
    /// Makes one stand still.
    Suspend {
        /// Its number in the address space.
        id: u64,
    },
    /// Lets one go on.
    Resume {
        /// Its number in the address space.
        id: u64,
    },
    /// Changes the priority of one.
    Priority {
        /// Its number in the address space.
        id: u64,
        /// 0 to 63.
        level: u8,
    },
    /// Records what happens from now on.
    TraceStart {},
    /// Stops recording; what was recorded.
    TraceStop {},
}

impl Request {
    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_harmless(&self) -> bool {
        matches!(self, Self::Snapshot { .. } | Self::Metrics {})
    }

    /// Whether its numbers are in range; if not, why.
    fn check(&self) -> Result<(), Malformed> {
        match self {
            Self::Priority { level, .. } if Priority::new(*level).is_none() => {
                Err(Malformed("priorities are 0 to 63".to_owned()))
            }
            Self::Snapshot { entries_max } if *entries_max > ENTRIES_MAX => {
                Err(Malformed(format!("at most {ENTRIES_MAX} microprocesses are listed")))
            }
            _ => Ok(()),
        }
    }
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reply {
    /// It was done.
    Done(bool),
    /// What goes on.
    Snapshot(Snapshot),
    /// The counters as text.
    Metrics(String),
    /// What was recorded.
    Timeline(Timeline),
    /// It was not done: why.
    Error(String),
}

/// A line that is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a request: {}", self.0)
    }
}

impl core::error::Error for Malformed {}

/// A request as it travels.
#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    #[serde(flatten)]
    request: Request,
}

/// The request as a line, without its end.
///
/// # Errors
/// Never, as far as this crate's own types go.
pub fn to_line(request: &Request) -> Result<String, Malformed> {
    let envelope = Envelope { version: VERSION, request: request.clone() };
    serde_json::to_string(&envelope).map_err(|error| Malformed(error.to_string()))
}

/// The request in a line.
///
/// # Errors
/// It is none, is too long, is of another version, or asks for what is out of range.
pub fn from_line(line: &[u8]) -> Result<Request, Malformed> {
    if line.len() > REQUEST_BYTES_MAX {
        return Err(Malformed(format!("longer than {REQUEST_BYTES_MAX} bytes")));
    }
    let envelope: Envelope =
        serde_json::from_slice(line).map_err(|error| Malformed(error.to_string()))?;
    if envelope.version != VERSION {
        let theirs = envelope.version;
        return Err(Malformed(format!("version {theirs}; this address space speaks {VERSION}")));
    }
    envelope.request.check()?;
    Ok(envelope.request)
}

#[cfg(test)]
mod tests;
