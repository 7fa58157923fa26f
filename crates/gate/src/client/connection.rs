//! The client's side of a connection: its frames, and the numbers of its regions.

use core::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use kyocho_microprocess::Semaphore;
use kyocho_microprocess::bell::{self, Standing};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use kyocho_sys::robust;
use kyocho_sys::sealed::SealedMemory;

use crate::error::Error;
use crate::frame::{self, Frame, NO_BELL, frame};
use crate::handshake::{self, Message};
use crate::liveness::{Liveness, start_thread, watch_server};
use crate::slice::REGIONS_MAX;

/// How many free frames are compared before one is taken.
const COMPARED_MAX: usize = 4;

const _: () = assert!(REGIONS_MAX == u64::BITS as usize, "a region number is a bit of a word");

/// A connection, as the client sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) liveness: Arc<Liveness>,
    /// The doorbells of the server.
    pub(super) server: bell::Peer,
    frames: Arc<SealedMemory>,
    credits_max: usize,
    /// One permit for each free frame.
    credits: Semaphore,
    /// One bit for each free frame.
    free: AtomicU64,
    /// The number of the last call of each frame.
    numbers: Vec<AtomicU32>,
    /// One bit for each free region number.
    regions: AtomicU64,
}

fn lowest_bits(count: usize) -> u64 {
    if count >= u64::BITS as usize { u64::MAX } else { (1 << count) - 1 }
}

impl Connection {
    /// Connects to the server at `path` and starts the connection's kernel threads.
    pub(super) fn open(path: &Path) -> Result<Arc<Self>, Error> {
        let (socket, server, frames, credits) = handshake::connect(path)?;
        let frames = Arc::new(frames);
        let liveness = Arc::new(Liveness::new(socket));
        // Its drop closes the connection if anything below fails.
        let connection = Arc::new(Self {
            liveness: Arc::clone(&liveness),
            server,
            frames: Arc::clone(&frames),
            credits_max: credits,
            credits: Semaphore::new(credits),
            free: AtomicU64::new(lowest_bits(credits)),
            numbers: (0..credits).map(|_| AtomicU32::new(0)).collect(),
            regions: AtomicU64::new(u64::MAX),
        });
        watch_server(&liveness, &frames, credits)?;
        start_thread(move || {
            // A server sends nothing after the handshake. So this returns when the server ends, or
            // when it breaks the protocol.
            let _end = Message::receive(liveness.socket());
            liveness.close();
        })?;
        Ok(connection)
    }

    pub(super) fn frame(&self, index: usize) -> &Frame {
        frame(&self.frames, index)
    }

    /// The number of the last call of a frame.
    pub(super) fn last_number(&self, index: usize) -> &AtomicU32 {
        &self.numbers[index]
    }

    /// Waits for a free frame and takes it: among the first few, the one whose worker is cheapest
    /// to reach.
    pub(super) fn take_frame(&self) -> usize {
        self.credits.acquire();
        let cpu = bell::own_cpu();
        loop {
            let free = self.free.load(Ordering::Relaxed);
            let bits = (0..u64::BITS as usize).filter(|index| free & 1 << index != 0);
            let rank = |&index: &usize| {
                let bell = self.frame(index).server_bell();
                (preference(bell, self.server.standing(bell), cpu), Reverse(index))
            };
            let Some(index) = bits.take(COMPARED_MAX).max_by_key(rank) else { continue };
            let before = self.free.fetch_and(!(1 << index), Ordering::AcqRel);
            if before & 1 << index != 0 {
                return index;
            }
        }
    }

    pub(super) fn release_frame(&self, index: usize) {
        self.free.fetch_or(1 << index, Ordering::AcqRel);
        self.credits.release();
    }

    pub(super) fn take_region_number(&self) -> Result<u32, Error> {
        let take = |free: u64| (free != 0).then(|| free & (free - 1));
        let before = self.regions.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        let bytes_max = REGIONS_MAX;
        before
            .map(u64::trailing_zeros)
            .map_err(|_| Error::TooLong { bytes: bytes_max + 1, bytes_max })
    }

    pub(super) fn release_region_number(&self, number: u32) {
        self.regions.fetch_or(1 << number, Ordering::AcqRel);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.liveness.close();
        // Wakes the death watcher, which has nothing left to watch.
        robust::mark(frame::liveness_word(&self.frames, self.credits_max));
    }
}

/// How cheap it is to reach the worker behind a doorbell from `cpu`: higher is cheaper. Waking an
/// idle core ranks below handing over this one.
fn preference(bell: u32, standing: Standing, cpu: usize) -> u32 {
    if bell == NO_BELL {
        return 0;
    }
    match standing {
        Standing::Awake(there) if there != cpu => 4,
        Standing::Parked(there) if there == cpu => 3,
        Standing::Awake(_) => 3,
        Standing::Parked(_) => 2,
        _ => 1,
    }
}
