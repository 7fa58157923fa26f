//! Whether the other side of a connection is there: one kernel thread that sleeps on the socket.
//!
//! The host closes a dead process's sockets, however it died; the keeper wakes, says so, and ends all waits. A plain kernel thread
//! and not a microprocess, so that a virtual processor without other work sleeps on its bell alone.

use std::os::fd::{AsFd, BorrowedFd};

use kyocho_microprocess::bell;
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::thread::start;
use socket2::Socket;

/// Stack of a keeper: it calls a few functions.
const STACK_BYTES: usize = 128 << 10;

/// The life of one connection.
#[derive(Debug)]
pub(crate) struct Life {
    socket: Socket,
    /// 1 once it is over: waits end by it.
    over: AtomicU32,
}

impl Life {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, over: AtomicU32::new(0) }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The word that is 1 once it is over.
    pub(crate) fn over(&self) -> &AtomicU32 {
        &self.over
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst) != 0
    }

    /// Ends it, for both sides.
    pub(crate) fn end(&self) {
        self.over.store(1, Ordering::SeqCst);
        bell::ring_all();
        // Closed by the other side already: as well.
        let _gone = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

/// Starts the kernel thread of a connection, which runs `body`. Detached: it ends with the connection.
pub(crate) fn keep(body: impl FnOnce() + Send + 'static) -> Result<(), Errno> {
    start("gate", STACK_BYTES, body).map(drop)
}
