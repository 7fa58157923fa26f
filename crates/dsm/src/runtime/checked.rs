//! A node whose every access is a call, for interpreters: nothing is a fault, and what cannot be had is an error.
//!
//! Their threads move between kernel threads, and share the node as hands do ([`super::Hand`]), by numbers that the interpreter gives them.
//! At a barrier one thread stands for the node; the others must leave shared memory alone until it is over.

use core::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use kyocho_sys::memory::PAGE_BYTES;

use crate::address::{ConditionId, LockId, NodeId, PageId, ThreadId};
use crate::interface::{Call, Outcome, Patience, Who};
use crate::lock::Mode;
use crate::message::{BarrierKind, Move};
use crate::page::WORDS_A_PAGE;
use crate::region::Placement;
use crate::runtime::array::SharedArray;
use crate::runtime::core::Limit;
use crate::runtime::error::Error;
use crate::runtime::places::{Region, RegionSettings};
use crate::runtime::running::Running;
use crate::runtime::statistics::Statistics;

/// A node of a program that is interpreted. Dropped without leaving, it counts as dead.
#[derive(Debug)]
pub struct Checked {
    running: Arc<Running>,
}

impl Checked {
    pub(super) fn new(running: Arc<Running>) -> Self {
        Self { running }
    }

    /// This node's rank.
    #[must_use]
    pub fn rank(&self) -> u16 {
        self.running.me.0
    }

    /// How many nodes there are.
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

    /// Makes a region, as [`super::Dsm::region`] does; crosses a barrier, where one thread stands for the node.
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
    /// The region was made by another node, and not here.
    pub fn array<T: Pod>(&self, region: Region, length: usize) -> Result<SharedArray<T>, Error> {
        self.running.array(region, length)
    }

    /// An element. Waits for its page where that is not here.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    ///
    /// # Panics
    /// The index lies outside of the array.
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

    /// Gives an element a value. Waits for its page where that is not here.
    ///
    /// # Errors
    /// As for [`Self::get`].
    ///
    /// # Panics
    /// The index lies outside of the array.
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

    /// Takes a lock; waits for it, and for another thread of this node that holds it, until `given_up` says so, which is asked every 20 ms.
    /// Whether it did.
    ///
    /// # Errors
    /// [`Error::Protocol`]: out of range, held already, a node is dead.
    pub fn acquire(
        &self,
        thread: ThreadId,
        lock: LockId,
        mode: Mode,
        patience: Patience,
        given_up: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let call = Call::Acquire(lock, mode, patience);
        let outcome = self.running.core.call(thread, call, Limit::When(given_up))??;
        Ok(outcome == Outcome::Done)
    }

    /// Gives a lock back.
    ///
    /// # Errors
    /// [`Error::Protocol`]: this thread does not hold it, a node is dead.
    pub fn release(&self, thread: ThreadId, lock: LockId) -> Result<(), Error> {
        self.call(thread, Call::Release(lock)).map(drop)
    }

    /// Gives back all locks of a thread, which has come to its end.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    pub fn release_all(&self, thread: ThreadId) -> Result<(), Error> {
        let mut held = self.running.core.held_by(thread).into_iter();
        held.try_for_each(|lock| self.release(thread, lock))
    }

    /// Gives an exclusive lock back, waits for a signal, or until `given_up` says so, and takes it again.
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

    /// Signals who waits on a condition of a lock, which need not be held.
    ///
    /// # Errors
    /// [`Error::Protocol`]: out of range, a node is dead.
    pub fn signal(
        &self,
        thread: ThreadId,
        lock: LockId,
        condition: ConditionId,
        who: Who,
    ) -> Result<(), Error> {
        self.call(thread, Call::Signal(lock, condition, who)).map(drop)
    }

    /// Crosses a barrier for this node.
    ///
    /// # Errors
    /// [`Error::Protocol`]: another thread of this node waits for something, a node is dead.
    pub fn barrier(&self, thread: ThreadId, kind: BarrierKind) -> Result<(), Error> {
        self.call(thread, Call::Barrier(kind)).map(drop)
    }

    /// Gives a lock another manager from the next barrier on.
    ///
    /// # Errors
    /// [`Error::Protocol`]: out of range.
    pub fn move_lock(&self, thread: ThreadId, lock: LockId, to: NodeId) -> Result<(), Error> {
        self.call(thread, Call::Move(Move::Lock(lock, to))).map(drop)
    }

    /// Gives the pages of some elements another manager from the next barrier on.
    ///
    /// # Errors
    /// [`Error::Protocol`]: there is no such node.
    ///
    /// # Panics
    /// The range leaves the array.
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

    /// What was counted here so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.running.core.statistics()
    }

    /// Crosses a last barrier and says goodbye: nothing can be done with this node afterwards.
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

/// Words of shared memory by page: the page, the first word in it, which of them.
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
