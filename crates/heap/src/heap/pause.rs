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
//! [`Unrooted`](crate::heap::Unrooted) cannot be held across a pause, but by [`pause_keeping`](Mutator::pause_keeping).
//!
//! **Invariant:** who pauses holds no lock that a Lisp thread waits for in the collector's world, where it would be waited for in its turn. Ports are
//! waited for outside.

use crate::heap::{Kept, Kind, Mutator, Spared, ThreadContext};
use crate::raise::Result;
use crate::value::Value;
use core::ops::Range;

/// Elements between two pauses: what takes some 100 µs.
pub const PART: usize = 1 << 14;

/// What ends a pause, and the work with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The thread is to end, to stop for the prompt, or to hear that memory is out.
    Stopped,
    /// The thread is to end.
    Ended,
}

/// The parts of a range of elements.
pub fn parts(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    parts_of(range, PART)
}

/// The parts of a range, each of `length` but the last.
pub fn parts_of(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length).map(move |start| start..end.min(start + length))
}

impl Mutator {
    /// Between two parts of work that can be done again from its begin: `held` is needed later. Costs a nanosecond or two while nobody wants
    /// the thread; waits for a collection that does.
    ///
    /// # Errors
    /// The thread is to end, or to stop: the primitive returns with this, and is called again should the thread go on.
    #[inline]
    pub fn pause(&mut self, held: &[Value]) -> Result<()> {
        if self.context.is_wanted() {
            self.pause_now(&mut held.to_vec(), Until::Stopped)
        } else {
            Ok(())
        }
    }

    /// The same where the compiler sees that nothing else is held: an [`Unrooted`](crate::heap::Unrooted) ends here.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    #[inline]
    pub fn pause_keeping<const COUNT: usize>(
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
    pub fn keeping_over<T, const COUNT: usize>(
        &mut self,
        kept: [Kept; COUNT],
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(Spared<COUNT>, T)> {
        let values = kept.map(Kept::value);
        let result = self.keeping(&values, work)?;
        Ok((Spared::new(values), result))
    }

    /// The same where there are many, which are kept in one place.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    #[inline]
    pub fn pause_with(&mut self, held: &mut Vec<Value>) -> Result<()> {
        if self.context.is_wanted() { self.pause_now(held, Until::Stopped) } else { Ok(()) }
    }

    /// Does `work`, in which there may be pauses: `values` are needed after it.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn keeping<T>(
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
    pub fn keep(&mut self, value: Value) -> Value {
        self.context.kept.push(value);
        value
    }

    /// Between two parts of work that cannot be done again: it goes on, unless the thread ends.
    ///
    /// # Errors
    /// The thread is to end.
    #[inline]
    pub fn pause_midway(&mut self) -> Result<()> {
        if self.context.is_wanted() {
            self.pause_now(&mut Vec::new(), Until::Ended)
        } else {
            Ok(())
        }
    }

    /// As [`pause`](Self::pause), where nothing but arguments is needed, from within a port that is locked: who waits for a port stands still for
    /// collections.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    #[inline]
    pub fn pause_in_port(&mut self) -> Result<()> {
        if self.context.is_wanted() { self.context.stand(Until::Stopped) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn pause_now(&mut self, held: &mut Vec<Value>, until: Until) -> Result<()> {
        core::mem::swap(&mut self.context.paused, held);
        let result = match self.context.at_pause {
            Some(hook) => hook(self),
            None => self.context.stand(until),
        };
        core::mem::swap(&mut self.context.paused, held);
        result
    }
}

impl Mutator {
    /// A vector of `length` times `fill`, which is an argument or no object.
    ///
    /// # Errors
    /// As [`pause`](Self::pause); there is no memory.
    pub fn vector_in_parts(&mut self, length: usize, fill: Value) -> Result {
        if length <= PART {
            return Ok(self.vector(length, fill)?);
        }
        let vector = self.begin(0, length)?;
        for part in parts(0..length) {
            Self::begin_words(vector, part, fill);
            self.pause(&[vector])?;
        }
        Self::complete(vector, Kind::Vector);
        Ok(vector)
    }
}

impl ThreadContext {
    /// Lets collections go by, unless the thread is to give up.
    #[cold]
    fn stand(&self, until: Until) -> Result<()> {
        self.host.as_ref().map_or(Ok(()), |host| host.stand(self, until))
    }
}
