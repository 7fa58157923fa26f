//! This process's access to its MPI job: nonblocking sends and receives.
//!
//! A send that MPI has not finished keeps its bytes alive here ([`Sending`]). Errors of MPI itself
//! end the job, which is the default of MPI.
#![expect(
    unsafe_code,
    reason = "lends buffers to MPI, and hands its handles from thread to thread"
)]

use core::fmt;

use mpi::Threading;
use mpi::environment::Universe;
use mpi::request::{Request, StaticScope};
use mpi::topology::Communicator;
use mpi::traits::{Destination, Equivalence, Source};

use crate::address::NodeId;

/// The kinds of MPI messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first message of each process, which identifies it.
    Hello,
    /// Bytes of the sender's stream.
    Stream,
    /// The sender has ended without a goodbye.
    Closed,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Hello, Self::Stream, Self::Closed];

    fn tag(self) -> i32 {
        self as i32 + 1
    }

    fn of(tag: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// A send that MPI has begun.
struct Sending {
    request: Request<'static, [u8], StaticScope>,
    /// Made by `Box::into_raw`; MPI reads it until the request is over.
    bytes: *mut [u8],
}

/// The calls of MPI, by one thread at a time.
pub(super) struct Port {
    /// `None` once MPI is no longer called.
    universe: Option<Universe>,
    sending: Vec<Sending>,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("sending", &self.sending.len()).finish_non_exhaustive()
    }
}

// SAFETY: what keeps a port on its thread by itself is handles of MPI, which belong to the process,
// and buffers that no other code knows. MPI was initialised for calls by any thread, one at a time
// (`begin` accepts nothing less). A port is not `Sync`, so one thread at a time calls its methods.
unsafe impl Send for Port {}

impl Port {
    /// Initialises MPI, once per process. Returns this process's rank and the number of processes,
    /// or `None` if MPI was initialised before or does not support several threads.
    pub(super) fn begin() -> Option<(Self, i32, i32)> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)?;
        if threading < Threading::Serialized {
            return None;
        }
        let world = universe.world();
        let (rank, size) = (world.rank(), world.size());
        Some((Self { universe: Some(universe), sending: Vec::new() }, rank, size))
    }

    /// Begins to send a copy of some bytes. Messages from one process to another arrive in order.
    pub(super) fn send(&mut self, to: NodeId, kind: Kind, bytes: &[u8]) {
        self.settle();
        let Some(universe) = &self.universe else { return };
        let bytes = Box::into_raw(bytes.to_vec().into_boxed_slice());
        // SAFETY: just made from a box, and not freed before `settle` finds the request over;
        // leaked where that never comes.
        let lent: &'static [u8] = unsafe { &*bytes };
        let process = universe.world();
        let process = process.process_at_rank(i32::from(to.0));
        let request = process.immediate_send_with_tag(StaticScope, lent, kind.tag());
        self.sending.push(Sending { request, bytes });
    }

    /// Forgets finished sends. Returns whether all are finished.
    pub(super) fn settle(&mut self) -> bool {
        for Sending { request, bytes } in core::mem::take(&mut self.sending) {
            match request.test() {
                // SAFETY: made by `Box::into_raw` in `send`; MPI is done with it, and the reference
                // lent to the request went with that.
                Ok(_) => drop(unsafe { Box::from_raw(bytes) }),
                Err(request) => self.sending.push(Sending { request, bytes }),
            }
        }
        self.sending.is_empty()
    }

    /// Whether a message has arrived.
    pub(super) fn has_more(&self) -> bool {
        let world = self.universe.as_ref().map(Universe::world);
        world.is_some_and(|world| world.any_process().immediate_probe().is_some())
    }

    /// The next message: its sender, its kind (`None` if this version has no such kind), its bytes.
    pub(super) fn receive(&mut self) -> Option<(NodeId, Option<Kind>, Vec<u8>)> {
        let world = self.universe.as_ref()?.world();
        let (message, status) = world.any_process().immediate_matched_probe()?;
        let mut bytes = vec![0; status.count(u8::equivalent_datatype()) as usize];
        message.matched_receive_into(&mut bytes[..]);
        // At most 4,096 ranks have joined.
        Some((NodeId(status.source_rank() as u16), Kind::of(status.tag()), bytes))
    }

    /// Stops calling MPI. If `together`, every process of the job comes here; otherwise this
    /// process ends soon, and the job with it.
    pub(super) fn end(&mut self, together: bool) {
        let universe = self.universe.take();
        let together = together && self.sending.is_empty();
        // Dropping a request panics, and its bytes may still be read.
        core::mem::forget(core::mem::take(&mut self.sending));
        if together {
            drop(universe);
        } else {
            // Finalising MPI would wait for processes that do not come.
            core::mem::forget(universe);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.end(false);
    }
}
