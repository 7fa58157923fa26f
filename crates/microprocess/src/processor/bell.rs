//! Bells: how a microprocess waits for a word that another process changes.
//!
//! ```text
//!   waiter (this process)                               waker (another process)
//!   links itself to its virtual processor's bell        changes the word
//!   says which bell to ring                             reads which bell, rings it:
//!   reads the word once more, parks                      awake: nothing    parked: count up, wake
//! ```
//!
//! A bell belongs to a virtual processor, whose holder checks all awaited words. It does so when it
//! has nothing to run, now and then while it has, and last of all before it sleeps. So a call from
//! another process needs no separate thread to receive it: it reaches the kernel thread that will
//! serve it.
//!
//! Each process has two pages. In the *state page* it publishes the state of its virtual
//! processors: awake or parked, on which CPU, held by which kernel thread. No other process can
//! write there. The *ring page* may be written by the processes that received its descriptor. There
//! they *ring*, by incrementing counters that parked holders sleep on, and *donate* their
//! scheduling class to a holder.
//!
//! **Invariant:** no wake is lost. The waker changes the word before it checks whether the bell's
//! owner is parked. The owner publishes that it is parked before it reads the words for the last
//! time, and sleeps only if the counter has not changed. All these accesses are sequentially
//! consistent. A process that overwrites the counters can delay a wake by `LOOK_AGAIN_NS`, no more.
//!
//! **Invariant:** an awaited word is alive while it is linked. The waiter unlinks it before the
//! wait returns, however the wait ends.
//!
//! Source: Paper 1, §4: the server's state is kept where the caller finds it. In the paper that is
//! the kernel, here it is the state page.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::task::ThreadId;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::vp::Masked;

mod awaited;
mod donate;
mod pages;
mod rest;
mod ring;
mod spin_or_yield;

use awaited::Awaiting;
pub(crate) use awaited::{AfterWait, Awaited};
pub use pages::{BELLS_MAX, Standing};
pub(crate) use pages::{BellPages, cpu_of};
use pages::{NO_BELL, PeerPages};
pub(crate) use spin_or_yield::spin_or_yield;

/// The longest sleep of a parked holder, in case another process has overwritten its counter.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// The bells of another process.
#[derive(Debug)]
pub struct Peer(PeerPages);

impl Peer {
    /// The bells behind two descriptors, which the process with number `process` obtained from
    /// [`descriptors`]. Both are checked.
    ///
    /// # Errors
    /// The descriptors are not of such pages, or the host gives no memory.
    pub fn receive(state_page: OwnedFd, ring_page: OwnedFd, process: u32) -> io::Result<Self> {
        Ok(Self(PeerPages::receive(state_page, ring_page, process)?))
    }

    /// The state of the virtual processor behind `bell`, as its owner publishes it. A number that
    /// cannot be a bell is [`Standing::Absent`].
    #[must_use]
    pub fn standing(&self, bell: u32) -> Standing {
        self.0.standing(bell)
    }

    /// Makes the owner of `bell` check the words it awaits. Costs one load if the owner is awake, a
    /// system call if it sleeps. Returns whether it slept.
    pub fn ring(&self, bell: u32) -> bool {
        self.0.ring(bell)
    }
}

/// The two descriptors with which another process can ring the bells of this one: the state page
/// and the ring page.
///
/// # Errors
/// The host gives no memory or no descriptors.
pub fn descriptors() -> io::Result<(BorrowedFd<'static>, BorrowedFd<'static>)> {
    Ok(pages()?.descriptors())
}

/// Stores the number of `bell` plus 1 into `place`, where wakers read which bell to ring. 0 means
/// that there is none yet.
pub fn announce(place: &AtomicU32, bell: u32) {
    if place.load(Ordering::Relaxed) != bell + 1 {
        place.store(bell + 1, Ordering::SeqCst);
    }
}

/// Rings all bells of this process, after a word that ends waits was set. May be called from any
/// kernel thread.
pub fn ring_all() {
    if let Ok(pages) = pages() {
        pages.ring_all();
    }
}

/// The bell pages of this process, made at the first call.
pub(crate) fn pages() -> Result<&'static BellPages, Errno> {
    static PAGES: OnceLock<BellPages> = OnceLock::new();
    if let Some(pages) = PAGES.get() {
        return Ok(pages);
    }
    let fresh = BellPages::new()?;
    Ok(PAGES.get_or_init(|| fresh))
}

/// The bell of a virtual processor.
#[derive(Debug)]
pub(crate) struct Bell {
    number: AtomicU32,
    awaiting: Awaiting,
    /// Not 0 if the holder sleeps on the counter when it is idle.
    rests_here: AtomicU32,
    /// How many more hand-overs to skip, since the last one lost the core for long.
    hand_overs_to_skip: AtomicU32,
}

impl Bell {
    pub(crate) const fn new() -> Self {
        Self {
            number: AtomicU32::new(NO_BELL),
            awaiting: Awaiting::new(),
            rests_here: AtomicU32::new(0),
            hand_overs_to_skip: AtomicU32::new(0),
        }
    }

    /// Resets the bell, which has been taken down, for the next run.
    pub(crate) fn renew(&self) {
        self.rests_here.store(0, Ordering::SeqCst);
        self.hand_overs_to_skip.store(0, Ordering::Relaxed);
    }

    /// Its number. The first call takes a free one from `pages`. Call as the holder, with events
    /// masked.
    pub(crate) fn number(&self, pages: &'static BellPages) -> Option<u32> {
        match self.number.load(Ordering::Relaxed) {
            NO_BELL => {
                let number = pages.take()?;
                self.number.store(number, Ordering::Release);
                pages.publish_holder(number, KernelThread::current().id());
                Some(number)
            }
            number => Some(number),
        }
    }

    /// The pages and the bell's number, if a microprocess has ever waited here.
    #[inline]
    fn pages_and_number(&self) -> Option<(&'static BellPages, u32)> {
        match self.number.load(Ordering::Acquire) {
            NO_BELL => None,
            number => Some((pages().ok()?, number)),
        }
    }

    /// Publishes which kernel thread holds the virtual processor.
    pub(crate) fn publish_holder(&self, holder: Option<ThreadId>) {
        if let Some((pages, number)) = self.pages_and_number() {
            pages.publish_holder(number, holder);
        }
    }

    /// Whether a microprocess waits for, or follows, a word of another process. Such a wait is no
    /// deadlock.
    #[inline]
    pub(crate) fn awaits(&self) -> bool {
        self.awaiting.is_any()
    }

    /// Whether a word has changed for which a microprocess waits, or which it follows. May be
    /// called by any thread.
    pub(crate) fn has_changed(&self) -> bool {
        self.awaits() && self.awaiting.has_changed()
    }

    /// Makes waiters runnable whose words have changed, and passes levels on. Returns whether there
    /// was anything to do. Call as the holder of `vp`, with events masked.
    #[inline]
    pub(crate) fn look(&self, vp: Masked<'_>) -> bool {
        self.awaits() && self.awaiting.look(vp)
    }

    /// Removes the bell when its virtual processor has stopped.
    pub(crate) fn take_down(&self) {
        self.awaiting.forget();
        if let Some((pages, number)) = self.pages_and_number() {
            self.number.store(NO_BELL, Ordering::Release);
            pages.put(number);
        }
    }
}
