//! Long work inside a primitive, part by part: between two parts collections go by, and who is to end ends.
//!
//! ```text
//!   part ── pause: does anybody want the thread? ──no──► part ── …
//!                     │ yes: a collection ──► it goes by; what the primitive holds is among its roots ──► part
//!                     └ yes: its end, or the prompt ──► the primitive gives up; it is called again if the thread goes on
//! ```
//!
//! A primitive has values in Rust variables, which no collection looks at. So at a pause it says which ones it needs beside its arguments: they
//! are marked, and nothing moves. What it has read before and does not name may be gone: a value that is an
//! [`Unrooted`](crate::value::Unrooted) cannot be held across a pause, but by [`pause_keeping`](Mutator::pause_keeping).
//!
//! **Invariant:** who pauses holds no lock that a Lisp thread waits for in the collector's world, where it would be waited for in its turn. Ports are
//! waited for outside.

use crate::heap::Mutator;
use crate::raise::{Cause, Raise, Result};
use crate::thread::ThreadContext;
use crate::thread::lisp_thread::{
    LispThread, REQUEST_ABANDON, REQUEST_INTERRUPT, REQUEST_OUT_OF_MEMORY, REQUEST_TERMINATE,
};
use crate::value::{Kept, Spared, Value};
use core::ops::Range;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::atomic::Ordering;

/// Elements between two pauses: what takes some 100 µs.
pub(crate) const PART: usize = 1 << 14;

/// What ends the thread, or what it does.
const ENDS: u32 = REQUEST_TERMINATE | REQUEST_ABANDON;
const STOPS: u32 = ENDS | REQUEST_INTERRUPT | REQUEST_OUT_OF_MEMORY;

/// The parts of a range of elements.
pub(crate) fn parts(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    parts_of(range, PART)
}

/// The parts of a range, each of `length` but the last.
pub(crate) fn parts_of(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length).map(move |start| start..end.min(start + length))
}

impl LispThread {
    /// Whether one of these was asked of it, or its end from outside.
    fn is_asked(&self, requests: u32) -> bool {
        let is_condemned = || self.microprocess.get().is_some_and(Microprocess::is_condemned);
        self.requests.load(Ordering::Acquire) & requests != 0 || is_condemned()
    }
}

impl Mutator {
    /// Between two parts of work that can be done again from its begin: `held` is needed later. Costs a nanosecond or two while nobody wants
    /// the thread; waits for a collection that does.
    ///
    /// # Errors
    /// The thread is to end, or to stop: the primitive returns with this, and is called again should the thread go on.
    #[inline]
    pub(crate) fn pause(&mut self, held: &[Value]) -> Result<()> {
        if self.context.is_wanted() { self.pause_now(&mut held.to_vec(), STOPS) } else { Ok(()) }
    }

    /// The same where the compiler sees that nothing else is held: an [`Unrooted`](crate::value::Unrooted) ends here.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    #[inline]
    pub(crate) fn pause_keeping<const COUNT: usize>(
        &mut self,
        kept: [Kept; COUNT],
    ) -> Result<Spared<COUNT>> {
        let values = kept.map(Kept::value);
        self.pause(&values)?;
        Ok(Spared::new(values))
    }

    /// Does `work`, in which there may be pauses: each keeps these.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn keeping_over<T, const COUNT: usize>(
        &mut self,
        kept: [Kept; COUNT],
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(Spared<COUNT>, T)> {
        let values = kept.map(Kept::value);
        let result = self.keeping(&values, work)?;
        Ok((Spared::new(values), result))
    }

    /// The same where there are many, which are kept in one place.
    #[inline]
    pub(crate) fn pause_with(&mut self, held: &mut Vec<Value>) -> Result<()> {
        if self.context.is_wanted() { self.pause_now(held, STOPS) } else { Ok(()) }
    }

    /// Does `work`, in which there may be pauses: `values` are needed after it.
    pub(crate) fn keeping<T>(
        &mut self,
        values: &[Value],
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.context.kept.len();
        self.context.kept.extend_from_slice(values);
        let result = work(self);
        self.context.kept.truncate(before);
        result
    }

    /// What is needed until the innermost [`keeping`](Self::keeping) ends.
    pub(crate) fn keep(&mut self, value: Value) -> Value {
        self.context.kept.push(value);
        value
    }

    /// Between two parts of work that cannot be done again: it goes on, unless the thread ends.
    ///
    /// # Errors
    /// The thread is to end.
    #[inline]
    pub(crate) fn pause_midway(&mut self) -> Result<()> {
        if self.context.is_wanted() { self.pause_now(&mut Vec::new(), ENDS) } else { Ok(()) }
    }

    /// As [`pause`](Self::pause), where nothing but arguments is needed, from within a port that is locked: who waits for a port stands still for
    /// collections.
    #[inline]
    pub(crate) fn pause_in_port(&mut self) -> Result<()> {
        if self.context.is_wanted() { self.context.stand(STOPS) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn pause_now(&mut self, held: &mut Vec<Value>, requests: u32) -> Result<()> {
        core::mem::swap(&mut self.context.paused, held);
        #[cfg(test)]
        let result = match self.context.at_pause {
            Some(hook) => hook(self),
            None => self.context.stand(requests),
        };
        #[cfg(not(test))]
        let result = self.context.stand(requests);
        core::mem::swap(&mut self.context.paused, held);
        result
    }
}

impl ThreadContext {
    /// Lets collections go by, unless one of these is asked of the thread.
    #[cold]
    fn stand(&self, requests: u32) -> Result<()> {
        let Some(thread) = self.lisp_thread() else { return Ok(()) };
        if thread.is_asked(requests) {
            return Err(Raise::new(Cause::Interrupted));
        }
        self.apart(|| ());
        Ok(())
    }
}
