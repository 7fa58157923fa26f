//! The two pages of a process: what it shows, and where others ring.
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

/// Most virtual processors of one process that have bells.
pub const BELLS_MAX: usize = 64;

pub(super) const NO_BELL: u32 = u32::MAX;
const LINE_BYTES: usize = 64;
const BYTES: usize = BELLS_MAX * LINE_BYTES;

/// How a virtual processor stands, as its owner says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It runs microprocesses, or looks for changed words, on this CPU.
    Awake(usize),
    /// Its kernel thread sleeps; it was on this CPU, and is woken there if the host keeps to that.
    Parked(usize),
    /// There is no such bell.
    Absent,
}

/// What the owner shows of one virtual processor.
#[repr(C, align(64))]
struct Shown {
    /// See [`ring`].
    state: AtomicU32,
    cpu: AtomicU32,
    /// The number of the kernel thread that holds it; 0: not known.
    holder: AtomicU32,
}

/// What others may write.
#[repr(C, align(64))]
struct Open {
    /// Where they ring.
    counter: AtomicU32,
    /// By which they lend the holder their scheduling class: see [`lend`](super::lend).
    loan: AtomicU32,
}

const _: () = assert!(size_of::<Shown>() == LINE_BYTES && size_of::<Open>() == LINE_BYTES);

fn shown(memory: &SealedMemory, bell: u32) -> &Shown {
    assert!((bell as usize) < BELLS_MAX, "no such bell");
    let address = memory.base() + bell as usize * LINE_BYTES;
    // SAFETY: inside the mapping, which is `BYTES` long and lasts as long as `memory`; atomic words alone.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

fn open(memory: &SealedMemory, bell: u32) -> &Open {
    assert!((bell as usize) < BELLS_MAX, "no such bell");
    let address = memory.base() + bell as usize * LINE_BYTES;
    // SAFETY: as for `shown`; the memory is mapped for writing.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// Where the holder of `vp` runs, as far as known.
pub(crate) fn cpu_of(vp: &Vp) -> usize {
    match vp.cpu() {
        ANY_CPU => current_cpu(),
        cpu => cpu,
    }
}

/// This process's pages.
#[derive(Debug)]
pub(crate) struct Hall {
    shown: SealedMemory,
    open: SealedMemory,
    /// A bit for each bell that is in use.
    taken: AtomicU64,
}

impl Hall {
    pub(super) fn new() -> Result<Self, Errno> {
        let shown = SealedMemory::new(BYTES, Writers::Maker)?;
        let open = SealedMemory::new(BYTES, Writers::All)?;
        Ok(Self { shown, open, taken: AtomicU64::new(0) })
    }

    pub(super) fn descriptors(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.shown.as_fd(), self.open.as_fd())
    }

    pub(super) fn take(&self) -> Option<u32> {
        let take = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).ok()?;
        Some(before.trailing_ones())
    }

    pub(super) fn put(&self, bell: u32) {
        self.taken.fetch_and(!(1 << bell), Ordering::SeqCst);
    }

    /// Shows that it is awake again.
    pub(super) fn show_awake(&self, bell: u32) {
        ring::show_awake(&shown(&self.shown, bell).state);
    }

    /// Shows where it is.
    pub(super) fn show_cpu(&self, bell: u32, cpu: usize) {
        show(&shown(&self.shown, bell).cpu, u32::try_from(cpu).unwrap_or(u32::MAX));
    }

    /// Shows which kernel thread holds it.
    pub(super) fn show_holder(&self, bell: u32, holder: Option<ThreadId>) {
        show(&shown(&self.shown, bell).holder, holder.map_or(0, ThreadId::number));
    }

    /// Shows that it is about to sleep. Before its last look at the words.
    pub(super) fn show_parked(&self, bell: u32) {
        ring::show_parked(&shown(&self.shown, bell).state);
    }

    /// What the counter of `bell` reads; to be read before the last look at the words.
    pub(super) fn count(&self, bell: u32) -> u32 {
        ring::count(self.counter(bell))
    }

    /// The counter itself.
    pub(super) fn counter(&self, bell: u32) -> &AtomicU32 {
        &open(&self.open, bell).counter
    }

    /// The word by which others lend.
    pub(super) fn loan(&self, bell: u32) -> &AtomicU32 {
        &open(&self.open, bell).loan
    }

    /// Wakes every holder that is parked.
    pub(super) fn ring_all(&self) {
        let taken = self.taken.load(Ordering::SeqCst);
        for bell in (0..BELLS_MAX as u32).filter(|bell| taken & 1 << bell != 0) {
            ring::ring_if_parked(&shown(&self.shown, bell).state, self.counter(bell));
        }
    }

    /// Wakes the holder: from this process.
    pub(super) fn rouse(&self, bell: u32) {
        ring::ring(self.counter(bell));
    }
}

/// Written where that is new only: a line that nobody writes stays in the caches of all who look at it.
fn show(place: &AtomicU32, value: u32) {
    if place.load(Ordering::Relaxed) != value {
        place.store(value, Ordering::Relaxed);
    }
}

/// Another process's pages.
#[derive(Debug)]
pub(super) struct PeerHall {
    shown: SealedMemory,
    open: SealedMemory,
    /// Its number.
    process: u32,
}

impl PeerHall {
    pub(super) fn receive(shown: OwnedFd, open: OwnedFd, process: u32) -> Result<Self, Errno> {
        let shown = SealedMemory::receive(shown, BYTES, Use::Read)?;
        let open = SealedMemory::receive(open, BYTES, Use::ReadWrite)?;
        if shown.bytes() != BYTES || open.bytes() != BYTES {
            return Err(Errno::INVAL);
        }
        Ok(Self { shown, open, process })
    }

    /// The word by which the holder of `bell` is lent something, and who that is; `None` where that is no thread of that process.
    pub(super) fn debtor(&self, bell: u32) -> Option<(&AtomicU32, ThreadId)> {
        let exists = (bell as usize) < BELLS_MAX;
        let holder = exists.then(|| shown(&self.shown, bell).holder.load(Ordering::Relaxed))?;
        let holder = Some(ThreadId::new(holder)).filter(|_| holder != 0)?;
        holder.exists_in(self.process).then(|| (&open(&self.open, bell).loan, holder))
    }

    pub(super) fn standing(&self, bell: u32) -> Standing {
        if bell as usize >= BELLS_MAX {
            return Standing::Absent;
        }
        let shown = shown(&self.shown, bell);
        let is_parked = ring::is_parked(&shown.state);
        let cpu = shown.cpu.load(Ordering::Relaxed) as usize;
        if is_parked { Standing::Parked(cpu) } else { Standing::Awake(cpu) }
    }

    pub(super) fn ring(&self, bell: u32) -> bool {
        let exists = (bell as usize) < BELLS_MAX;
        exists
            && ring::ring_if_parked(
                &shown(&self.shown, bell).state,
                &open(&self.open, bell).counter,
            )
    }
}
