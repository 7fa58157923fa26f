//! The system-call thread of the deep-binding evaluator, a microprocess, and messages to it.
//!
//! A message is a word in a mailbox and an unpark; the answer is the word's end and an unpark. The
//! asking microprocess stops until then and the two share one virtual processor, so a request is
//! two switches at user level: the paper's message and switch to the system-call thread, and back.

use kyocho_heap::heap::cells::CellWords;
use kyocho_heap::heap::{Cells, Heap, OutOfMemory};
use kyocho_microprocess::{Builder, JoinHandle, Microprocess, park};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io;
use std::sync::Arc;

/// No request.
const NONE: usize = 0;
/// The last request: the system-call thread ends.
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

/// A running system-call thread that serves one cache. Ended by `end`.
pub(super) struct SystemCallThread {
    mailbox: Arc<Mailbox>,
    thread: JoinHandle<()>,
}

impl SystemCallThread {
    /// Starts one for the calling microprocess.
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

    /// What asks it: one message and its answer a call.
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

    /// Ends it and waits for its end; whether it ended well.
    pub(super) fn end(self) -> bool {
        self.mailbox.want.store(END, Ordering::Release);
        self.thread.microprocess().unpark();
        self.thread.join().is_ok()
    }
}
