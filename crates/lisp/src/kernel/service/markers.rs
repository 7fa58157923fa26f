//! The services that help the collector to mark: one for each virtual processor, if there are at
//! least [`ENOUGH`].
//!
//! Several markers set marks atomically, which takes two to three times as long per pair as the
//! plain stores of a single marker. So two markers are slower than one (`cargo bench -p kyocho-lisp
//! --bench pauses`).
//!
//! ```text
//!  collector: more work than it can do alone --invite--> marker of another virtual processor:
//!             takes packets, offers parts to others, until none is left; parks
//! ```
//!
//! A marker has the collector's priority. During concurrent marking that is the priority of
//! ordinary threads, and the marker yields at the end of its time slice. While the world is stopped
//! it is the priority of services. The marker of the collector's own virtual processor is not used.

use crate::kernel::{Kernel, lock};
use kyocho_microprocess::{Microprocess, Priority, virtual_processor, yield_now};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

/// How often a marker without work yields before it parks. Waking it takes as long as marking some
/// thousand objects.
const LOOKS: usize = 500;

/// Least number of virtual processors for shared marking.
pub(crate) const ENOUGH: usize = 4;

#[derive(Debug, Default)]
struct MarkerSlot {
    microprocess: Mutex<Option<Microprocess>>,
    is_idle: AtomicBool,
}

/// The markers, by virtual processor; empty if there are too few processors.
#[derive(Debug)]
pub(crate) struct Markers {
    slots: Box<[MarkerSlot]>,
    priority: Mutex<Priority>,
    /// The virtual processor of the collector.
    collector_at: AtomicUsize,
}

impl Markers {
    /// The markers for this many virtual processors.
    pub(super) fn new(virtual_processors: usize) -> Self {
        Self {
            slots: (0..Self::count_for(virtual_processors))
                .map(|_| MarkerSlot::default())
                .collect(),
            priority: Mutex::new(Priority::HIGHEST),
            collector_at: AtomicUsize::new(0),
        }
    }

    /// The number of markers for this many virtual processors.
    pub(crate) const fn count_for(virtual_processors: usize) -> usize {
        if virtual_processors < ENOUGH { 0 } else { virtual_processors }
    }

    /// The number of markers.
    pub(crate) const fn count(&self) -> usize {
        self.slots.len()
    }

    /// Called by the collector when it begins.
    pub(super) fn begin(&self) {
        self.collector_at.store(virtual_processor(), Ordering::Relaxed);
        self.set_priority(Priority::HIGHEST);
    }

    /// Gives the markers the collector's priority.
    pub(super) fn set_priority(&self, priority: Priority) {
        *lock(&self.priority) = priority;
        // A marker that is about to begin clears `is_idle` first and reads the priority afterwards.
        for slot in self.slots.iter().filter(|slot| !slot.is_idle.load(Ordering::SeqCst)) {
            if let Some(microprocess) = lock(&slot.microprocess).as_ref() {
                microprocess.set_priority(priority);
            }
        }
    }

    /// Wakes an idle marker, if there is one.
    pub(crate) fn invite(&self) {
        let (me, collector) = (virtual_processor(), self.collector_at.load(Ordering::Relaxed));
        let others =
            self.slots.iter().enumerate().filter(|&(place, _)| place != me && place != collector);
        for (_, slot) in others {
            if slot.is_idle.swap(false, Ordering::SeqCst) {
                super::wake(&slot.microprocess);
                return;
            }
        }
    }

    /// The body of a marker, until the process ends.
    pub(crate) fn run(&self, place: usize, kernel: &Kernel) {
        let slot = &self.slots[place];
        let me = Microprocess::current();
        me.set_virtual_processor(Some(place));
        *lock(&slot.microprocess) = Some(me);
        loop {
            slot.is_idle.store(true, Ordering::SeqCst);
            if !kernel.heap.has_work() {
                kyocho_microprocess::park();
            }
            slot.is_idle.store(false, Ordering::SeqCst);
            let priority = *lock(&self.priority);
            me.set_priority(priority);
            self.help(kernel, &me);
        }
    }

    fn help(&self, kernel: &Kernel, me: &Microprocess) {
        let mut looks = 0;
        while looks < LOOKS {
            looks = if kernel.heap.help(|| super::yield_if_due(me)) { 0 } else { looks + 1 };
            yield_now();
        }
    }

    /// The markers' microprocesses.
    #[cfg(test)]
    pub(crate) fn microprocesses(&self) -> Vec<Microprocess> {
        self.slots.iter().filter_map(|slot| *lock(&slot.microprocess)).collect()
    }
}
