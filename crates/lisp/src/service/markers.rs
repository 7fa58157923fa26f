//! The services that help the collector to mark: one for each virtual processor, where there are [`ENOUGH`].
//!
//! Marks of several markers are set by atomic steps, one of a single marker by plain ones: a pair takes two to three times as long. So two take longer than one
//! (`cargo bench -p kyocho-lisp --bench pauses`, two AMD EPYC cores: 214 ms instead of 130).
//!
//! ```text
//!  collector: more than it can do alone --invite--> marker of another virtual processor
//!                                                    takes packets, leaves some to others, until there are none; parks
//! ```
//!
//! A marker is as urgent as the collector is: beside running threads as they are, and gives way at the end of its time slice; while the world
//! stands still, as services are. The one of the virtual processor that the collector marks on is not called.

use crate::system::kernel::{Kernel, lock};
use kyocho_microprocess::{Microprocess, Priority, virtual_processor, yield_now};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

/// How often a marker without work lets others run before it parks: being woken takes as long as some thousand objects.
const LOOKS: usize = 500;

/// On so many virtual processors marking is shared.
pub(crate) const ENOUGH: usize = 4;

#[derive(Debug, Default)]
struct Seat {
    microprocess: Mutex<Option<Microprocess>>,
    is_idle: AtomicBool,
}

/// The markers, by virtual processor; none where those are few.
#[derive(Debug)]
pub(crate) struct Markers {
    seats: Box<[Seat]>,
    priority: Mutex<Priority>,
    /// The virtual processor of the collector.
    maker_at: AtomicUsize,
}

impl Markers {
    /// For so many virtual processors.
    pub(super) fn new(virtual_processors: usize) -> Self {
        Self {
            seats: (0..Self::count_for(virtual_processors)).map(|_| Seat::default()).collect(),
            priority: Mutex::new(Priority::HIGHEST),
            maker_at: AtomicUsize::new(0),
        }
    }

    /// How many there are on so many virtual processors.
    pub(crate) const fn count_for(virtual_processors: usize) -> usize {
        if virtual_processors < ENOUGH { 0 } else { virtual_processors }
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.seats.len()
    }

    /// The caller begins to collect.
    pub(super) fn begin(&self) {
        self.maker_at.store(virtual_processor(), Ordering::Relaxed);
        self.set_priority(Priority::HIGHEST);
    }

    /// They are as urgent as the collector.
    pub(super) fn set_priority(&self, priority: Priority) {
        *lock(&self.priority) = priority;
        // One that is about to begin has said so, and reads it after.
        for seat in self.seats.iter().filter(|seat| !seat.is_idle.load(Ordering::SeqCst)) {
            if let Some(microprocess) = lock(&seat.microprocess).as_ref() {
                microprocess.set_priority(priority);
            }
        }
    }

    /// Calls one that has nothing to do, if there is one.
    pub(crate) fn invite(&self) {
        let (me, maker) = (virtual_processor(), self.maker_at.load(Ordering::Relaxed));
        let others =
            self.seats.iter().enumerate().filter(|&(place, _)| place != me && place != maker);
        for (_, seat) in others {
            if seat.is_idle.swap(false, Ordering::SeqCst) {
                super::wake(&seat.microprocess);
                return;
            }
        }
    }

    /// The body of one of them, until the process ends.
    pub(crate) fn run(&self, place: usize, kernel: &Kernel) {
        let seat = &self.seats[place];
        let me = Microprocess::current();
        me.set_virtual_processor(Some(place));
        *lock(&seat.microprocess) = Some(me);
        loop {
            seat.is_idle.store(true, Ordering::SeqCst);
            if !kernel.heap.has_work() {
                kyocho_microprocess::park();
            }
            seat.is_idle.store(false, Ordering::SeqCst);
            let priority = *lock(&self.priority);
            me.set_priority(priority);
            self.help(kernel, &me);
        }
    }

    fn help(&self, kernel: &Kernel, me: &Microprocess) {
        let mut looks = 0;
        while looks < LOOKS {
            looks = if kernel.heap.help(|| super::give_way(me)) { 0 } else { looks + 1 };
            yield_now();
        }
    }

    /// Those who help.
    #[cfg(test)]
    pub(crate) fn microprocesses(&self) -> Vec<Microprocess> {
        self.seats.iter().filter_map(|seat| *lock(&seat.microprocess)).collect()
    }
}
