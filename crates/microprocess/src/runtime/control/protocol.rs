//! The protocol of the control socket: each request and each reply is one line of JSON.
//!
//! ```text
//!   {"version":1,"do":"kill","id":12}        ──►
//!                                            ◄──  {"done":true}   or   {"error":"no such microprocess, or it has ended"}
//! ```
//!
//! Lines are bounded in both directions. A line that is unknown, too long or not JSON is answered
//! by an error that says so, and ends the connection. A request is an allegation of another
//! process: everything in it is checked here, once.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;
use crate::data::priority::Priority;
use crate::processor::trace::Timeline;

/// The version of the protocol; a server answers no other.
pub const VERSION: u32 = 1;
/// The longest request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 4096;
/// The longest reply, in bytes.
pub const REPLY_BYTES_MAX: usize = 64 << 20;
/// The most microprocesses that one reply lists.
pub const ENTRIES_MAX: usize = 100_000;

/// A request to an address space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Request {
    /// Asks for a snapshot.
    Snapshot {
        /// The most microprocesses to list, at most [`ENTRIES_MAX`].
        entries_max: usize,
    },
    /// Asks for the counters, as text for Prometheus.
    Metrics {},
    /// Ends a microprocess.
    Kill {
        /// Its id in the address space.
        id: u64,
    },
    /// Suspends a microprocess.
    Suspend {
        /// Its id in the address space.
        id: u64,
    },
    /// Resumes a microprocess.
    Resume {
        /// Its id in the address space.
        id: u64,
    },
    /// Changes the priority of a microprocess.
    Priority {
        /// Its id in the address space.
        id: u64,
        /// The new level, 0 to 63.
        level: u8,
    },
    /// Begins to record a timeline.
    TraceStart {},
    /// Ends the recording, and asks for the timeline.
    TraceStop {},
}

impl Request {
    /// Whether it only reads.
    #[must_use]
    pub const fn is_harmless(&self) -> bool {
        matches!(self, Self::Snapshot { .. } | Self::Metrics {})
    }

    /// Checks whether its numbers are in range.
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

/// A reply to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reply {
    /// The request was carried out.
    Done(bool),
    /// The snapshot.
    Snapshot(Snapshot),
    /// The counters as text.
    Metrics(String),
    /// The timeline.
    Timeline(Timeline),
    /// The request was not carried out, for this reason.
    Error(String),
}

/// A line that is not a valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a request: {}", self.0)
    }
}

impl core::error::Error for Malformed {}

/// A request as it is sent.
#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    #[serde(flatten)]
    request: Request,
}

/// The request as a line, without its end.
///
/// # Errors
/// None for the types of this crate.
pub fn to_line(request: &Request) -> Result<String, Malformed> {
    let envelope = Envelope { version: VERSION, request: request.clone() };
    serde_json::to_string(&envelope).map_err(|error| Malformed(error.to_string()))
}

/// Parses the request in a line.
///
/// # Errors
/// It is not a request, is too long, has another version, or a number is out of range.
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
