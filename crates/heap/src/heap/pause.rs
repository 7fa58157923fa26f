//! Long work inside a primitive, in slices. Between two slices collections may run, and a thread
//! that must end is ended.
//!
//! ```text
//!   slice ── pause: must the thread stop? ──no──► slice ── …
//!                     │ yes: a collection ──► wait for it; the named values are roots ──► slice
//!                     └ yes: a request, for example to end ──► the primitive returns an error,
//!                                            and is called again if the thread continues
//! ```
//!
//! A primitive has values in Rust variables, which the collector does not scan. So at a pause it
//! names the values that it needs later, except its arguments. The collector marks them, and moves
//! no object. Any other value that the primitive has read may be freed. So no
//! [`Unrooted`](crate::heap::Unrooted) can be held across a pause, except through
//! [`pause_keeping`](Mutator::pause_keeping).
//!
//! **Invariant:** a thread that pauses holds no lock for which a Lisp thread waits without being at
//! a safepoint; otherwise the two would wait for each other. Threads wait for ports outside Lisp.

use crate::heap::{Kept, KeptValues, Kind, Mutator, ThreadContext};
use crate::raise::Result;
use crate::value::Value;
use core::ops::Range;

/// Elements between two pauses: about 100 µs of work.
pub const PART: usize = 1 << 14;

/// The reasons that end a pause, and the work with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The thread must end, stop for the prompt, or get an out-of-memory error.
    Stopped,
    /// The thread must end.
    Ended,
}

/// The slices of a range of elements.
pub fn parts(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    parts_of(range, PART)
}

/// The slices of a range. All have `length` elements, except the last.
pub fn parts_of(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length).map(move |start| start..end.min(start + length))
}

impl Mutator {
    /// A pause between two slices of work that can be repeated from its beginning. `held` is needed
    /// later. Costs a nanosecond or two if there is no request for the thread. Waits for a
    /// collection.
    ///
    /// # Errors
    /// The thread must end or stop. The primitive returns this error, and is repeated if the thread
    /// continues.
    #[inline]
    pub fn pause(&mut self, held: &[Value]) -> Result<()> {
        if self.context.is_wanted() {
            self.pause_now(&mut held.to_vec(), Until::Stopped)
        } else {
            Ok(())
        }
    }

    /// As [`pause`](Self::pause). The compiler ensures that no other
    /// [`Unrooted`](crate::heap::Unrooted) is used afterwards.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    #[inline]
    pub fn pause_keeping<const COUNT: usize>(
        &mut self,
        kept: [Kept; COUNT],
    ) -> Result<KeptValues<COUNT>> {
        let values = kept.map(Kept::value);
        self.pause(&values)?;
        Ok(KeptValues::new(values))
    }

    /// Runs `work`, which may pause. Each pause keeps these values.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn keeping_over<T, const COUNT: usize>(
        &mut self,
        kept: [Kept; COUNT],
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(KeptValues<COUNT>, T)> {
        let values = kept.map(Kept::value);
        let result = self.keeping(&values, work)?;
        Ok((KeptValues::new(values), result))
    }

    /// As [`pause`](Self::pause), for many values in one vector.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    #[inline]
    pub fn pause_with(&mut self, held: &mut Vec<Value>) -> Result<()> {
        if self.context.is_wanted() { self.pause_now(held, Until::Stopped) } else { Ok(()) }
    }

    /// Runs `work`, which may pause. `values` are kept because they are needed after it.
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

    /// Keeps a value until the innermost [`keeping`](Self::keeping) ends.
    pub fn keep(&mut self, value: Value) -> Value {
        self.context.kept.push(value);
        value
    }

    /// A pause in work that cannot be repeated. The work continues unless the thread must end.
    ///
    /// # Errors
    /// The thread must end.
    #[inline]
    pub fn pause_midway(&mut self) -> Result<()> {
        if self.context.is_wanted() {
            self.pause_now(&mut Vec::new(), Until::Ended)
        } else {
            Ok(())
        }
    }

    /// As [`pause`](Self::pause) without further values, inside a locked port. Threads that wait
    /// for a port do not block collections.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    #[inline]
    pub fn pause_in_port(&mut self) -> Result<()> {
        if self.context.is_wanted() {
            self.context.let_collections_run(Until::Stopped)
        } else {
            Ok(())
        }
    }

    #[cold]
    #[inline(never)]
    fn pause_now(&mut self, held: &mut Vec<Value>, until: Until) -> Result<()> {
        core::mem::swap(&mut self.context.paused, held);
        let result = match self.context.at_pause {
            Some(hook) => hook(self),
            None => self.context.let_collections_run(until),
        };
        core::mem::swap(&mut self.context.paused, held);
        result
    }
}

impl Mutator {
    /// A vector of `length` elements, all of them `fill`, which is an argument or not an object.
    ///
    /// # Errors
    /// As [`pause`](Self::pause), or no memory is left.
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
    /// Waits while a collection runs, unless the thread must give up.
    #[cold]
    fn let_collections_run(&self, until: Until) -> Result<()> {
        self.host.as_ref().map_or(Ok(()), |host| host.let_collections_run(self, until))
    }
}
