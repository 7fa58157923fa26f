//! Several threads of one node, kernel threads or microprocesses: each calls, waits and faults by itself.
//!
//! ```text
//!   Dsm::seats(3) ──> Seat ── moved to a thread ──> take ──> Hand: acquire, release, cells, barrier ..
//!                     Seat ── moved to another  ──> take ──> Hand      a fault or a wait holds up its own thread alone
//!                     Seat ..                                 a barrier: all hands of all nodes
//! ```
//!
//! To the other nodes this is still one node (`node.rs`): its threads see each other's writes as threads do, and a lock has one holder among
//! them, in any mode. A microprocess that waits here sleeps in the kernel, where its virtual processor is taken from it and goes on; so it
//! does for a page in the handler of the fault.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use bytemuck::Pod;
use kyocho_sys::error::Errno;
use kyocho_sys::signal::{AlternateStack, alternate_stack_bytes};

use crate::address::{ConditionId, LockId, PageId, ThreadId};
use crate::interface::{Call, Outcome, Patience, Who};
use crate::lock::Mode;
use crate::message::BarrierKind;
use crate::runtime::Dsm;
use crate::runtime::array::SharedArray;
use crate::runtime::cell::SharedCell;
use crate::runtime::core::Limit;
use crate::runtime::error::Error;
use crate::runtime::lock_calls::lock_calls;
use crate::runtime::meeting::Wish;
use crate::runtime::places::{Region, RegionSettings};
use crate::runtime::running::Running;
use crate::runtime::statistics::Statistics;

/// A handler of faults needs no more stack than that.
const HANDLER_BYTES_MIN: usize = 48 * 1024;
/// What it gets where it has less: this costs addresses only.
const HANDLER_STACK_BYTES: usize = 256 * 1024;

/// A stack for handlers of faults on this kernel thread, if it has none that is large enough. One that runs microprocesses has, so these
/// may go on on any other.
pub(super) fn handler_stack() -> Result<Option<AlternateStack>, Errno> {
    let narrow = alternate_stack_bytes()? < HANDLER_BYTES_MIN;
    narrow.then(|| AlternateStack::install(HANDLER_STACK_BYTES)).transpose()
}

/// What a hand is to its node; leaves it when dropped.
struct Place<'a> {
    running: Arc<Running>,
    /// The node is borrowed, or stands aside.
    _lent: PhantomData<&'a ()>,
    thread: ThreadId,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.running.core.excuse();
    }
}

/// The right to be one thread of a node. Dropped, it counts at barriers no more.
pub struct Seat<'a>(Place<'a>);

impl fmt::Debug for Seat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seat({})", self.0.thread.0)
    }
}

impl<'a> Seat<'a> {
    /// As many as `count`, of a node whose own thread stands aside meanwhile.
    pub(super) fn all(running: &Arc<Running>, count: u16) -> Vec<Self> {
        running.core.expect(count);
        let seat = |number| {
            let (running, thread) = (Arc::clone(running), ThreadId(number));
            Self(Place { running, _lent: PhantomData, thread })
        };
        (1..=count).map(seat).collect()
    }

    /// Makes the calling kernel thread, or microprocess, this thread of the node.
    ///
    /// # Errors
    /// [`Error::Host`]: no memory for a stack on which faults are answered.
    pub fn take(self) -> Result<Hand<'a>, Error> {
        Ok(Hand { place: self.0, _stack: handler_stack()?, _thread: PhantomData })
    }
}

/// A node that stands aside for threads with seats of their own. Dropped, it counts as dead once these have gone.
#[derive(Debug)]
pub struct Aside(pub(super) Dsm);

impl Aside {
    /// The node again, for its own thread.
    ///
    /// # Errors
    /// Itself: a thread has its seat still.
    pub fn back(self) -> Result<Dsm, Self> {
        if self.0.has_seats() { Err(self) } else { Ok(self.0) }
    }
}

/// One thread of a node, among several ([`super::Dsm::seats`]). Its calls are those of [`super::Dsm`]; a lock that it holds when it is dropped
/// stays taken.
pub struct Hand<'a> {
    place: Place<'a>,
    _stack: Option<AlternateStack>,
    // Its faults are answered on the thread that took the seat.
    _thread: PhantomData<*mut ()>,
}

impl fmt::Debug for Hand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hand({})", self.place.thread.0)
    }
}

impl Hand<'_> {
    /// Its node's rank.
    #[must_use]
    pub fn rank(&self) -> u16 {
        self.place.running.me.0
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.place.running.nodes
    }

    /// Its number among the threads of its node, from 0.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.place.thread.0 - 1
    }

    /// The region that was made here as this one, counted from 0.
    #[must_use]
    pub fn numbered(&self, number: u16) -> Option<Region> {
        self.place.running.places.region(number)
    }

    /// Addresses of a region here.
    ///
    /// # Panics
    /// The region was made by another node, and not here.
    #[must_use]
    pub fn addresses(&self, region: Region) -> Range<usize> {
        self.place.running.addresses(region)
    }

    /// The pages that some addresses of one region here lie on.
    #[must_use]
    pub fn pages_at(&self, addresses: Range<usize>) -> Option<Vec<PageId>> {
        self.place.running.places.pages_at(addresses)
    }

    /// What was counted on its node so far, by all threads.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.place.running.core.statistics()
    }

    /// The elements of an array. Touching one may wait for its page, as for [`super::Dsm::cells`].
    ///
    /// # Panics
    /// The array comes from another node's allocation that was not made here.
    #[must_use]
    #[expect(unsafe_code, reason = "makes cells of this node's memory")]
    pub fn cells<'a, T: Pod>(&'a self, array: &SharedArray<T>) -> &'a [SharedCell<T>] {
        let address = self.place.running.places.address(array);
        // SAFETY: allocated there (asserted), mapped as long as the node lives, which is borrowed, and guarded.
        unsafe { array.shared_cells(address) }
    }

    lock_calls!();

    /// Waits for all threads of all nodes; then everybody sees everything written before. It is a single-read-write barrier if all threads
    /// asked for one.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    pub fn barrier(&mut self, kind: BarrierKind) -> Result<(), Error> {
        self.place.running.meet(self.place.thread, Wish::Barrier(kind))??;
        Ok(())
    }

    /// Makes another region, as [`super::Dsm::region`] does, together with all threads of all nodes, which ask for the same: one of each node makes
    /// it, and comes to the barrier for all.
    ///
    /// # Errors
    /// Those of [`super::Dsm::region`]; where threads of a node ask for different things, all are told of that node.
    pub fn region(&mut self, settings: RegionSettings) -> Result<Region, Error> {
        self.place.running.region_together(self.place.thread, settings)
    }

    /// Gives out an array of a region; one thread of each node does, and tells the others.
    ///
    /// # Errors
    /// [`Error::Full`].
    ///
    /// # Panics
    /// The region was made by another node, and not here.
    pub fn array<T: Pod>(&self, region: Region, length: usize) -> Result<SharedArray<T>, Error> {
        self.place.running.array(region, length)
    }

    /// Brings a page here, so that touching it waits for nobody until the next barrier.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    pub fn fetch(&mut self, page: PageId) -> Result<(), Error> {
        self.place.running.core.fetch(self.place.thread, page)??;
        Ok(())
    }

    fn call(&mut self, call: Call, limit: Limit<'_>) -> Result<Outcome, Error> {
        Ok(self.place.running.core.call(self.place.thread, call, limit)??)
    }
}
