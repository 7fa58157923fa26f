//! Several threads of one node, kernel threads or microprocesses. Each calls, waits and faults by
//! itself.
//!
//! ```text
//!   Dsm::thread_slots(3)
//!     ├─> ThreadSlot ── moved to a thread ──> take ──> NodeThread: acquire, release, cells ..
//!     ├─> ThreadSlot ── moved to another  ──> take ──> NodeThread
//!     └─> ThreadSlot ..
//!   A fault or a wait blocks only its own thread. A barrier waits for all threads of all nodes.
//! ```
//!
//! The other nodes see one node (`node.rs`). Its threads see each other's writes as threads do, and
//! a lock has at most one holder among them, in any mode. A microprocess that waits here, or for a
//! page in the fault handler, sleeps in the kernel; its virtual processor runs others meanwhile.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use bytemuck::Pod;
use kyocho_sys::error::Errno;
use kyocho_sys::signal::{AlternateStack, alternate_stack_bytes};

use crate::address::{ConditionId, LockId, PageId, ThreadId};
use crate::interface::{Call, Outcome, WaitPolicy, Waiters};
use crate::lock::Mode;
use crate::message::BarrierKind;
use crate::runtime::Dsm;
use crate::runtime::array::SharedArray;
use crate::runtime::cell::SharedCell;
use crate::runtime::core::Limit;
use crate::runtime::error::Error;
use crate::runtime::lock_calls::lock_calls;
use crate::runtime::mappings::{Region, RegionSettings};
use crate::runtime::meeting::Request;
use crate::runtime::running::Running;
use crate::runtime::statistics::Statistics;

/// A fault handler needs at most this much stack.
const HANDLER_BYTES_MIN: usize = 48 * 1024;
/// Size of a stack that is installed because the present one is smaller; it costs only address
/// space.
const HANDLER_STACK_BYTES: usize = 256 * 1024;

/// Installs an alternate stack for fault handlers on this kernel thread, if it has none that is
/// large enough. Threads that run microprocesses have one, so a microprocess may migrate between
/// them.
pub(super) fn handler_stack() -> Result<Option<AlternateStack>, Errno> {
    let narrow = alternate_stack_bytes()? < HANDLER_BYTES_MIN;
    narrow.then(|| AlternateStack::install(HANDLER_STACK_BYTES)).transpose()
}

/// A thread's membership of its node; ends when dropped.
struct Membership<'a> {
    running: Arc<Running>,
    /// The node is borrowed, or a [`SharedNode`].
    _lent: PhantomData<&'a ()>,
    thread: ThreadId,
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        self.running.core.excuse();
    }
}

/// The right to be one thread of a node. Once it is dropped, barriers no longer wait for it.
pub struct ThreadSlot<'a>(Membership<'a>);

impl fmt::Debug for ThreadSlot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadSlot({})", self.0.thread.0)
    }
}

impl<'a> ThreadSlot<'a> {
    /// Creates `count` slots of a node whose own thread does not use it meanwhile.
    pub(super) fn all(running: &Arc<Running>, count: u16) -> Vec<Self> {
        running.core.expect(count);
        let slot = |number| {
            let (running, thread) = (Arc::clone(running), ThreadId(number));
            Self(Membership { running, _lent: PhantomData, thread })
        };
        (1..=count).map(slot).collect()
    }

    /// Makes the calling kernel thread or microprocess this thread of the node.
    ///
    /// # Errors
    /// [`Error::Host`]: no memory for the stack of fault handlers.
    pub fn take(self) -> Result<NodeThread<'a>, Error> {
        Ok(NodeThread { membership: self.0, _stack: handler_stack()?, _thread: PhantomData })
    }
}

/// A node that is used by threads with slots. If it is dropped, the node counts as dead once these
/// threads have ended.
#[derive(Debug)]
pub struct SharedNode(pub(super) Dsm);

impl SharedNode {
    /// Returns the node to its own thread.
    ///
    /// # Errors
    /// Itself, if a thread still has its slot.
    pub fn back(self) -> Result<Dsm, Self> {
        if self.0.has_thread_slots() { Err(self) } else { Ok(self.0) }
    }
}

/// One thread of a node among several ([`super::Dsm::thread_slots`]). Its calls are those of
/// [`super::Dsm`]. A lock that it holds when it is dropped stays held.
pub struct NodeThread<'a> {
    membership: Membership<'a>,
    _stack: Option<AlternateStack>,
    // Its faults are handled on the thread that took the slot.
    _thread: PhantomData<*mut ()>,
}

impl fmt::Debug for NodeThread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeThread({})", self.membership.thread.0)
    }
}

impl NodeThread<'_> {
    /// Its node's rank.
    #[must_use]
    pub fn rank(&self) -> u16 {
        self.membership.running.me.0
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.membership.running.nodes
    }

    /// Its number among the threads of its node, from 0.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.membership.thread.0 - 1
    }

    /// The region that was created with this number, counted from 0.
    #[must_use]
    pub fn numbered(&self, number: u16) -> Option<Region> {
        self.membership.running.mappings.region(number)
    }

    /// The addresses of a region in this process.
    ///
    /// # Panics
    /// The region was created by another node, and not by this one.
    #[must_use]
    pub fn addresses(&self, region: Region) -> Range<usize> {
        self.membership.running.addresses(region)
    }

    /// The pages of some addresses of one region in this process.
    #[must_use]
    pub fn pages_at(&self, addresses: Range<usize>) -> Option<Vec<PageId>> {
        self.membership.running.mappings.pages_at(addresses)
    }

    /// The counters of its node, of all threads together.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.membership.running.core.statistics()
    }

    /// The elements of an array. An access may wait for its page, as for [`super::Dsm::cells`].
    ///
    /// # Panics
    /// This node has not allocated the array.
    #[must_use]
    #[expect(unsafe_code, reason = "makes cells of this node's memory")]
    pub fn cells<'a, T: Pod>(&'a self, array: &SharedArray<T>) -> &'a [SharedCell<T>] {
        let address = self.membership.running.mappings.address(array);
        // SAFETY: allocated there (asserted), mapped as long as the node lives, which is borrowed,
        // and its faults are handled.
        unsafe { array.shared_cells(address) }
    }

    lock_calls!();

    /// Waits for all threads of all nodes. Afterwards all of them see everything that was written
    /// before. It is a single-read-write barrier only if all threads ask for one.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    pub fn barrier(&mut self, kind: BarrierKind) -> Result<(), Error> {
        self.membership.running.meet(self.membership.thread, Request::Barrier(kind))??;
        Ok(())
    }

    /// Creates another region, as [`super::Dsm::region`] does. All threads of all nodes ask for the
    /// same region; one thread per node creates it, and arrives at the barrier for all.
    ///
    /// # Errors
    /// Those of [`super::Dsm::region`]. If the threads of a node ask for different things, all
    /// nodes get an error that names that node.
    pub fn region(&mut self, settings: RegionSettings) -> Result<Region, Error> {
        self.membership.running.region_together(self.membership.thread, settings)
    }

    /// Allocates an array of a region. One thread of each node does so, and passes it to the
    /// others.
    ///
    /// # Errors
    /// [`Error::Full`].
    ///
    /// # Panics
    /// The region was created by another node, and not by this one.
    pub fn array<T: Pod>(&self, region: Region, length: usize) -> Result<SharedArray<T>, Error> {
        self.membership.running.array(region, length)
    }

    /// Fetches a page. From now until the next barrier, accesses to it do not wait.
    ///
    /// # Errors
    /// As for [`super::Dsm::fetch`].
    pub fn fetch(&mut self, page: PageId) -> Result<(), Error> {
        self.membership.running.core.fetch(self.membership.thread, page)??;
        Ok(())
    }

    fn call(&mut self, call: Call, limit: Limit<'_>) -> Result<Outcome, Error> {
        Ok(self.membership.running.core.call(self.membership.thread, call, limit)??)
    }
}
