//! Bells: how a microprocess waits for a word that another process changes.
//!
//! ```text
//!   waiter (this process)                               waker (another process)
//!   links itself to its virtual processor's bell        changes the word
//!   says which bell to ring                             reads which bell, rings it:
//!   looks at the word once more, parks                    awake: nothing    parked: count up, wake
//! ```
//!
//! A bell belongs to a virtual processor. Whoever holds that looks at all awaited words when it has nothing else to run, now and then
//! while it has, and last of all before it sleeps: so a call from another process needs no thread of its own to receive it, and finds the
//! very kernel thread that will serve it.
//!
//! Each process has two pages. In one it *shows* how its virtual processors stand (awake or parked, on which CPU, held by which kernel
//! thread); nobody else can write there. In the other one anybody it knows may *ring*, counters that parked holders sleep on, and
//! *lend* the holder their scheduling class.
//!
//! **Invariant:** no wake is lost. The waker changes the word before it looks whether the bell's owner is parked; the owner shows that
//! it is parked before it looks at the words for the last time, and sleeps only while the counter is as before (all sequentially
//! consistent). Scribbling on the counters can delay a wake by `LOOK_AGAIN_NS`, no more.
//!
//! **Invariant:** an awaited word is alive while it is linked: its waiter unlinks it before it returns, however the wait ends.
//!
//! Source: Paper 1, §4: the server's state is kept where the caller finds it. There in the kernel, here in the page that is shown.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::task::ThreadId;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::vp::Masked;

mod awaited;
mod hall;
mod lend;
mod linger;
mod rest;
mod ring;

use awaited::Awaiting;
pub(crate) use awaited::{Afterwards, Awaited};
pub use hall::{BELLS_MAX, Standing};
pub(crate) use hall::{Hall, cpu_of};
use hall::{NO_BELL, PeerHall};
pub(crate) use linger::linger;

/// How long a parked holder sleeps at most: somebody may have scribbled on its counter.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// The bells of another process.
#[derive(Debug)]
pub struct Peer(PeerHall);

impl Peer {
    /// The bells behind the two descriptors that the other process, which has the number `process`, got from [`descriptors`]; both are
    /// checked.
    ///
    /// # Errors
    /// They are not what they should be; the host gives no memory.
    pub fn receive(shown: OwnedFd, open: OwnedFd, process: u32) -> io::Result<Self> {
        Ok(Self(PeerHall::receive(shown, open, process)?))
    }

    /// How the virtual processor behind `bell` stands, as its owner says. A bell that cannot exist is [`Standing::Absent`].
    #[must_use]
    pub fn standing(&self, bell: u32) -> Standing {
        self.0.standing(bell)
    }

    /// Lets the owner of `bell` look at the words it awaits: one load while it is awake, a system call while it sleeps. Whether it
    /// slept.
    pub fn ring(&self, bell: u32) -> bool {
        self.0.ring(bell)
    }
}

/// The two descriptors that let another process ring ours: what is shown, and what others may write.
///
/// # Errors
/// The host gives no memory or descriptors.
pub fn descriptors() -> io::Result<(BorrowedFd<'static>, BorrowedFd<'static>)> {
    Ok(hall()?.descriptors())
}

/// Writes into `place`, where wakers look, that `bell` is to be rung: its number plus 1. 0 says that there is none yet.
pub fn announce(place: &AtomicU32, bell: u32) {
    if place.load(Ordering::Relaxed) != bell + 1 {
        place.store(bell + 1, Ordering::SeqCst);
    }
}

/// Rings all bells of this process: a word that waits end by was set. From any kernel thread.
pub fn ring_all() {
    if let Ok(hall) = hall() {
        hall.ring_all();
    }
}

/// The pages of this process, made at their first use.
pub(crate) fn hall() -> Result<&'static Hall, Errno> {
    static HALL: OnceLock<Hall> = OnceLock::new();
    if let Some(hall) = HALL.get() {
        return Ok(hall);
    }
    let fresh = Hall::new()?;
    Ok(HALL.get_or_init(|| fresh))
}

/// What a virtual processor keeps about its bell.
#[derive(Debug)]
pub(crate) struct Bell {
    number: AtomicU32,
    awaiting: Awaiting,
    /// Whether the holder, when it is idle, sleeps on the counter.
    rests_here: AtomicU32,
    /// How many more times not to yield to a peer: the last time somebody else took the core for long.
    shy: AtomicU32,
}

impl Bell {
    pub(crate) const fn new() -> Self {
        Self {
            number: AtomicU32::new(NO_BELL),
            awaiting: Awaiting::new(),
            rests_here: AtomicU32::new(0),
            shy: AtomicU32::new(0),
        }
    }

    /// As it was at first: it has been taken down.
    pub(crate) fn renew(&self) {
        self.rests_here.store(0, Ordering::SeqCst);
        self.shy.store(0, Ordering::Relaxed);
    }

    /// Its number; taken from `hall` when it is asked for the first time. By the holder, masked.
    pub(crate) fn number(&self, hall: &'static Hall) -> Option<u32> {
        match self.number.load(Ordering::Relaxed) {
            NO_BELL => {
                let number = hall.take()?;
                self.number.store(number, Ordering::Release);
                hall.show_holder(number, KernelThread::current().id());
                Some(number)
            }
            number => Some(number),
        }
    }

    /// The hall and its number, once somebody waited here.
    #[inline]
    fn hung(&self) -> Option<(&'static Hall, u32)> {
        match self.number.load(Ordering::Acquire) {
            NO_BELL => None,
            number => Some((hall().ok()?, number)),
        }
    }

    /// Shows who holds its virtual processor now.
    pub(crate) fn show_holder(&self, holder: Option<ThreadId>) {
        if let Some((hall, number)) = self.hung() {
            hall.show_holder(number, holder);
        }
    }

    /// Whether somebody waits, or serves: for a word of another process is no deadlock.
    #[inline]
    pub(crate) fn awaits(&self) -> bool {
        self.awaiting.is_any()
    }

    /// Whether a word has changed that somebody waits for, or goes by. By anybody.
    pub(crate) fn has_changed(&self) -> bool {
        self.awaits() && self.awaiting.has_changed()
    }

    /// Makes those runnable whose words have changed, and passes levels on; whether there was anything. By the holder of `vp`, masked.
    #[inline]
    pub(crate) fn look(&self, vp: Masked<'_>) -> bool {
        self.awaits() && self.awaiting.look(vp)
    }

    /// Takes the bell down: its virtual processor has stopped.
    pub(crate) fn take_down(&self) {
        self.awaiting.forget();
        if let Some((hall, number)) = self.hung() {
            self.number.store(NO_BELL, Ordering::Release);
            hall.put(number);
        }
    }
}
