//! Where threads note what they overwrite, and how the collector finds it: the protocol alone, whatever is noted.
//!
//! ```text
//!  thread      note ──► its own buffer ── full ──► sorted: to the heap that the value lies in
//!  collector   raise ──► take, ... (threads run) ──► take (they stand) ──► lower
//! ```
//!
//! A thread locks its own buffer alone, which nobody else wants but a collector that takes: threads do not wait for each other. The list of heaps
//! is locked once for a whole buffer.
//!
//! **Invariant:** what was noted before the threads were stopped is found by the [`take`](Notes::take) that follows, whichever buffers it is in: a
//! buffer is emptied under the lock of the list, so a value is in a buffer or with its heap when a collector looks.
//! **Invariant:** what was noted for a cycle is not found by a later one, by which it may be freed: `raise` empties all buffers first.
//!
//! Bounds: a buffer holds `buffer_max` values; of what is with a heap, the collector is hurried to mark it. Lock order: the list, then a buffer. Modelled in `tests/models`.

use core::ops::Range;
use kyocho_sys::prim::sync::{Mutex, MutexGuard, PoisonError};
use std::sync::Arc;

/// Values that wait to be marked, when the collector is hurried.
const NOTED_MAX: usize = 1 << 20;

/// Has the collector finish with the world stopped.
pub(crate) type Hurry = Box<dyn Fn() + Send>;

/// What can be noted: it lies somewhere.
pub(crate) trait Noted: Copy {
    fn address(self) -> usize;
}

/// What one thread has noted and no collector has seen.
#[derive(Debug)]
pub(crate) struct Buffer<V>(Mutex<Vec<V>>);

/// What one heap's threads have noted.
struct OfHeap<V> {
    addresses: Range<usize>,
    values: Vec<V>,
    hurry: Hurry,
}

/// The heaps that are marked beside their threads, and the buffers of all threads.
struct List<V> {
    heaps: Vec<OfHeap<V>>,
    buffers: Vec<Arc<Buffer<V>>>,
}

/// All that is noted.
pub(crate) struct Notes<V> {
    list: Mutex<List<V>>,
    /// Values in a buffer at most.
    buffer_max: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V: Noted> List<V> {
    /// Gives each value to the heap that it lies in. Of a heap that is not being marked nothing is kept.
    fn sort(&mut self, values: impl IntoIterator<Item = V>) {
        for value in values {
            let address = value.address();
            let heap = self.heaps.iter_mut().find(|heap| heap.addresses.contains(&address));
            let Some(heap) = heap else { continue };
            heap.values.push(value);
            if heap.values.len() == NOTED_MAX {
                (heap.hurry)();
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
    /// None, and no heap; buffers hold so many values at most.
    pub(crate) fn new(buffer_max: usize) -> Self {
        Self { list: Mutex::new(List { heaps: Vec::new(), buffers: Vec::new() }), buffer_max }
    }

    /// A buffer for a thread that begins.
    pub(crate) fn enlist(&self) -> Arc<Buffer<V>> {
        let buffer = Arc::new(Buffer(Mutex::new(Vec::new())));
        lock(&self.list).buffers.push(Arc::clone(&buffer));
        buffer
    }

    /// The thread ends; what it has noted stays.
    pub(crate) fn delist(&self, buffer: &Arc<Buffer<V>>) {
        let mut list = lock(&self.list);
        list.empty(buffer);
        list.buffers.retain(|other| !Arc::ptr_eq(other, buffer));
    }

    /// A thread notes a value in its buffer.
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

    /// A thread that has no buffer any more, or none yet, notes a value.
    pub(crate) fn note_directly(&self, value: V) {
        lock(&self.list).sort([value]);
    }

    /// From now on what lies at these addresses is kept. Threads that may note it stand.
    pub(crate) fn raise(&self, addresses: Range<usize>, hurry: Hurry) {
        let mut list = lock(&self.list);
        list.empty_all();
        list.heaps.push(OfHeap { addresses, values: Vec::new(), hurry });
    }

    /// What was noted for the heap that begins at `start` since the last time.
    pub(crate) fn take(&self, start: usize) -> Vec<V> {
        let mut list = lock(&self.list);
        list.empty_all();
        let heap = list.heaps.iter_mut().find(|heap| heap.addresses.start == start);
        heap.map(|heap| core::mem::take(&mut heap.values)).unwrap_or_default()
    }

    /// The heap that begins at `start` is not being marked any more.
    pub(crate) fn lower(&self, start: usize) {
        lock(&self.list).heaps.retain(|heap| heap.addresses.start != start);
    }
}
