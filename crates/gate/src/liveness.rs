//! Whether the other side of a connection is alive: kernel threads that sleep until it is gone.
//!
//! * A *socket thread* on each side sleeps on the socket. The host closes the socket however the
//!   other process dies, but only after it has freed that process's memory.
//! * A *death watcher* at the client sleeps on the liveness word, which names the server's socket
//!   thread (a [`robust`] futex). The host marks that word first when a process dies, so callers
//!   learn of a death in a fraction of a millisecond. If a server does not maintain the word, the
//!   socket still reports its end.
//!
//! Either thread closes the connection, which ends all waits. They are plain kernel threads instead
//! of microprocesses, so that a virtual processor without other work sleeps on its doorbell alone.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use kyocho_microprocess::bell;
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::robust;
use kyocho_sys::sealed::SealedMemory;
use kyocho_sys::thread::start;
use socket2::Socket;

use crate::frame;

/// Stack of these threads: their calls nest a few levels deep.
const STACK_BYTES: usize = 128 << 10;

/// The socket of a connection, and whether the connection is closed.
#[derive(Debug)]
pub(crate) struct Liveness {
    socket: Socket,
    /// 1 once the connection is closed. Waiters check this word, too.
    closed: AtomicU32,
}

impl Liveness {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, closed: AtomicU32::new(0) }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The word that is 1 once the connection is closed.
    pub(crate) fn closed_word(&self) -> &AtomicU32 {
        &self.closed
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst) != 0
    }

    /// Closes the connection for both sides and wakes all waiters.
    pub(crate) fn close(&self) {
        self.closed.store(1, Ordering::SeqCst);
        bell::ring_all();
        // Fails if the other side has closed the socket, which is as good.
        let _closed = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

/// Starts a kernel thread of a connection. It is detached: `body` returns once the connection is
/// closed.
pub(crate) fn start_thread(body: impl FnOnce() + Send + 'static) -> Result<(), Errno> {
    start("gate", STACK_BYTES, body).map(drop)
}

/// Starts the death watcher of a client's connection: it closes the connection when the server's
/// socket thread dies.
pub(crate) fn watch_server(
    liveness: &Arc<Liveness>,
    frames: &Arc<SealedMemory>,
    credits: usize,
) -> Result<(), Errno> {
    let (liveness, frames) = (Arc::clone(liveness), Arc::clone(frames));
    start_thread(move || {
        if robust::await_end(frame::liveness_word(&frames, credits)) {
            liveness.close();
        }
    })
}
