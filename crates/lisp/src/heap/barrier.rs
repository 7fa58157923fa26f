//! What threads overwrite while a collector marks beside them: it is marked as well (deletion barrier; Yuasa, 1990).
//!
//! All that was reachable when marking began is marked, whatever becomes of it meanwhile: an object is missed only if the last way to it
//! that the marker has not been is overwritten, and what is overwritten is noted here. What is allocated meanwhile is kept without being
//! marked. Cost while nobody marks: a load and a branch a write.

use crate::value::Value;
use core::fmt;
use core::ops::Range;
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many heaps are being marked beside their threads.
static MARKING: AtomicUsize = AtomicUsize::new(0);

static HEAPS: Mutex<Vec<Noted>> = Mutex::new(Vec::new());

/// Values that wait to be marked, when the collector is hurried.
const NOTED_MAX: usize = 1 << 20;

/// Has the collector finish with the world stopped.
pub(crate) type Hurry = Box<dyn Fn() + Send>;

/// What one heap's threads have overwritten.
struct Noted {
    addresses: Range<usize>,
    values: Vec<Value>,
    hurry: Hurry,
}

impl fmt::Debug for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Noted").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

fn heaps() -> MutexGuard<'static, Vec<Noted>> {
    HEAPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in the heap, or in a Rust object there, is about to be overwritten; `old` says what stands there.
#[inline(always)]
pub(crate) fn overwrite(old: impl FnOnce() -> Value) {
    // The world was stopped when it was set, and is when it is taken back.
    if MARKING.load(Ordering::Relaxed) != 0 {
        note(old());
    }
}

/// A value is taken out of a place that does not keep it, or put into one: no cycle that goes on takes it for garbage.
#[inline]
pub(crate) fn keep(value: Value) {
    overwrite(|| value);
}

#[cold]
fn note(old: Value) {
    if !old.is_pair() && !old.is_object() {
        return;
    }
    let mut heaps = heaps();
    let Some(noted) = heaps.iter_mut().find(|heap| heap.addresses.contains(&old.address())) else {
        return;
    };
    noted.values.push(old);
    if noted.values.len() == NOTED_MAX {
        (noted.hurry)();
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
        heaps().push(Noted { addresses, values: Vec::new(), hurry });
        MARKING.fetch_add(1, Ordering::SeqCst);
        Self { start }
    }

    /// What was noted since the last time.
    pub(super) fn take(&self) -> Vec<Value> {
        let mut heaps = heaps();
        let noted = heaps.iter_mut().find(|heap| heap.addresses.start == self.start);
        noted.map(|heap| core::mem::take(&mut heap.values)).unwrap_or_default()
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        MARKING.fetch_sub(1, Ordering::SeqCst);
        heaps().retain(|heap| heap.addresses.start != self.start);
    }
}
