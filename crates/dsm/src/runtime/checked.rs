//! A node for interpreters, whose every access is a call. No access is a page fault, and one that
//! fails returns an error.
//!
//! The interpreter's threads move between kernel threads. They share the node like threads with
//! slots ([`super::NodeThread`]), by numbers that the interpreter assigns. At a barrier one thread
//! represents the node; the others must not access shared memory meanwhile.

use core::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use kyocho_sys::memory::PAGE_BYTES;

use crate::address::{ConditionId, LockId, NodeId, PageId, ThreadId};
use crate::interface::{Call, Outcome, WaitPolicy, Waiters};
use crate::lock::Mode;
use crate::message::{BarrierKind, Move};
use crate::page::WORDS_A_PAGE;
use crate::region::Placement;
use crate::runtime::array::SharedArray;
use crate::runtime::core::Limit;
use crate::runtime::error::Error;
use crate::runtime::mappings::{Region, RegionSettings};
use crate::runtime::running::Running;
use crate::runtime::statistics::Statistics;

/// A node of an interpreted program. A node that is dropped without leaving counts as dead.
///
/// A call that needs a node which is dead or has left fails with [`Error::Protocol`]. While one
/// thread crosses a barrier, so do the calls of all others
/// ([`DsmError::CallOutstanding`](crate::DsmError::CallOutstanding)).
#[derive(Debug)]
pub struct CheckedNode {
    running: Arc<Running>,
}

impl CheckedNode {
    pub(super) fn new(running: Arc<Running>) -> Self {
        Self { running }
    }

    /// This node's rank.
    #[must_use]
    pub fn rank(&self) -> u16 {
        self.running.me.0
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.running.nodes
    }

    /// Allocates an array of zeros, as [`super::Dsm::allocate`] does; crosses a barrier.
    ///
    /// # Errors
    /// Those of [`super::Dsm::allocate`].
    pub fn allocate<T: Pod>(
        &self,
        thread: ThreadId,
        length: usize,
        placement: Placement,
    ) -> Result<SharedArray<T>, Error> {
        self.running.allocate(thread, length, placement)
    }

    /// Creates a region, as [`super::Dsm::region`] does. Crosses a barrier, where one thread
    /// represents the node.
    ///
    /// # Errors
    /// Those of [`super::Dsm::region`].
    pub fn region(&self, thread: ThreadId, settings: RegionSettings) -> Result<Region, Error> {
        self.running.region(thread, settings)
    }

    /// Allocates an array of zeros in a region, as [`super::Dsm::array`] does.
    ///
    /// # Errors
    /// [`Error::Full`].
    ///
    /// # Panics
    /// The region was created by another node, and not by this one.
    pub fn array<T: Pod>(&self, region: Region, length: usize) -> Result<SharedArray<T>, Error> {
        self.running.array(region, length)
    }

    /// Reads an element. Waits for its page if that is absent.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    ///
    /// # Panics
    /// The index is out of range.
    pub fn get<T: Pod>(
        &self,
        thread: ThreadId,
        array: &SharedArray<T>,
        index: usize,
    ) -> Result<T, Error> {
        let mut value = T::zeroed();
        let words = bytemuck::cast_slice_mut::<u8, u32>(bytemuck::bytes_of_mut(&mut value));
        for (page, inside, part) in parts(array.words(index)) {
            self.running.core.read(thread, page, inside, &mut words[part])??;
        }
        Ok(value)
    }

    /// Writes an element. Waits for its page if that is absent.
    ///
    /// # Errors
    /// As for [`Self::get`].
    ///
    /// # Panics
    /// The index is out of range.
    pub fn set<T: Pod>(
        &self,
        thread: ThreadId,
        array: &SharedArray<T>,
        index: usize,
        value: T,
    ) -> Result<(), Error> {
        let words = bytemuck::cast_slice::<u8, u32>(bytemuck::bytes_of(&value));
        for (page, inside, part) in parts(array.words(index)) {
            self.running.core.write(thread, page, inside, &words[part])??;
        }
        Ok(())
    }

    /// Acquires a lock. Waits for it, also if another thread of this node holds it, until
    /// `given_up` returns true; that is called every 20 ms. Returns whether the lock was acquired.
    ///
    /// # Errors
    /// [`Error::Protocol`]: out of range, held already, a node is dead.
    pub fn acquire(
        &self,
        thread: ThreadId,
        lock: LockId,
        mode: Mode,
        policy: WaitPolicy,
        given_up: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let call = Call::Acquire(lock, mode, policy);
        let outcome = self.running.core.call(thread, call, Limit::When(given_up))??;
        Ok(outcome == Outcome::Done)
    }

    /// Releases a lock.
    ///
    /// # Errors
    /// [`Error::Protocol`]: this thread does not hold it, a node is dead.
    pub fn release(&self, thread: ThreadId, lock: LockId) -> Result<(), Error> {
        self.call(thread, Call::Release(lock)).map(drop)
    }

    /// Releases all locks of a thread that has ended.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    pub fn release_all(&self, thread: ThreadId) -> Result<(), Error> {
        let mut held = self.running.core.held_by(thread).into_iter();
        held.try_for_each(|lock| self.release(thread, lock))
    }

    /// Releases an exclusive lock, waits for a signal or until `given_up` returns true, and
    /// acquires the lock again.
    ///
    /// # Errors
    /// As for [`Self::release`].
    pub fn wait(
        &self,
        thread: ThreadId,
        lock: LockId,
        condition: ConditionId,
        given_up: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let call = Call::WaitOn(lock, condition);
        self.running.core.call(thread, call, Limit::When(given_up))??;
        Ok(())
    }

    /// Signals threads that wait on a condition of a lock. The caller need not hold the lock.
    ///
    /// # Errors
    /// [`Error::Protocol`]: out of range, a node is dead.
    pub fn signal(
        &self,
        thread: ThreadId,
        lock: LockId,
        condition: ConditionId,
        who: Waiters,
    ) -> Result<(), Error> {
        self.call(thread, Call::Signal(lock, condition, who)).map(drop)
    }

    /// Crosses a barrier for this node.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a call of another thread of this node is outstanding, a node is dead.
    pub fn barrier(&self, thread: ThreadId, kind: BarrierKind) -> Result<(), Error> {
        self.call(thread, Call::Barrier(kind)).map(drop)
    }

    /// Moves a lock to another manager at the next barrier.
    ///
    /// # Errors
    /// [`Error::Protocol`]: the lock or the node is out of range, another call is outstanding, a
    /// node is dead, or the lock's manager has left.
    pub fn move_lock(&self, thread: ThreadId, lock: LockId, to: NodeId) -> Result<(), Error> {
        self.call(thread, Call::Move(Move::Lock(lock, to))).map(drop)
    }

    /// Moves the pages of some elements to another manager at the next barrier.
    ///
    /// # Errors
    /// [`Error::Protocol`]: there is no such node, another call is outstanding, a node is dead, or
    /// a manager of these pages has left.
    ///
    /// # Panics
    /// The range exceeds the array.
    pub fn move_elements<T: Pod>(
        &self,
        thread: ThreadId,
        array: &SharedArray<T>,
        elements: Range<usize>,
        to: NodeId,
    ) -> Result<(), Error> {
        let mut pages = array.pages(elements).into_iter();
        pages.try_for_each(|page| self.call(thread, Call::Move(Move::Page(page, to))).map(drop))
    }

    /// The counters of this node.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.running.core.statistics()
    }

    /// Crosses a last barrier and leaves. The node cannot be used afterwards.
    ///
    /// # Errors
    /// As for [`Self::barrier`].
    pub fn leave(&self, thread: ThreadId) -> Result<(), Error> {
        self.running.leave(thread)
    }

    fn call(&self, thread: ThreadId, call: Call) -> Result<Outcome, Error> {
        Ok(self.running.core.call(thread, call, Limit::None)??)
    }
}

/// Splits words of shared memory by page: the page, the first word in it, and the range of words.
fn parts(words: Range<u64>) -> impl Iterator<Item = (PageId, usize, Range<usize>)> {
    let (mut at, a_page) = (words.start, WORDS_A_PAGE as u64);
    core::iter::from_fn(move || {
        let (page, inside) = (at / a_page, (at % a_page) as usize);
        let end = words.end.min((page + 1) * a_page);
        let part = (at - words.start) as usize..(end - words.start) as usize;
        at = end;
        (!part.is_empty()).then_some((PageId(page), inside, part))
    })
}

const _: () = assert!(WORDS_A_PAGE * 4 == PAGE_BYTES, "words of 4 bytes");

#[cfg(test)]
mod tests {
    use super::parts;
    use crate::address::PageId;

    #[test]
    fn an_element_that_lies_on_two_pages_has_two_parts() {
        let found = |words| parts(words).collect::<Vec<_>>();
        assert_eq!(found(5..8), [(PageId(0), 5, 0..3)]);
        assert_eq!(found(1023..1026), [(PageId(0), 1023, 0..1), (PageId(1), 0, 1..3)]);
        assert_eq!(found(1021..1024), [(PageId(0), 1021, 0..3)]);
        assert_eq!(found(7..7), []);
        let far = PageId((1 << 52) - 1);
        assert_eq!(found((1 << 62) - 2..1 << 62), [(far, 1022, 0..2)], "at the end of the space");
    }
}
