//! A connection, as the server sees it.

use std::sync::Arc;

use kyocho_microprocess::bell;
use kyocho_sys::peer::Peer;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize};
use kyocho_sys::sealed::SealedMemory;

use crate::frame::{Frame, frame, liveness_word};
use crate::liveness::Liveness;
use crate::service::{Objects, Regions, Service};

/// Everything that the server has of one client.
pub(super) struct Connection {
    pub(super) liveness: Liveness,
    pub(super) peer: Peer,
    /// The doorbells of the client.
    pub(super) client: bell::Peer,
    pub(super) frames: SealedMemory,
    pub(super) credits: usize,
    /// Number of frames that have a worker.
    pub(super) workers: AtomicUsize,
    pub(super) regions: Regions,
    pub(super) objects: Objects,
}

impl Connection {
    pub(super) fn new(
        liveness: Liveness,
        peer: Peer,
        client: bell::Peer,
        frames: SealedMemory,
        credits: usize,
        root: Arc<dyn Service>,
    ) -> Self {
        Self {
            liveness,
            peer,
            client,
            frames,
            credits,
            workers: AtomicUsize::new(0),
            regions: Regions::default(),
            objects: Objects::new(root),
        }
    }

    pub(super) fn frame(&self, index: usize) -> &Frame {
        frame(&self.frames, index)
    }

    /// The word by which the client's death watcher learns that the server's socket thread has
    /// died.
    pub(super) fn liveness_word(&self) -> &AtomicU32 {
        liveness_word(&self.frames, self.credits)
    }
}
