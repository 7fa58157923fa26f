//! Rust objects that Lisp holds: ports, compiled code, threads' control blocks. The collector drops
//! them when nothing refers to them any more.

use crate::heap::marker::Marker;
use crate::heap::object::Kind;
use crate::heap::word;
use crate::value::Value;
use core::any::Any;

/// What a Rust type must offer to live in the heap as a [`Kind::Foreign`].
pub trait ForeignObject: Any + Send + Sync {
    /// Marks the Lisp values inside. Threads may run meanwhile: what they take out goes through
    /// `barrier::overwrite`, and a lock taken here must never be held across a safepoint.
    fn trace(&self, _marker: &mut Marker) {}

    /// Bytes that it holds outside the heap, itself included: what its account is charged for.
    fn held_bytes(&self) -> usize {
        size_of_val(self)
    }
}

impl Value {
    /// The Rust object of a foreign object, where it is a `T`.
    ///
    /// The borrow is good until the calling thread's next safepoint, as every heap address is;
    /// `'a` is the caller's promise to stay within that.
    #[must_use]
    pub fn as_foreign<'a, T: ForeignObject>(self) -> Option<&'a T> {
        if self.kind() != Some(Kind::Foreign) {
            return None;
        }
        let object: &'a dyn Any = word::foreign_at(self.payload_word(0))?;
        object.downcast_ref()
    }
}
