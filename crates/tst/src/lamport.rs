//! A critical section by loads and stores alone: Lamport's fast mutual exclusion (Paper 0, figure 7).
//!
//! ```text
//!   enter:  wants[i] = true;  x = i;  ‖
//!           y != 0?  ── wants[i] = false, wait for y == 0, enter again
//!           y = i;  ‖
//!           x == i?  ── inside: nobody came in between
//!           wants[i] = false; wait until nobody wants;  y == i?  ── inside;  else wait for y == 0, enter again
//!   leave:  y = 0;  wants[i] = false                          ‖: a full barrier, which one processor alone does not need
//! ```
//!
//! # Participants
//! A kernel thread takes a place among the participants when it first enters, by a compare-and-swap on the place's owner, and keeps it.
//!
//! # The dead
//! A thread that ends inside, or on its way, would stop everybody else for ever; the paper keeps a daemon to clean up. Here whoever
//! waits for it does. It cannot know where the dead thread stopped, and need not: a dead participant is a very slow one, so the waiter
//! **takes over its place and finishes the algorithm in its name**, by steps that are legal from wherever it stopped:
//!
//! - `y` is not the dead one: it had not come far, or somebody has overwritten it. `wants = false` is what it would do next, or would
//!   do when it leaves.
//! - `y` is the dead one: it may be inside, or before the test of `x`. Going the slow way is always allowed, and leads inside:
//!   `wants = false`, wait until nobody wants, `y` still the dead one?, then leave at once: `y = 0`.
//!
//! `tests/lamport_model.rs` visits every order of three participants in which one dies. One waiter does this, whoever wins the place's owner word; if it dies, too, the place has a dead owner again.
#![expect(unsafe_code, reason = "promises exclusion")]

use core::fmt;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use kyocho_sys::scheduling::yield_to_host;
use kyocho_sys::task::ThreadId;

use crate::contract::{Everywhere, Refusal};
use crate::section::Section;

/// Turns of waiting before the waiter looks whether the other one still lives: a system call.
const TURNS_PER_LOOK: u32 = 100;

/// A place among the participants.
#[derive(Default)]
struct Place {
    /// Number of the thread whose place it is; 0: free.
    owner: AtomicU32,
    /// Set from entering until leaving: the thread is somewhere in the algorithm.
    engaged: AtomicBool,
    /// Lamport's `b[i]`.
    wants: AtomicBool,
}

/// Exclusion between as many threads as it has room for; a thread that has ended leaves its place to the next.
///
/// Entering without contention costs two full barriers; with contention a look at every place.
pub struct Lamport {
    /// The last that announced itself, and the one that got further; 1 + index of its place.
    x: AtomicUsize,
    y: AtomicUsize,
    places: Box<[Place]>,
    adopted: AtomicUsize,
}

impl Lamport {
    /// A section for at most `participants_max` threads that live at a time.
    ///
    /// # Panics
    /// When that is 0.
    #[must_use]
    pub fn new(participants_max: usize) -> Self {
        assert!(participants_max > 0, "somebody takes part");
        let places = (0..participants_max).map(|_| Place::default()).collect();
        let (x, y) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { x, y, places, adopted: AtomicUsize::new(0) }
    }

    /// How many threads ended inside or on their way, and were finished by others. What they were changing inside may be
    /// half done.
    #[must_use]
    pub fn adopted(&self) -> usize {
        self.adopted.load(Ordering::Relaxed)
    }

    /// The place of the calling thread, 1 + its index.
    fn place(&self) -> Result<usize, Refusal> {
        let me = ThreadId::remembered().number();
        let first = me as usize % self.places.len();
        if self.places[first].owner.load(Ordering::Relaxed) == me {
            return Ok(first + 1);
        }
        self.find_or_take(me, first)
    }

    #[cold]
    fn find_or_take(&self, me: u32, first: usize) -> Result<usize, Refusal> {
        let in_order = || (first..self.places.len()).chain(0..first);
        let owner = |&index: &usize| self.places[index].owner.load(Ordering::Relaxed);
        if let Some(index) = in_order().find(|index| owner(index) == me) {
            return Ok(index + 1);
        }
        if let Some(index) = in_order().find(|&index| self.change_owner(index, 0, me)) {
            return Ok(index + 1);
        }
        // No room: perhaps somebody has ended.
        for index in in_order() {
            if self.finish_if_dead(index + 1) && self.change_owner(index, 0, me) {
                return Ok(index + 1);
            }
        }
        Err(Refusal::Full)
    }

    fn change_owner(&self, index: usize, from: u32, to: u32) -> bool {
        let owner = &self.places[index].owner;
        owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Waits until `done`, finishing the participant that `whom` names if it is dead. 0 names nobody.
    fn wait(&self, done: impl Fn() -> bool, whom: impl Fn() -> usize) {
        let mut turns = 0_u32;
        while !done() {
            yield_to_host();
            turns += 1;
            let place = whom();
            if turns.is_multiple_of(TURNS_PER_LOOK) && place != 0 {
                self.finish_if_dead(place);
            }
        }
    }

    fn wait_for_y(&self) {
        let y = || self.y.load(Ordering::Acquire);
        self.wait(|| y() == 0, y);
    }

    /// Waits until each place but one has been seen not to want.
    fn wait_for_the_others(&self, place: usize) {
        for other in (1..=self.places.len()).filter(|&other| other != place) {
            let wants = &self.places[other - 1].wants;
            self.wait(|| !wants.load(Ordering::Acquire), || other);
        }
    }

    /// Finishes a participant in its name if its thread has ended, and frees the place. Whether it is free now.
    fn finish_if_dead(&self, place: usize) -> bool {
        let Place { owner, engaged, wants } = &self.places[place - 1];
        let (me, dead) = (ThreadId::remembered().number(), owner.load(Ordering::Acquire));
        if dead == 0 || ThreadId::new(dead).exists() || !self.change_owner(place - 1, dead, me) {
            return false;
        }
        wants.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.y.load(Ordering::Acquire) == place {
            self.wait_for_the_others(place);
            if self.y.load(Ordering::Acquire) == place {
                self.y.store(0, Ordering::Release);
            }
        }
        if engaged.swap(false, Ordering::Relaxed) {
            self.adopted.fetch_add(1, Ordering::Relaxed);
        }
        owner.store(0, Ordering::Release);
        true
    }

    /// One round of the algorithm; whether it led inside.
    fn try_to_enter(&self, place: usize) -> bool {
        let wants = &self.places[place - 1].wants;
        wants.store(true, Ordering::Relaxed);
        self.x.store(place, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.y.load(Ordering::Acquire) != 0 {
            wants.store(false, Ordering::Release);
            self.wait_for_y();
            return false;
        }
        self.y.store(place, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.x.load(Ordering::Acquire) == place {
            return true;
        }
        wants.store(false, Ordering::Release);
        self.wait_for_the_others(place);
        if self.y.load(Ordering::Acquire) == place {
            return true;
        }
        self.wait_for_y();
        false
    }
}

// SAFETY: Lamport's proof; the dead are finished by steps of the algorithm. A signal handler that finds its own thread engaged
// is refused.
unsafe impl Section for Lamport {
    const NAME: &'static str = "lamport";
    /// Which place.
    type Ticket = usize;

    #[inline]
    fn enter(&self) -> Result<usize, Refusal> {
        let place = self.place()?;
        let engaged = &self.places[place - 1].engaged;
        if engaged.load(Ordering::Relaxed) {
            return Err(Refusal::Busy);
        }
        engaged.store(true, Ordering::Relaxed);
        while !self.try_to_enter(place) {}
        Ok(place)
    }

    #[inline]
    fn leave(&self, place: usize) {
        let Place { engaged, wants, .. } = &self.places[place - 1];
        self.y.store(0, Ordering::Release);
        wants.store(false, Ordering::Release);
        engaged.store(false, Ordering::Relaxed);
    }
}

// SAFETY: every thread takes part, up to the number the section was made for; who makes it sees to the number.
unsafe impl Everywhere for Lamport {}

impl fmt::Debug for Lamport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lamport")
            .field("participants_max", &self.places.len())
            .finish_non_exhaustive()
    }
}
