//! Stopping, resuming and ending microprocesses from other processes (Paper 1, part 5).
//!
//! A microprocess is named by its address space and an id inside it: [`GlobalId`]. The host
//! distinguishes the address spaces, and each address space its microprocesses. Access is
//! controlled for the address space as a whole. `orders` describes what an order does to a
//! microprocess in each of its states.

use core::fmt;
use core::str::FromStr;
use std::process;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub mod client;
pub mod metrics;
pub mod protocol;
mod server;
mod snapshot;

pub use crate::data::killed::Killed;
pub use crate::thread::orders::{Gone, always_unwind};
pub(crate) use server::serve;
pub use server::{Policy, restrict};
pub use snapshot::{Entry, Snapshot, Status, VirtualProcessor, snapshot};

use crate::processor::record::State;
use crate::processor::slot;
use crate::protocol::tenure;
use crate::thread::microprocess::Microprocess;

/// The name of a microprocess among all of the machine: `PID:LOCAL`.
///
/// ```
/// use kyocho_microprocess::control::GlobalId;
/// let id: GlobalId = "4711:12".parse().unwrap();
/// assert_eq!((id.process, id.local), (4711, 12));
/// assert_eq!(id.to_string(), "4711:12");
/// assert!("4711".parse::<GlobalId>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalId {
    /// The process number of the address space.
    pub process: u32,
    /// The microprocess inside the process: [`Microprocess::id`].
    pub local: u64,
}

impl fmt::Display for GlobalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.local)
    }
}

/// The text is not of the form `PID:LOCAL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected the number of a process and that of a microprocess, as in 4711:12")
    }
}

impl core::error::Error for NotAnId {}

impl FromStr for GlobalId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let (process, local) = text.split_once(':').ok_or(NotAnId)?;
        let process = process.parse().map_err(|_| NotAnId)?;
        Ok(Self { process, local: local.parse().map_err(|_| NotAnId)? })
    }
}

impl Serialize for GlobalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GlobalId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Microprocess {
    /// Its name among all microprocesses of the machine.
    #[must_use]
    pub fn global_id(&self) -> GlobalId {
        GlobalId { process: process::id(), local: self.id() }
    }
}

/// The microprocess of this address space with that id, if it has not ended. Searches all of them.
#[must_use]
pub fn find(local: u64) -> Option<Microprocess> {
    if local == tenure::NOBODY {
        return None;
    }
    let has_it = |record: &&'static crate::processor::record::Record| {
        record.id() == local && !matches!(record.state.get(), State::Free | State::Finished)
    };
    slot::all().find(has_it).map(|record| Microprocess::new(record, local))
}

#[cfg(test)]
pub(crate) mod tests;
