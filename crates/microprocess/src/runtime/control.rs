//! Stopping, resuming and ending microprocesses from other processes (Paper 1, part 5).
//!
//! A microprocess is named by its address space and an id inside it: [`GlobalId`]. The host
//! distinguishes the address spaces, and each address space its microprocesses. Access is
//! controlled for the address space as a whole. `orders` describes what an order does to a
//! microprocess in each of its states.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub mod client;
pub mod metrics;
pub mod protocol;
mod server;
mod service;
mod snapshot;

pub use crate::data::killed::Killed;
pub use crate::thread::global_id::{GlobalId, NotAnId};
pub use crate::thread::orders::{Gone, always_unwind};
pub use server::{Policy, restrict};
pub(super) use service::Service;
pub use snapshot::{Entry, Snapshot, Status, VirtualProcessor, snapshot};

use crate::processor::record::State;
use crate::processor::slot;
use crate::protocol::tenure;
use crate::thread::microprocess::Microprocess;

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

/// The microprocess of this address space with that id, if it has not ended. Searches all of them.
#[must_use]
pub fn find(local: u64) -> Option<Microprocess> {
    if local == tenure::NO_ID {
        return None;
    }
    let has_it = |record: &&'static crate::processor::record::Record| {
        record.id() == local && !matches!(record.state.get(), State::Free | State::Finished)
    };
    slot::all().find(has_it).map(|record| Microprocess::new(record, local))
}

#[cfg(test)]
pub(crate) mod tests;
