//! Rust objects that Lisp refers to: ports, compiled code, control blocks of threads. The collector
//! drops unreachable ones.

use crate::heap::marker::Marker;
use crate::heap::object::Kind;
use crate::heap::word;
use crate::value::Value;
use core::any::Any;

/// A Rust type that can be in the heap as a [`Kind::Foreign`].
pub trait ForeignObject: Any + Send + Sync {
    /// Marks the Lisp values inside. Threads may run meanwhile: they must call `barrier::overwrite`
    /// before they remove a value. A lock taken here must never be held across a safepoint.
    fn trace(&self, _marker: &mut Marker) {}

    /// Bytes that it holds outside the heap, itself included. They are charged to its account.
    fn held_bytes(&self) -> usize {
        size_of_val(self)
    }
}

impl Value {
    /// The Rust object of a foreign object, if it is a `T`.
    ///
    /// Like every heap address, the borrow is valid until the calling thread's next safepoint. By
    /// choosing `'a` the caller promises to respect that.
    #[must_use]
    pub fn as_foreign<'a, T: ForeignObject>(self) -> Option<&'a T> {
        if self.kind() != Some(Kind::Foreign) {
            return None;
        }
        let object: &'a dyn Any = word::foreign_at(self.payload_word(0))?;
        object.downcast_ref()
    }
}
