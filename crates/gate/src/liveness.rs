//! Whether the other side of a connection is there: kernel threads that sleep until it is gone.
//!
//! * A *keeper* on each side sleeps on the socket, which the host closes whatever the other process dies of, once it has taken its memory apart.
//! * A *mourner* at the client sleeps on the word that names the server's keeper ([`robust`]), which the host marks first of all: callers learn
//!   of a death in a fraction of a millisecond. A server that does not keep the word is noticed by the socket.
//!
//! Either says so and ends all waits. Plain kernel threads and not microprocesses, so that a virtual processor without other work sleeps on its
//! bell alone.

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

/// Stack of these threads: they call a few functions.
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

/// Starts the mourner of a client's connection: it ends `life` with the server's keeper.
pub(crate) fn mourn(
    life: &Arc<Life>,
    frames: &Arc<SealedMemory>,
    credits: usize,
) -> Result<(), Errno> {
    let (life, frames) = (Arc::clone(life), Arc::clone(frames));
    keep(move || {
        if robust::await_end(frame::life(&frames, credits)) {
            life.end();
        }
    })
}
