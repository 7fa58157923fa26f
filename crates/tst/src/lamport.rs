//! A critical section with loads and stores alone: Lamport's fast mutual exclusion (Paper 0, figure
//! 7).
//!
//! ```text
//!   enter:  wants[i] = true;  x = i;  ‖
//!           y != 0?  ── wants[i] = false, wait for y == 0, enter again
//!           y = i;  ‖
//!           x == i?  ── inside: no other thread came in between
//!           wants[i] = false; wait until no thread wants
//!           y == i?  ── inside;  else wait for y == 0, enter again
//!   leave:  y = 0;  wants[i] = false
//!
//!   ‖: a full barrier, unnecessary on one processor
//! ```
//!
//! # Participants
//! A kernel thread takes a slot when it first enters, by a compare-and-swap on the slot's owner
//! word, and keeps it.
//!
//! # Dead participants
//! A thread that ends inside, or while it enters, would block all others for ever; the paper uses a
//! daemon to clean up. Here the thread that waits for it does so. It cannot know where the dead
//! thread stopped, and need not: a dead participant is a very slow one. So the waiter **takes over
//! its slot and finishes the algorithm on its behalf**, with steps that are legal wherever it
//! stopped:
//!
//! - `y` is not the dead participant: it had not set `y` yet, or another one has overwritten it.
//!   `wants = false` is its next step, or its last one when it leaves.
//! - `y` is the dead participant: it may be inside, or before the test of `x`. The slow path is
//!   always allowed and leads inside: `wants = false`, wait until no thread wants; if `y` is still
//!   the dead participant, leave at once: `y = 0`.
//!
//! `tests/lamport_model.rs` visits every order of three participants of which one dies. One waiter
//! finishes a dead participant: the one that wins the slot's owner word. If it dies, too, the slot
//! has a dead owner again.
//!
//! This needs no daemon. A daemon must be started, must poll or be told, and may die itself; a
//! participant that waits is there whenever a dead one is in the way. `kernel/mips/guest` has the
//! paper's form, with a daemon.
//!
//! The owner word holds the thread's number and the time of its start, because the host reuses
//! numbers.
#![expect(unsafe_code, reason = "promises exclusion")]

use core::fmt;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use kyocho_sys::scheduling::yield_to_host;
use kyocho_sys::task::ThreadLife;

use crate::contract::{Everywhere, Refusal};
use crate::section::Section;

/// Rounds of waiting before the waiter checks whether the other thread is alive, which costs some
/// microseconds.
const ROUNDS_PER_CHECK: u32 = 100;

/// A participant's slot.
#[derive(Default)]
struct Slot {
    /// The thread that owns the slot ([`ThreadLife::word`]); 0 if it is free.
    owner: AtomicU64,
    /// Set from entering until leaving: the thread is at some step of the algorithm.
    engaged: AtomicBool,
    /// Lamport's `b[i]`.
    wants: AtomicBool,
}

/// Exclusion between a bounded number of threads. The slot of a thread that has ended is reused.
///
/// Entering without contention costs two full barriers; with contention also a read of every slot.
pub struct Lamport {
    /// The last participant that announced itself, and the one that got furthest: 1 + index of its
    /// slot.
    x: AtomicUsize,
    y: AtomicUsize,
    slots: Box<[Slot]>,
    adopted: AtomicUsize,
}

impl Lamport {
    /// A section for at most `participants_max` living threads.
    ///
    /// # Panics
    /// `participants_max` is 0.
    #[must_use]
    pub fn new(participants_max: usize) -> Self {
        assert!(participants_max > 0, "at least one participant");
        let slots = (0..participants_max).map(|_| Slot::default()).collect();
        let (x, y) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { x, y, slots, adopted: AtomicUsize::new(0) }
    }

    /// Number of threads that ended inside or while entering and were finished by others. Data that
    /// they were changing inside may be inconsistent.
    #[must_use]
    pub fn adopted(&self) -> usize {
        self.adopted.load(Ordering::Relaxed)
    }

    /// The slot of the calling thread, as 1 + its index.
    #[inline]
    fn slot(&self) -> Result<usize, Refusal> {
        if let Some(me) = ThreadLife::if_remembered() {
            let first = self.first_index(me);
            if self.slots[first].owner.load(Ordering::Relaxed) == me.word() {
                return Ok(first + 1);
            }
        }
        self.find_or_take()
    }

    /// The slot that a thread takes if it is free.
    fn first_index(&self, thread: ThreadLife) -> usize {
        thread.thread().number() as usize % self.slots.len()
    }

    #[cold]
    fn find_or_take(&self) -> Result<usize, Refusal> {
        let me = ThreadLife::remembered();
        let (first, me) = (self.first_index(me), me.word());
        let in_order = || (first..self.slots.len()).chain(0..first);
        let owner = |&index: &usize| self.slots[index].owner.load(Ordering::Relaxed);
        if let Some(index) = in_order().find(|index| owner(index) == me) {
            return Ok(index + 1);
        }
        if let Some(index) = in_order().find(|&index| self.change_owner(index, 0, me)) {
            return Ok(index + 1);
        }
        // All slots are taken: frees one whose thread has ended.
        for index in in_order() {
            if self.finish_if_dead(index + 1) && self.change_owner(index, 0, me) {
                return Ok(index + 1);
            }
        }
        Err(Refusal::Full)
    }

    fn change_owner(&self, index: usize, from: u64, to: u64) -> bool {
        let owner = &self.slots[index].owner;
        owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Waits until `done`. If the participant that `participant` names is dead, finishes it; 0
    /// names none.
    fn wait(&self, done: impl Fn() -> bool, participant: impl Fn() -> usize) {
        let mut rounds = 0_u32;
        while !done() {
            yield_to_host();
            rounds += 1;
            let slot = participant();
            if rounds.is_multiple_of(ROUNDS_PER_CHECK) && slot != 0 {
                self.finish_if_dead(slot);
            }
        }
    }

    fn wait_for_y(&self) {
        let y = || self.y.load(Ordering::Acquire);
        self.wait(|| y() == 0, y);
    }

    /// Waits until each slot but one has been seen not to want.
    fn wait_for_the_others(&self, slot: usize) {
        for other in (1..=self.slots.len()).filter(|&other| other != slot) {
            let wants = &self.slots[other - 1].wants;
            self.wait(|| !wants.load(Ordering::Acquire), || other);
        }
    }

    /// Finishes a participant on its behalf if its thread has ended, and frees the slot. Returns
    /// whether the slot is free now.
    fn finish_if_dead(&self, slot: usize) -> bool {
        let Slot { owner, engaged, wants } = &self.slots[slot - 1];
        let (me, dead) = (ThreadLife::remembered().word(), owner.load(Ordering::Acquire));
        let is_dead = dead != 0 && ThreadLife::from_word(dead).has_ended();
        if !is_dead || !self.change_owner(slot - 1, dead, me) {
            return false;
        }
        wants.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.y.load(Ordering::Acquire) == slot {
            self.wait_for_the_others(slot);
            if self.y.load(Ordering::Acquire) == slot {
                self.y.store(0, Ordering::Release);
            }
        }
        if engaged.swap(false, Ordering::Relaxed) {
            self.adopted.fetch_add(1, Ordering::Relaxed);
        }
        owner.store(0, Ordering::Release);
        true
    }

    /// One round of the algorithm. Returns whether the caller is inside.
    fn try_to_enter(&self, slot: usize) -> bool {
        let wants = &self.slots[slot - 1].wants;
        wants.store(true, Ordering::Relaxed);
        self.x.store(slot, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.y.load(Ordering::Acquire) != 0 {
            wants.store(false, Ordering::Release);
            self.wait_for_y();
            return false;
        }
        self.y.store(slot, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.x.load(Ordering::Acquire) == slot {
            return true;
        }
        wants.store(false, Ordering::Release);
        self.wait_for_the_others(slot);
        if self.y.load(Ordering::Acquire) == slot {
            return true;
        }
        self.wait_for_y();
        false
    }
}

// SAFETY: Lamport's proof; dead participants are finished with steps of the algorithm. A signal
// handler whose own thread is engaged is refused.
unsafe impl Section for Lamport {
    const NAME: &'static str = "lamport";
    /// The slot.
    type Ticket = usize;

    #[inline]
    fn enter(&self) -> Result<usize, Refusal> {
        let slot = self.slot()?;
        let engaged = &self.slots[slot - 1].engaged;
        if engaged.load(Ordering::Relaxed) {
            return Err(Refusal::Busy);
        }
        engaged.store(true, Ordering::Relaxed);
        while !self.try_to_enter(slot) {}
        Ok(slot)
    }

    #[inline]
    fn leave(&self, slot: usize) {
        let Slot { engaged, wants, .. } = &self.slots[slot - 1];
        self.y.store(0, Ordering::Release);
        wants.store(false, Ordering::Release);
        engaged.store(false, Ordering::Relaxed);
    }
}

// SAFETY: the section serves every thread, up to the number that its creator chose.
unsafe impl Everywhere for Lamport {}

impl fmt::Debug for Lamport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lamport")
            .field("participants_max", &self.slots.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
