//! The system-call thread of the deep-binding evaluator, and messages to it. The thread is a
//! microprocess.
//!
//! A message is a word in a mailbox and an unpark. The answer clears the word and unparks the
//! sender. The sender is parked meanwhile, and both share one virtual processor. So a request takes
//! two switches at user level, like the paper's message and switch to the system-call thread and
//! back.

use kyocho_heap::heap::cells::CellWords;
use kyocho_heap::heap::{Cells, Heap, OutOfMemory};
use kyocho_microprocess::{Builder, JoinHandle, Microprocess, park};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io;
use std::sync::Arc;

/// No request.
const NONE: usize = 0;
/// The last request, which ends the system-call thread.
const END: usize = usize::MAX;

struct Mailbox {
    want: AtomicUsize,
    out_of_memory: AtomicBool,
    client: Microprocess,
}

impl Mailbox {
    fn serve(&self, heap: &Heap, cells: &CellWords) {
        loop {
            match self.want.load(Ordering::Acquire) {
                NONE => park(),
                END => return,
                want => {
                    let result = heap.refill_words(cells, 1, want);
                    self.out_of_memory.store(result.is_err(), Ordering::Relaxed);
                    self.want.store(NONE, Ordering::Release);
                    self.client.unpark();
                }
            }
        }
    }
}

/// A running system-call thread that serves one cache. `end` stops it.
pub(super) struct SystemCallThread {
    mailbox: Arc<Mailbox>,
    thread: JoinHandle<()>,
}

impl SystemCallThread {
    /// Starts a thread that serves the calling microprocess.
    pub(super) fn start(heap: &Arc<Heap>, cells: &Cells) -> io::Result<Self> {
        let client = Microprocess::current();
        let mailbox = Arc::new(Mailbox {
            want: AtomicUsize::new(NONE),
            out_of_memory: AtomicBool::new(false),
            client,
        });
        let (theirs, heap, words) =
            (Arc::clone(&mailbox), Arc::clone(heap), Arc::clone(cells.words()));
        let thread =
            Builder::new().name("system-call").spawn(move || theirs.serve(&heap, &words))?;
        Ok(Self { mailbox, thread })
    }

    /// The function that makes requests. Each call is one message and its answer.
    pub(super) fn exchange(&self) -> impl FnMut(usize) -> Result<(), OutOfMemory> + Send + 'static {
        let mailbox = Arc::clone(&self.mailbox);
        let server = self.thread.microprocess();
        move |want| {
            mailbox.want.store(want, Ordering::Release);
            server.unpark();
            while mailbox.want.load(Ordering::Acquire) != NONE {
                park();
            }
            if mailbox.out_of_memory.load(Ordering::Relaxed) { Err(OutOfMemory) } else { Ok(()) }
        }
    }

    /// Ends the thread and waits for it. Returns whether it ended without an error.
    pub(super) fn end(self) -> bool {
        self.mailbox.want.store(END, Ordering::Release);
        self.thread.microprocess().unpark();
        self.thread.join().is_ok()
    }
}
