//! The write barrier: values that threads overwrite during concurrent marking are marked too
//! (deletion barrier; Yuasa, 1990).
//!
//! Everything reachable when marking began is marked, whatever the threads do meanwhile. An object
//! could be missed only if the last reference to it that the marker has not followed is
//! overwritten. So each kernel thread records overwritten values in a buffer of its own
//! (`notes.rs`). Objects allocated meanwhile are kept without being marked. Cost while no marking
//! is in progress: a load and a branch for each write.

use crate::heap::notes::{Buffer, Noted, Notes};
use crate::value::Value;
use core::ops::Range;
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

pub use crate::heap::notes::Haste;
pub(crate) use crate::heap::notes::Hurry;

/// Number of heaps in concurrent marking.
static MARKING: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of values in a kernel thread's buffer. Tests use buffers that fill up at once.
static BUFFER_MAX: AtomicUsize = AtomicUsize::new(if cfg!(test) { 2 } else { 512 });

static NOTES: LazyLock<Notes<Value>> =
    LazyLock::new(|| Notes::new(BUFFER_MAX.load(Ordering::Relaxed)));

/// For tests: sets the size of the buffers. Has no effect after the first cycle of the process.
pub fn bound_buffers(values_max: usize) {
    BUFFER_MAX.store(values_max, Ordering::Relaxed);
}

impl Noted for Value {
    fn address(self) -> usize {
        Self::address(self)
    }
}

/// The buffer of a kernel thread, until the thread ends. A step of a Lisp thread runs on one kernel
/// thread. Any other microprocess may migrate and then uses another buffer, which is correct,
/// because the collector reads all buffers.
struct ThreadBuffer(Arc<Buffer<Value>>);

impl Drop for ThreadBuffer {
    fn drop(&mut self) {
        NOTES.delist(&self.0);
    }
}

thread_local! {
    static OWN: ThreadBuffer = ThreadBuffer(NOTES.enlist());
}

/// Call before overwriting a place in the heap or in a foreign object. `old` returns the present
/// value.
#[inline(always)]
pub fn overwrite(old: impl FnOnce() -> Value) {
    // A heap is added to `MARKING` while its threads are stopped, so none of them misses that.
    // Other heaps' marking only costs time.
    if MARKING.load(Ordering::Relaxed) != 0 {
        note(old());
    }
}

/// Call for a value that is read from a weak place or put into one: the cycle in progress then
/// keeps it alive.
#[inline]
pub fn keep(value: Value) {
    overwrite(|| value);
}

#[cold]
fn note(old: Value) {
    if !old.is_pair() && !old.is_object() {
        return;
    }
    // A kernel thread that is ending has no buffer any more.
    if OWN.try_with(|own| NOTES.note(&own.0, old)).is_err() {
        NOTES.note_directly(old);
    }
}

/// While this exists, values overwritten by the heap's threads are recorded.
#[derive(Debug)]
pub(super) struct Barrier {
    start: usize,
}

impl Barrier {
    /// Starts recording for the heap at these addresses. The world is stopped.
    pub(super) fn raise(addresses: Range<usize>, hurry: Hurry) -> Self {
        let start = addresses.start;
        NOTES.raise(addresses, hurry);
        MARKING.fetch_add(1, Ordering::SeqCst);
        Self { start }
    }

    /// Returns the values recorded since the last call.
    pub(super) fn take(&self) -> Vec<Value> {
        NOTES.take(self.start)
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        MARKING.fetch_sub(1, Ordering::SeqCst);
        NOTES.lower(self.start);
    }
}

#[cfg(test)]
mod tests;
