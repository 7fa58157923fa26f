//! What threads overwrite while a collector marks beside them: it is marked as well (deletion barrier; Yuasa, 1990).
//!
//! All that was reachable when marking began is marked, whatever becomes of it meanwhile: an object is missed only if the last way to it
//! that the marker has not been is overwritten, and what is overwritten is noted here, by each kernel thread in a buffer of its own
//! (`notes.rs`). What is allocated meanwhile is kept without being marked. Cost while nobody marks: a load and a branch a write.

use crate::heap::notes::{Buffer, Noted, Notes};
use crate::value::Value;
use core::ops::Range;
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

pub(crate) use crate::heap::notes::Hurry;

/// How many heaps are being marked beside their threads.
static MARKING: AtomicUsize = AtomicUsize::new(0);

/// Values that a kernel thread notes by itself; tests have buffers that are full at once, too.
static BUFFER_MAX: AtomicUsize = AtomicUsize::new(if cfg!(test) { 2 } else { 512 });

static NOTES: LazyLock<Notes<Value>> =
    LazyLock::new(|| Notes::new(BUFFER_MAX.load(Ordering::Relaxed)));

/// For tests: a kernel thread notes so many values by itself. Without effect after the first cycle of the process.
pub fn bound_buffers(values_max: usize) {
    BUFFER_MAX.store(values_max, Ordering::Relaxed);
}

impl Noted for Value {
    fn address(self) -> usize {
        Self::address(self)
    }
}

/// The buffer of a kernel thread, until it ends. A step of a Lisp thread stays on one kernel thread; a microprocess that does not only changes
/// buffers, all of which the collector looks through.
struct Own(Arc<Buffer<Value>>);

impl Drop for Own {
    fn drop(&mut self) {
        NOTES.delist(&self.0);
    }
}

thread_local! {
    static OWN: Own = Own(NOTES.enlist());
}

/// A place in the heap, or in a Rust object there, is about to be overwritten; `old` says what stands there.
#[inline(always)]
pub fn overwrite(old: impl FnOnce() -> Value) {
    // The world was stopped when it was set, and is when it is taken back.
    if MARKING.load(Ordering::Relaxed) != 0 {
        note(old());
    }
}

/// A value is taken out of a place that does not keep it, or put into one: no cycle that goes on takes it for garbage.
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

/// While it lives, what the heap's threads overwrite is noted.
#[derive(Debug)]
pub(super) struct Barrier {
    start: usize,
}

impl Barrier {
    /// For the heap at these addresses. The world is stopped.
    pub(super) fn raise(addresses: Range<usize>, hurry: Hurry) -> Self {
        let start = addresses.start;
        NOTES.raise(addresses, hurry);
        MARKING.fetch_add(1, Ordering::SeqCst);
        Self { start }
    }

    /// What was noted since the last time.
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
