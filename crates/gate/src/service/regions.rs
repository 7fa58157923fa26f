//! The regions that a client has attached to its connection, as the server sees them.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_microprocess::Semaphore;
use kyocho_sys::sealed::SealedMemory;

use crate::slice::REGIONS_MAX;

/// How long a region may take from the client's socket to the server's address space.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);

/// A client's regions by number.
#[derive(Debug, Default)]
pub(crate) struct Regions(Mutex<BTreeMap<u32, Slot>>);

/// The state of one region number.
#[derive(Debug)]
enum Slot {
    /// Calls wait for the region. Each call that is woken wakes the next one.
    Awaited(Arc<Semaphore>),
    Attached(Arc<SealedMemory>),
}

impl Regions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The region with this number; `None` if it is not attached.
    pub(super) fn get(&self, number: u32) -> Option<Arc<SealedMemory>> {
        match self.lock().get(&number) {
            Some(Slot::Attached(memory)) => Some(Arc::clone(memory)),
            Some(Slot::Awaited(_)) | None => None,
        }
    }

    /// Attaches a region. Returns `false` if its number is out of range.
    pub(crate) fn attach(&self, number: u32, memory: SealedMemory) -> bool {
        let is_in_range = (number as usize) < REGIONS_MAX;
        if is_in_range {
            let before = self.lock().insert(number, Slot::Attached(Arc::new(memory)));
            if let Some(Slot::Awaited(arrival)) = before {
                arrival.release();
            }
        }
        is_in_range
    }

    /// Detaches a region; nothing happens if there is none with this number.
    pub(crate) fn detach(&self, number: u32) {
        let mut regions = self.lock();
        if let Some(Slot::Attached(_)) = regions.get(&number) {
            let memory = regions.remove(&number);
            drop(regions);
            // Unmapped outside the lock.
            drop(memory);
        }
    }

    /// Blocks until the region with this number is attached. Returns `false` if the number is out
    /// of range, or after [`ATTACH_LIMIT`].
    pub(crate) fn await_attached(&self, number: u32) -> bool {
        if number as usize >= REGIONS_MAX {
            return false;
        }
        let Some(arrival) = self.arrival(number) else { return true };
        if arrival.acquire_timeout(ATTACH_LIMIT) {
            // Other calls may wait for the same region.
            arrival.release();
        }
        let mut regions = self.lock();
        let is_attached = matches!(regions.get(&number), Some(Slot::Attached(_)));
        if !is_attached {
            regions.remove(&number);
        }
        is_attached
    }

    /// The semaphore that is released when the region is attached; `None` if it is attached
    /// already.
    fn arrival(&self, number: u32) -> Option<Arc<Semaphore>> {
        let mut regions = self.lock();
        let fresh = || Slot::Awaited(Arc::new(Semaphore::new(0)));
        match regions.entry(number).or_insert_with(fresh) {
            Slot::Awaited(arrival) => Some(Arc::clone(arrival)),
            Slot::Attached(_) => None,
        }
    }
}
