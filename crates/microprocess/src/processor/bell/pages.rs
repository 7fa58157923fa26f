//! The two bell pages of a process: the state page, which only it writes, and the ring page, on
//! which other processes ring.
#![expect(unsafe_code, reason = "atomic words in shared mappings")]

use core::ptr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use kyocho_sys::scheduling::current_cpu;
use kyocho_sys::sealed::{SealedMemory, Use, Writers};
use kyocho_sys::task::ThreadId;

use super::ring;
use crate::processor::kernel_thread::ANY_CPU;
use crate::processor::vp::Vp;

/// The most virtual processors of one process that can have bells.
pub const BELLS_MAX: usize = 64;

pub(super) const NO_BELL: u32 = u32::MAX;
const LINE_BYTES: usize = 64;
const BYTES: usize = BELLS_MAX * LINE_BYTES;

/// The state of a virtual processor, as its owner publishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It runs microprocesses or checks awaited words, on this CPU.
    Awake(usize),
    /// Its kernel thread sleeps. This was its last CPU, where the host will probably wake it.
    Parked(usize),
    /// There is no such bell.
    Absent,
}

/// What the owner publishes of one virtual processor.
#[repr(C, align(64))]
struct StateLine {
    /// Awake or parked: see [`ring`].
    state: AtomicU32,
    cpu: AtomicU32,
    /// The kernel thread that holds it, by number; 0 if not known.
    holder: AtomicU32,
}

/// What other processes may write.
#[repr(C, align(64))]
struct RingLine {
    /// The counter that they increment to ring.
    counter: AtomicU32,
    /// The word through which they donate their scheduling class to the holder: see
    /// [`donate`](super::donate).
    donation: AtomicU32,
}

const _: () = assert!(size_of::<StateLine>() == LINE_BYTES && size_of::<RingLine>() == LINE_BYTES);

fn state_line(memory: &SealedMemory, bell: u32) -> &StateLine {
    assert!((bell as usize) < BELLS_MAX, "no such bell");
    let address = memory.base() + bell as usize * LINE_BYTES;
    // SAFETY: inside the mapping, which is `BYTES` long and lives as long as `memory`. It holds
    // only atomic words.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

fn ring_line(memory: &SealedMemory, bell: u32) -> &RingLine {
    assert!((bell as usize) < BELLS_MAX, "no such bell");
    let address = memory.base() + bell as usize * LINE_BYTES;
    // SAFETY: as for `state_line`; in addition, the memory is mapped for writing.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// The CPU on which the holder of `vp` runs, as far as known.
pub(crate) fn cpu_of(vp: &Vp) -> usize {
    match vp.cpu() {
        ANY_CPU => current_cpu(),
        cpu => cpu,
    }
}

/// The bell pages of this process.
#[derive(Debug)]
pub(crate) struct BellPages {
    state_page: SealedMemory,
    ring_page: SealedMemory,
    /// One bit for each bell that is in use.
    taken: AtomicU64,
}

impl BellPages {
    pub(super) fn new() -> Result<Self, Errno> {
        let state_page = SealedMemory::new(BYTES, Writers::Maker)?;
        let ring_page = SealedMemory::new(BYTES, Writers::All)?;
        Ok(Self { state_page, ring_page, taken: AtomicU64::new(0) })
    }

    pub(super) fn descriptors(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.state_page.as_fd(), self.ring_page.as_fd())
    }

    pub(super) fn take(&self) -> Option<u32> {
        let take = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).ok()?;
        Some(before.trailing_ones())
    }

    pub(super) fn put(&self, bell: u32) {
        self.taken.fetch_and(!(1 << bell), Ordering::SeqCst);
    }

    /// Publishes that the holder of `bell` is awake again.
    pub(super) fn publish_awake(&self, bell: u32) {
        ring::publish_awake(&state_line(&self.state_page, bell).state);
    }

    /// Publishes the CPU of the holder.
    pub(super) fn publish_cpu(&self, bell: u32, cpu: usize) {
        publish(&state_line(&self.state_page, bell).cpu, u32::try_from(cpu).unwrap_or(u32::MAX));
    }

    /// Publishes which kernel thread holds the virtual processor.
    pub(super) fn publish_holder(&self, bell: u32, holder: Option<ThreadId>) {
        publish(&state_line(&self.state_page, bell).holder, holder.map_or(0, ThreadId::number));
    }

    /// Publishes that the holder is about to sleep. Call before the last check of the words.
    pub(super) fn publish_parked(&self, bell: u32) {
        ring::publish_parked(&state_line(&self.state_page, bell).state);
    }

    /// The counter's value; to be read before the last check of the words.
    pub(super) fn count(&self, bell: u32) -> u32 {
        ring::count(self.counter(bell))
    }

    /// The counter of `bell`.
    pub(super) fn counter(&self, bell: u32) -> &AtomicU32 {
        &ring_line(&self.ring_page, bell).counter
    }

    /// The word through which other processes donate.
    pub(super) fn donation(&self, bell: u32) -> &AtomicU32 {
        &ring_line(&self.ring_page, bell).donation
    }

    /// Wakes every holder that is parked.
    pub(super) fn ring_all(&self) {
        let taken = self.taken.load(Ordering::SeqCst);
        for bell in (0..BELLS_MAX as u32).filter(|bell| taken & 1 << bell != 0) {
            ring::ring_if_parked(&state_line(&self.state_page, bell).state, self.counter(bell));
        }
    }

    /// Wakes the holder, on behalf of a thread of this process.
    pub(super) fn rouse(&self, bell: u32) {
        ring::ring(self.counter(bell));
    }
}

/// Stores `value` only if it is new: a cache line that is not written stays in the caches of all
/// its readers.
fn publish(place: &AtomicU32, value: u32) {
    if place.load(Ordering::Relaxed) != value {
        place.store(value, Ordering::Relaxed);
    }
}

/// The bell pages of another process.
#[derive(Debug)]
pub(super) struct PeerPages {
    state_page: SealedMemory,
    ring_page: SealedMemory,
    /// The process number.
    process: u32,
}

impl PeerPages {
    pub(super) fn receive(
        state_page: OwnedFd,
        ring_page: OwnedFd,
        process: u32,
    ) -> Result<Self, Errno> {
        let state_page = SealedMemory::receive(state_page, BYTES, Use::Read)?;
        let ring_page = SealedMemory::receive(ring_page, BYTES, Use::ReadWrite)?;
        if state_page.bytes() != BYTES || ring_page.bytes() != BYTES {
            return Err(Errno::INVAL);
        }
        Ok(Self { state_page, ring_page, process })
    }

    /// The donation word of the holder of `bell`, and that holder. `None` if the alleged holder is
    /// not a thread of that process.
    pub(super) fn recipient(&self, bell: u32) -> Option<(&AtomicU32, ThreadId)> {
        let exists = (bell as usize) < BELLS_MAX;
        let holder =
            exists.then(|| state_line(&self.state_page, bell).holder.load(Ordering::Relaxed))?;
        let holder = Some(ThreadId::new(holder)).filter(|_| holder != 0)?;
        holder.exists_in(self.process).then(|| (&ring_line(&self.ring_page, bell).donation, holder))
    }

    pub(super) fn standing(&self, bell: u32) -> Standing {
        if bell as usize >= BELLS_MAX {
            return Standing::Absent;
        }
        let line = state_line(&self.state_page, bell);
        let is_parked = ring::is_parked(&line.state);
        let cpu = line.cpu.load(Ordering::Relaxed) as usize;
        if is_parked { Standing::Parked(cpu) } else { Standing::Awake(cpu) }
    }

    pub(super) fn ring(&self, bell: u32) -> bool {
        let exists = (bell as usize) < BELLS_MAX;
        exists
            && ring::ring_if_parked(
                &state_line(&self.state_page, bell).state,
                &ring_line(&self.ring_page, bell).counter,
            )
    }
}
