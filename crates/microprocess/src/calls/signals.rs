//! Signals as messages.
//!
//! ```text
//!   signal ──► handler: sets a bit in each slot that wants it, notifies their event counters
//!                                             └──► a microprocess per slot: takes the bits, sends them ──► Receiver
//! ```
//!
//! A signal handler may interrupt any code, so it only sets bits and notifies. As in the kernel, a
//! signal that comes again before it was taken counts once. While a signal has a receiver, it has
//! no other effect. When its last receiver is dropped, its former action is restored; that also
//! applies to a signal on its way at that moment.
//!
//! ```
//! use kyocho_microprocess::{run, signals::{self, Signal}};
//!
//! run(|| {
//!     let signals = signals::channel([Signal::USR1, Signal::HUP]).unwrap();
//!     kyocho_sys::signal::send(kyocho_sys::task::ThreadId::current(), Signal::USR1).unwrap();
//!     assert_eq!(signals.recv(), Ok(Signal::USR1));
//! })
//! .unwrap();
//! ```
#![expect(unsafe_code, reason = "installs signal handlers")]

use core::ffi::c_void;
use core::fmt;
use core::ops::Deref;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use kyocho_sys::event::Event;
use kyocho_sys::poll::Interest;
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use kyocho_sys::signal::{Action, HandlerOptions, Info, install, restore};

pub use kyocho_sys::signal::Signal;

use crate::calls::io::descriptor::ready;
use crate::schedule::guarded::Guarded;
use crate::schedule::preempt;
use crate::thread::spawn::Builder;
use crate::wait::channel::{Receiver, Sender, bounded};

/// The most receivers at a time.
const SLOTS: usize = 32;

/// How many signals may be queued for one receiver, in addition to the bits of its slot.
const QUEUED_MAX: usize = 64;

/// Where the signals of one receiver arrive. The handler checks all slots.
struct Slot {
    /// The signals it wants, bit n - 1 for signal n; 0 if the slot is free.
    wanted: AtomicU64,
    /// The signals that have come.
    come: AtomicU64,
    /// Made at the first use and kept, since a handler may notify it at any time.
    event: OnceLock<Event>,
}

static ALL: [Slot; SLOTS] =
    [const { Slot { wanted: AtomicU64::new(0), come: AtomicU64::new(0), event: OnceLock::new() } };
        SLOTS];

/// The owners of the slots, and the former action of each signal.
struct Table {
    /// The numbers of the owners; 0 for a free slot.
    owners: [u64; SLOTS],
    owners_so_far: u64,
    before: [Option<Action>; Signal::NUMBER_MAX as usize],
}

static TABLE: Guarded<Table> = Guarded::new(Table {
    owners: [0; SLOTS],
    owners_so_far: 0,
    before: [None; Signal::NUMBER_MAX as usize],
});

const fn bit(signal: Signal) -> u64 {
    1 << (signal.number() - 1)
}

/// The signals whose bits are set, in order.
fn signals_of(bits: u64) -> impl Iterator<Item = Signal> {
    (1..=Signal::NUMBER_MAX).filter_map(Signal::new).filter(move |signal| bits & bit(*signal) != 0)
}

unsafe extern "C" fn on_signal(number: i32, _info: *mut Info, context: *mut c_void) {
    // SAFETY: the kernel passes the interrupted context.
    let _interrupted = unsafe { preempt::rewind(context) };
    let Some(signal) = Signal::new(number) else { return };
    for slot in &ALL {
        if slot.wanted.load(Ordering::SeqCst) & bit(signal) != 0 {
            slot.come.fetch_or(bit(signal), Ordering::SeqCst);
            if let Some(event) = slot.event.get() {
                // Fails only if a test injects an error. A full counter counts as success: it is
                // readable, so the receiver wakes. Does not change errno.
                let _injected = event.notify();
            }
        }
    }
}

impl Table {
    /// Gives a free slot to a new owner that wants the signals `wanted`.
    fn take_slot(&mut self, wanted: u64) -> Result<(usize, u64)> {
        let free =
            (0..SLOTS).find(|&index| self.owners[index] == 0 && ALL[index].event.get().is_some());
        let index = free.ok_or(ErrorKind::QuotaExceeded)?;
        self.owners_so_far += 1;
        let owner = self.owners_so_far;
        ALL[index].come.store(0, Ordering::SeqCst);
        ALL[index].wanted.store(wanted, Ordering::SeqCst);
        self.owners[index] = owner;
        for signal in signals_of(wanted) {
            if let Err(error) = self.handle(signal) {
                self.free_slot(index, owner);
                return Err(error);
            }
        }
        Ok((index, owner))
    }

    /// Installs the handler for `signal`, if it had no receiver before.
    fn handle(&mut self, signal: Signal) -> Result<()> {
        let before = &mut self.before[signal.number() as usize - 1];
        if before.is_none() {
            let manner = HandlerOptions {
                on_alternate_stack: true,
                restart_calls: true,
                alone: true,
                reentrant: false,
            };
            // SAFETY: the handler sets bits and writes to event counters; it neither allocates nor
            // locks.
            *before = Some(unsafe { install(signal, on_signal, manner) }?);
        }
        Ok(())
    }

    /// Frees the slot, and restores the former actions of signals without a receiver.
    fn free_slot(&mut self, index: usize, owner: u64) {
        if self.owners[index] != owner {
            return;
        }
        self.owners[index] = 0;
        ALL[index].wanted.store(0, Ordering::SeqCst);
        let wanted = ALL.iter().fold(0, |all, slot| all | slot.wanted.load(Ordering::SeqCst));
        for signal in signals_of(!wanted) {
            if let Some(action) = self.before[signal.number() as usize - 1].take() {
                // SAFETY: the action was in force before.
                let _restored = unsafe { restore(signal, &action) };
            }
        }
    }
}

/// Receives signals until it is dropped. It is a [`Receiver`], which [`select!`](crate::select!)
/// accepts as well.
pub struct Signals {
    receiver: Receiver<Signal>,
    slot: usize,
    owner: u64,
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// Makes `signals` arrive as messages, in place of their other actions, until the last receiver of
/// them is dropped.
///
/// While it exists a signal may come from outside, so no deadlock is reported.
///
/// # Errors
/// [`ErrorKind::InvalidInput`]: a signal that cannot be handled (`SIGKILL`, `SIGSTOP`), that
/// reports a fault of the running code (`SIGSEGV` and its like), or that the runtime uses itself
/// (`SIGURG`). [`ErrorKind::QuotaExceeded`]: 32 such channels exist. Others: there is no memory, or
/// no descriptor.
///
/// # Panics
/// The caller is not a microprocess.
pub fn channel(signals: impl IntoIterator<Item = Signal>) -> Result<Signals> {
    let mut wanted = 0;
    for signal in signals {
        check(signal)?;
        wanted |= bit(signal);
    }
    make_events()?;
    let mut table = TABLE.enter();
    let taken = table.take_slot(wanted);
    drop(table);
    let (slot, owner) = taken?;
    let (sender, receiver) = bounded(QUEUED_MAX);
    let signals = Signals { receiver, slot, owner };
    // On an error `signals` is dropped, which frees its slot.
    let forward = move || forward(slot, owner, &sender);
    drop(Builder::new().name("signals").spawn(forward)?);
    Ok(signals)
}

/// Checks whether `signal` can be a message.
fn check(signal: Signal) -> Result<()> {
    let why = match signal.number() {
        libc::SIGKILL | libc::SIGSTOP => "it cannot be handled",
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP => {
            "it reports a fault of the interrupted code"
        }
        libc::SIGURG => "the runtime uses it for preemption",
        _ => return Ok(()),
    };
    let message = format!("signal {} cannot be received: {why}", signal.number());
    Err(Error::new(ErrorKind::InvalidInput, message))
}

/// Makes an event counter for the first slot without one, unless a free slot has one. Done
/// outside the table's guard, since it allocates.
fn make_events() -> Result<()> {
    let table = TABLE.enter();
    let owners = table.owners;
    drop(table);
    let free = |index: &usize| owners[*index] == 0;
    if (0..SLOTS).filter(free).any(|index| ALL[index].event.get().is_some()) {
        return Ok(());
    }
    if let Some(slot) = ALL.iter().find(|slot| slot.event.get().is_none()) {
        // If another thread was faster, its counter is kept.
        let _theirs = slot.event.set(Event::new()?);
    }
    Ok(())
}

/// Sends the signals that come to `slot` until `owner` no longer owns it.
fn forward(slot: usize, owner: u64, sender: &Sender<Signal>) {
    let Some(event) = ALL[slot].event.get() else { return };
    loop {
        // Waiting for an event counter and reading it cannot fail. If a test injects a fault, the
        // bits are checked once more.
        let _ready = ready(event.as_fd(), Interest::Read, None);
        let _count = event.drain();
        let table = TABLE.enter();
        let is_ours = table.owners[slot] == owner;
        let come = if is_ours { ALL[slot].come.swap(0, Ordering::SeqCst) } else { 0 };
        drop(table);
        if !is_ours {
            // The notification may have been for the next owner.
            let _full = event.notify();
            return;
        }
        for signal in signals_of(come) {
            if sender.send(signal).is_err() {
                return;
            }
        }
    }
}

impl Deref for Signals {
    type Target = Receiver<Signal>;

    fn deref(&self) -> &Receiver<Signal> {
        &self.receiver
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        TABLE.enter().free_slot(self.slot, self.owner);
        if let Some(event) = ALL[self.slot].event.get() {
            // The forwarding microprocess then finds that the slot has another owner.
            let _full = event.notify();
        }
    }
}
