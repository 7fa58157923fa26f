//! Input that a session's user sends while a program runs: text that is queued until it is read.
//!
//! A reader sleeps in one kernel call, which a signal ends, as with a file. A sender never waits.

use core::fmt;
use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes in the queue. An end of file counts as one.
pub const FEED_BYTES_MAX: usize = 64 * 1024;

/// A session's input queue.
pub struct Feed {
    queue: Mutex<Queue>,
    /// Changes when something can be read.
    arrived: AtomicU32,
    wanted: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Queue {
    /// An empty text is an end of file.
    texts: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("arrived", &self.arrived).finish_non_exhaustive()
    }
}

impl Feed {
    /// An empty queue. `wanted` is called by a reader that has to wait.
    pub fn new(wanted: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let wanted = Box::new(wanted);
        Arc::new(Self { queue: Mutex::default(), arrived: AtomicU32::new(0), wanted })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a text. An empty text is an end of file; further texts may follow it. Returns `false`,
    /// and adds nothing, if the queue is full.
    pub fn send(&self, text: &[u8]) -> bool {
        let mut queue = self.lock();
        let bytes = queue.bytes + text.len().max(1);
        if bytes > FEED_BYTES_MAX {
            return false;
        }
        queue.bytes = bytes;
        queue.texts.push_back(text.to_vec());
        drop(queue);
        self.wake();
        true
    }

    /// Closes the queue. Readers get the remaining texts, and then end of file.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    fn wake(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.arrived, 1);
    }

    /// Whether reading would not block.
    pub(super) fn is_ready(&self) -> bool {
        let queue = self.lock();
        queue.closed || !queue.texts.is_empty()
    }

    /// Reads what is available; 0 at an end of file. Waits, and continues after a signal unless
    /// `is_cut` returns true.
    pub(super) fn read(&self, buffer: &mut [u8], is_cut: impl Fn() -> bool) -> io::Result<usize> {
        let mut is_asked = false;
        loop {
            let arrived = self.arrived.load(Ordering::SeqCst);
            if let Some(count) = self.lock().take(buffer) {
                return Ok(count);
            }
            if is_cut() {
                return Err(ErrorKind::Interrupted.into());
            }
            if !is_asked {
                (self.wanted)();
                is_asked = true;
            }
            futex::wait(&self.arrived, arrived, None);
        }
    }
}

impl Queue {
    /// Takes as much of one text as fits; 0 at an end of file; `None` if the queue is empty.
    fn take(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let Some(text) = self.texts.front_mut() else { return self.closed.then_some(0) };
        let count = text.len().min(buffer.len());
        buffer[..count].copy_from_slice(&text[..count]);
        let is_end = text.is_empty();
        text.drain(..count);
        if text.is_empty() {
            self.texts.pop_front();
        }
        self.bytes -= if is_end { 1 } else { count };
        Some(count)
    }
}
