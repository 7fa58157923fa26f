//! The queue that decides which microprocess runs next: the pure part of dispatching.
//!
//! ```text
//!   occupied   63 … 31 … 0        one bit a level: which lists are not empty
//!                   │
//!   levels[31]      └─► first ─► second ─► last      singly linked through the elements
//! ```
//!
//! **Invariant:** bit `p` is set if and only if `levels[p]` has a first element.
//! **Invariant:** the link of a last element is `None`.

use core::cell::Cell;

use crate::data::priority::Priority;

/// An element of a run queue. It has a link of its own, and is in at most one queue at a time.
pub(crate) trait Queued: 'static {
    /// The element behind this one.
    fn link(&self) -> &Cell<Option<&'static Self>>;
}

/// One level, first come, first served. `last` is meaningless while `first` is `None`.
struct Level<R: 'static> {
    first: Cell<Option<&'static R>>,
    last: Cell<Option<&'static R>>,
}

/// Runnable elements in the order in which they will run.
pub(crate) struct RunQueue<R: 'static> {
    occupied: Cell<u64>,
    levels: [Level<R>; Priority::LEVELS],
}

impl<R: Queued> RunQueue<R> {
    pub(crate) const fn new() -> Self {
        Self {
            occupied: Cell::new(0),
            levels: [const { Level { first: Cell::new(None), last: Cell::new(None) } };
                Priority::LEVELS],
        }
    }

    /// Forgets all elements; their links keep their values. No other code may depend on these
    /// links.
    pub(crate) fn clear(&self) {
        self.occupied.set(0);
        self.levels.iter().for_each(|level| level.first.set(None));
    }

    /// Appends `element` behind its equals.
    #[inline]
    pub(crate) fn push(&self, element: &'static R, level: u8) {
        let bit = 1 << (level & 63);
        let list = &self.levels[usize::from(level & 63)];
        element.link().set(None);
        if self.occupied.get() & bit == 0 {
            self.occupied.set(self.occupied.get() | bit);
            list.first.set(Some(element));
        } else if let Some(last) = list.last.get() {
            last.link().set(Some(element));
        }
        list.last.set(Some(element));
    }

    /// Puts `element` at the front of its level: it was running and has time left in its slice.
    pub(crate) fn push_first(&self, element: &'static R, level: u8) {
        let bit = 1 << (level & 63);
        let list = &self.levels[usize::from(level & 63)];
        if self.occupied.get() & bit == 0 {
            return self.push(element, level);
        }
        element.link().set(list.first.get());
        list.first.set(Some(element));
    }

    /// Removes and returns the first element of the highest level that is not empty.
    #[inline]
    pub(crate) fn pop(&self) -> Option<&'static R> {
        let occupied = self.occupied.get();
        if occupied == 0 {
            return None;
        }
        let level = 63 - occupied.leading_zeros();
        let list = &self.levels[level as usize];
        let first = list.first.get();
        let second = first.and_then(|first| first.link().get());
        list.first.set(second);
        if second.is_none() {
            self.occupied.set(occupied & !(1 << level));
        }
        first
    }

    /// The number of elements, or `most` if there are more. Takes time in proportion to the result.
    pub(crate) fn count_up_to(&self, most: usize) -> usize {
        let mut count = 0;
        let mut occupied = self.occupied.get();
        while occupied != 0 && count < most {
            let level = occupied.trailing_zeros();
            occupied &= occupied - 1;
            let mut at = self.levels[level as usize].first.get();
            while let Some(here) = at.filter(|_| count < most) {
                count += 1;
                at = here.link().get();
            }
        }
        count
    }

    /// Removes and returns the first element, among the first `most`, for which `wanted` returns
    /// `true`. Takes time in proportion to `most`.
    pub(crate) fn take_first(
        &self,
        most: usize,
        wanted: impl Fn(&'static R) -> bool,
    ) -> Option<&'static R> {
        let mut left = most;
        let mut occupied = self.occupied.get();
        while occupied != 0 && left > 0 {
            let level = 63 - occupied.leading_zeros() as u8;
            occupied &= !(1 << level);
            let first = self.levels[usize::from(level)].first.get();
            let mut here = core::iter::successors(first, |at| at.link().get())
                .take(left)
                .inspect(|_| left -= 1);
            if let Some(found) = here.find(|&at| wanted(at)) {
                self.remove(found, level);
                return Some(found);
            }
        }
        None
    }

    /// Removes `element` if it is in the queue at `level`; returns whether it was. Takes time in
    /// proportion to the length of that level.
    pub(crate) fn remove(&self, element: &'static R, level: u8) -> bool {
        let list = &self.levels[usize::from(level & 63)];
        let mut at = list.first.get();
        let mut previous = None::<&'static R>;
        while let Some(here) = at.filter(|here| !core::ptr::eq(*here, element)) {
            (previous, at) = (Some(here), here.link().get());
        }
        let Some(found) = at else { return false };
        let next = found.link().get();
        match previous {
            Some(previous) => previous.link().set(next),
            None => list.first.set(next),
        }
        if next.is_none() {
            list.last.set(previous);
        }
        if list.first.get().is_none() {
            self.occupied.set(self.occupied.get() & !(1 << (level & 63)));
        }
        true
    }

    /// The level of the element that [`pop`](Self::pop) would return.
    #[inline]
    pub(crate) fn highest(&self) -> Option<u8> {
        match self.occupied.get() {
            0 => None,
            occupied => Some(63 - occupied.leading_zeros() as u8),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied.get() == 0
    }
}

#[cfg(test)]
mod tests;
