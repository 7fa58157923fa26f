//! The buffers where threads record overwritten values, and how the collector finds them: the
//! protocol alone, for any kind of value.
//!
//! ```text
//!  thread      note ──► its own buffer ── full ──► sorted: to the heap that contains the value
//!  collector   raise ──► take, ... (threads run) ──► take (they are stopped) ──► lower
//! ```
//!
//! To note a value, a thread locks only its own buffer. No other thread locks that buffer, except a
//! collector in `raise` or `take`. So threads do not wait for each other. The list of heaps is
//! locked once for a whole buffer.
//!
//! **Invariant:** a value noted before the threads were stopped is found by the following
//! [`take`](Notes::take), whichever buffer it is in. A buffer is emptied under the lock of the
//! list, so a collector finds each value in a buffer or with its heap.
//! **Invariant:** a value noted for one cycle is not found by a later one, when the value may be
//! freed. To this end `raise` empties all buffers first.
//!
//! Bounds: a buffer has at most `buffer_max` values. If too many values are with a heap, the
//! collector is hurried to mark them. Lock order: the list, then a buffer. Modelled in
//! `tests/models`.

use core::ops::Range;
use kyocho_sys::prim::sync::{Mutex, MutexGuard, PoisonError};
use std::sync::Arc;

/// Each time that this many further values wait to be marked, the collector is asked to hurry.
const NOTED_MANY: usize = 1 << 17;
/// If this many values wait to be marked, the collector must finish with the world stopped.
const NOTED_MAX: usize = 1 << 20;

/// Why the collector must hurry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// Many values wait to be marked: the collector must run before other threads do.
    Soon,
    /// Too many values wait: the collector must finish with the world stopped.
    Now,
}

/// Makes the collector hurry.
pub(crate) type Hurry = Box<dyn Fn(Haste) + Send>;

/// A value that can be noted: it has an address.
pub(crate) trait Noted: Copy {
    fn address(self) -> usize;
}

/// The values that one thread has noted and no collector has taken.
#[derive(Debug)]
pub(crate) struct Buffer<V>(Mutex<Vec<V>>);

/// The values noted for one heap.
struct HeapNotes<V> {
    addresses: Range<usize>,
    values: Vec<V>,
    hurry: Hurry,
}

/// The heaps in concurrent marking, and the buffers of all threads.
struct List<V> {
    heaps: Vec<HeapNotes<V>>,
    buffers: Vec<Arc<Buffer<V>>>,
}

/// All noted values.
pub(crate) struct Notes<V> {
    list: Mutex<List<V>>,
    /// Maximum number of values in a buffer.
    buffer_max: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V: Noted> List<V> {
    /// Adds each value to the heap that contains it. Drops values of heaps that are not being
    /// marked.
    fn sort(&mut self, values: impl IntoIterator<Item = V>) {
        for value in values {
            let address = value.address();
            let heap = self.heaps.iter_mut().find(|heap| heap.addresses.contains(&address));
            let Some(heap) = heap else { continue };
            heap.values.push(value);
            match heap.values.len() {
                NOTED_MAX => (heap.hurry)(Haste::Now),
                count if count.is_multiple_of(NOTED_MANY) => (heap.hurry)(Haste::Soon),
                _ => {}
            }
        }
    }

    fn empty(&mut self, buffer: &Buffer<V>) {
        let values = core::mem::take(&mut *lock(&buffer.0));
        self.sort(values);
    }

    fn empty_all(&mut self) {
        for i in 0..self.buffers.len() {
            let buffer = Arc::clone(&self.buffers[i]);
            self.empty(&buffer);
        }
    }
}

impl<V: Noted> Notes<V> {
    /// No notes and no heaps. Each buffer has at most `buffer_max` values.
    pub(crate) fn new(buffer_max: usize) -> Self {
        Self { list: Mutex::new(List { heaps: Vec::new(), buffers: Vec::new() }), buffer_max }
    }

    /// A buffer for a new thread.
    pub(crate) fn enlist(&self) -> Arc<Buffer<V>> {
        let buffer = Arc::new(Buffer(Mutex::new(Vec::new())));
        lock(&self.list).buffers.push(Arc::clone(&buffer));
        buffer
    }

    /// Removes the buffer of a thread that ends. Its notes stay.
    pub(crate) fn delist(&self, buffer: &Arc<Buffer<V>>) {
        let mut list = lock(&self.list);
        list.empty(buffer);
        list.buffers.retain(|other| !Arc::ptr_eq(other, buffer));
    }

    /// Notes a value in the calling thread's buffer.
    pub(crate) fn note(&self, buffer: &Buffer<V>, value: V) {
        let is_full = {
            let mut values = lock(&buffer.0);
            values.push(value);
            values.len() >= self.buffer_max
        };
        if is_full {
            lock(&self.list).empty(buffer);
        }
    }

    /// Notes a value of a thread that has no buffer, or no buffer any more.
    pub(crate) fn note_directly(&self, value: V) {
        lock(&self.list).sort([value]);
    }

    /// Starts keeping notes of values at these addresses. All threads that may note one are
    /// stopped.
    pub(crate) fn raise(&self, addresses: Range<usize>, hurry: Hurry) {
        let mut list = lock(&self.list);
        list.empty_all();
        list.heaps.push(HeapNotes { addresses, values: Vec::new(), hurry });
    }

    /// The values noted since the last call for the heap that begins at `start`.
    pub(crate) fn take(&self, start: usize) -> Vec<V> {
        let mut list = lock(&self.list);
        list.empty_all();
        let heap = list.heaps.iter_mut().find(|heap| heap.addresses.start == start);
        heap.map(|heap| core::mem::take(&mut heap.values)).unwrap_or_default()
    }

    /// Runs `work` while no other thread can lock the list of heaps.
    #[cfg(test)]
    pub(crate) fn while_held<T>(&self, work: impl FnOnce() -> T) -> T {
        let _list = lock(&self.list);
        work()
    }

    /// Stops keeping notes for the heap that begins at `start`.
    pub(crate) fn lower(&self, start: usize) {
        lock(&self.list).heaps.retain(|heap| heap.addresses.start != start);
    }
}
