//! The queue of microprocesses that wait for one object.
//!
//! Higher priorities come first, FIFO among equals. The nodes lie on the waiters' own stacks, so
//! waiting allocates nothing. Equal priorities form a ring; the first of each ring, its *leader*,
//! is linked to the leaders of the neighbouring priorities:
//!
//! ```text
//! head -> [p40 a] <-> [p40 b] <-> (back to a)        the ring of priority 40, a leads
//!            |
//!         [p31 c] <-> (back to c)                    the ring of priority 31, c leads
//! ```
//!
//! **Invariant:** leaders are linked in strictly falling priority, and there are at most 64. So
//! `push` reads at most 64 nodes, whatever the number of waiters; `pop` and `remove` read a
//! constant number.
//! **Invariant:** a queue is accessed only inside its object's
//! [`Guarded`](crate::schedule::guarded::Guarded).
#![expect(unsafe_code, reason = "an intrusive list: the nodes live on the waiters' stacks")]

use core::ptr::{self, NonNull};

use super::wait::{Claimed, Waiter};
use kyocho_sys::prim::cell::UnsafeCell;

/// The links of a node; null if there is no neighbour.
#[derive(Debug)]
pub(super) struct Links {
    /// The ring of equals, in order of arrival.
    next: *const Waiter,
    previous: *const Waiter,
    /// The leader of the next lower and of the next higher priority. Only leaders have these.
    lower: *const Waiter,
    higher: *const Waiter,
    queued: bool,
}

impl Links {
    /// The links of a node that is in no queue.
    pub(super) const fn new() -> UnsafeCell<Self> {
        UnsafeCell::new(Self {
            next: ptr::null(),
            previous: ptr::null(),
            lower: ptr::null(),
            higher: ptr::null(),
            queued: false,
        })
    }
}

/// A priority queue of [`Waiter`]s.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    /// The leader of the highest priority.
    head: *const Waiter,
}

// SAFETY: the queue is data of a `Guarded` object, which admits one microprocess at a time. The
// nodes that it points to are accessed only by that one.
unsafe impl Send for WaitQueue {}

/// The links of `node`, which is in a queue whose guard the caller holds.
fn links(node: *const Waiter) -> *mut Links {
    // SAFETY: a queued node is alive. Its owner does not return from its wait before the node has
    // left the queue, and it leaves only under the guard that the caller holds.
    unsafe { (*node).links.get() }
}

/// Reads one link field of a queued node, or writes it.
macro_rules! link {
    ($node:expr, $field:ident) => {{
        // SAFETY: as for `links`. The guard excludes all other accesses.
        unsafe { (*links($node)).$field }
    }};
    ($node:expr, $field:ident = $value:expr) => {{
        let value = $value;
        // SAFETY: as for `links`. The guard excludes all other accesses.
        unsafe { (*links($node)).$field = value };
    }};
}

fn priority(node: *const Waiter) -> u8 {
    // SAFETY: a queued node is alive, see `links`.
    unsafe { (*node).priority() }
}

impl WaitQueue {
    /// An empty queue.
    pub(crate) const fn new() -> Self {
        Self { head: ptr::null() }
    }

    /// Whether there is no waiter.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// The first waiter in the queue.
    pub(crate) fn first(&self) -> Option<&Waiter> {
        // SAFETY: null or a queued node, which is alive as long as the guard is held.
        unsafe { self.head.as_ref() }
    }

    /// The waiters, first to last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        let mut next = self.head;
        let mut leader = self.head;
        core::iter::from_fn(move || {
            // SAFETY: null or a queued node, alive as long as `self` is borrowed.
            let node = unsafe { next.as_ref() }?;
            next = link!(next, next);
            if ptr::eq(next, leader) {
                leader = link!(leader, lower);
                next = leader;
            }
            Some(node)
        })
    }

    /// Appends `waiter` behind its equals.
    ///
    /// # Safety
    /// `waiter` is in no queue, and is neither moved nor freed before it has left this one.
    #[inline]
    pub(crate) unsafe fn push(&mut self, waiter: &Waiter) {
        let node = ptr::from_ref(waiter);
        debug_assert!(!link!(node, queued), "a waiter is in one queue at a time");
        let level = waiter.priority();
        let (mut higher, mut at) = (ptr::null(), self.head);
        while !at.is_null() && priority(at) > level {
            (higher, at) = (at, link!(at, lower));
        }
        link!(node, queued = true);
        if !at.is_null() && priority(at) == level {
            let last = link!(at, previous);
            link!(node, next = at);
            link!(node, previous = last);
            link!(last, next = node);
            link!(at, previous = node);
            link!(node, higher = ptr::null());
        } else {
            link!(node, next = node);
            link!(node, previous = node);
            self.link_leader(node, higher, at);
        }
    }

    /// Makes `node` the leader between its neighbours `higher` and `lower`.
    fn link_leader(&mut self, node: *const Waiter, higher: *const Waiter, lower: *const Waiter) {
        link!(node, higher = higher);
        link!(node, lower = lower);
        if higher.is_null() {
            self.head = node;
        } else {
            link!(higher, lower = node);
        }
        if !lower.is_null() {
            link!(lower, higher = node);
        }
    }

    /// Removes `waiter`, if it is in a queue; returns whether it was.
    pub(crate) fn remove(&mut self, waiter: &Waiter) -> bool {
        let node = ptr::from_ref(waiter);
        if !link!(node, queued) {
            return false;
        }
        link!(node, queued = false);
        let (next, previous) = (link!(node, next), link!(node, previous));
        let (higher, lower) = (link!(node, higher), link!(node, lower));
        link!(previous, next = next);
        link!(next, previous = previous);
        let leads = ptr::eq(self.head, node) || !higher.is_null();
        if leads && ptr::eq(next, node) {
            self.unlink_leader(higher, lower);
        } else if leads {
            self.link_leader(next, higher, lower);
        }
        true
    }

    /// Gives a waiter another priority, and moves it behind those of that priority. Has no effect
    /// on a waiter that already has the priority or is in no queue.
    pub(crate) fn rank_anew(&mut self, waiter: &Waiter, priority: u8) {
        if waiter.priority() != priority && self.remove(waiter) {
            waiter.set_priority(priority);
            // SAFETY: it has just left this queue, where it was pinned, and the same conditions
            // hold again.
            unsafe { self.push(waiter) };
        }
    }

    /// Links the neighbours of a leader whose ring is empty.
    fn unlink_leader(&mut self, higher: *const Waiter, lower: *const Waiter) {
        if higher.is_null() {
            self.head = lower;
        } else {
            link!(higher, lower = lower);
        }
        if !lower.is_null() {
            link!(lower, higher = higher);
        }
    }

    /// Removes the first waiter that can still be granted its wait, and claims it.
    ///
    /// A waiter of a `select` may have been claimed through another of its arms. Such waiters are
    /// dropped from the queue.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Claimed> {
        while let Some(first) = NonNull::new(self.head.cast_mut()) {
            self.unlink_head();
            // SAFETY: it was in the queue until now, so it is alive, see `links`.
            if let Some(claimed) = Claimed::claim(unsafe { first.as_ref() }) {
                return Some(claimed);
            }
        }
        None
    }

    /// Removes the first waiter, which must exist.
    #[inline]
    fn unlink_head(&mut self) {
        let node = self.head;
        let (next, lower) = (link!(node, next), link!(node, lower));
        link!(node, queued = false);
        if ptr::eq(next, node) {
            self.unlink_leader(ptr::null(), lower);
        } else {
            let last = link!(node, previous);
            link!(last, next = next);
            link!(next, previous = last);
            self.link_leader(next, ptr::null(), lower);
        }
    }
}
