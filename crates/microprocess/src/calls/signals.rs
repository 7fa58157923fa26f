//! Signals as messages.
//!
//! ```text
//!   signal ──► handler: sets a bit of its places, notifies their event counters
//!                                             └──► a microprocess per place: takes the bits, sends them ──► Receiver
//! ```
//!
//! A handler may interrupt anything, so it does no more than that. As in the kernel, a signal that comes again before it was
//! taken counts once. One that is under way when its last receiver is dropped does what it did before. While somebody receives a signal, nothing else happens on it; what happened on it before comes
//! back with the last receiver's end.
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
use kyocho_sys::signal::{Action, Info, Manner, install, restore};

pub use kyocho_sys::signal::Signal;

use crate::calls::io::descriptor::ready;
use crate::schedule::guarded::Guarded;
use crate::schedule::preempt;
use crate::thread::spawn::Builder;
use crate::wait::channel::{Receiver, Sender, bounded};

/// Most receivers at a time.
const PLACES: usize = 32;

/// Signals that wait for one receiver, beyond those that are noted as come; each once.
const QUEUED_MAX: usize = 64;

/// Where one receiver's signals arrive. The handler looks at all of them.
struct Place {
    /// The signals it wants, bit n - 1 for signal n; 0 for a free place.
    wanted: AtomicU64,
    /// Those that have come.
    come: AtomicU64,
    /// Made at the first use and kept: a handler may be about to notify it at any time.
    event: OnceLock<Event>,
}

static ALL: [Place; PLACES] = [const {
    Place { wanted: AtomicU64::new(0), come: AtomicU64::new(0), event: OnceLock::new() }
}; PLACES];

/// Who has which place, and what happened on each signal before anybody wanted it.
struct Table {
    /// Numbers of receivers; 0 for a free place.
    owners: [u64; PLACES],
    owners_so_far: u64,
    before: [Option<Action>; Signal::NUMBER_MAX as usize],
}

static TABLE: Guarded<Table> = Guarded::new(Table {
    owners: [0; PLACES],
    owners_so_far: 0,
    before: [None; Signal::NUMBER_MAX as usize],
});

const fn bit(signal: Signal) -> u64 {
    1 << (signal.number() - 1)
}

/// The signals whose bits are set, by number.
fn signals_of(bits: u64) -> impl Iterator<Item = Signal> {
    (1..=Signal::NUMBER_MAX).filter_map(Signal::new).filter(move |signal| bits & bit(*signal) != 0)
}

unsafe extern "C" fn on_signal(number: i32, _info: *mut Info, context: *mut c_void) {
    // SAFETY: the kernel passes the interrupted context.
    let _interrupted = unsafe { preempt::rewind(context) };
    let Some(signal) = Signal::new(number) else { return };
    for place in &ALL {
        if place.wanted.load(Ordering::SeqCst) & bit(signal) != 0 {
            place.come.fetch_or(bit(signal), Ordering::SeqCst);
            if let Some(event) = place.event.get() {
                // Tells by a full counter, at worst; and leaves errno alone.
                let _full = event.notify();
            }
        }
    }
}

impl Table {
    /// Gives a free place to a new owner, who wants `wanted`.
    fn take_place(&mut self, wanted: u64) -> Result<(usize, u64)> {
        let free =
            (0..PLACES).find(|&index| self.owners[index] == 0 && ALL[index].event.get().is_some());
        let index = free.ok_or(ErrorKind::QuotaExceeded)?;
        self.owners_so_far += 1;
        let owner = self.owners_so_far;
        ALL[index].come.store(0, Ordering::SeqCst);
        ALL[index].wanted.store(wanted, Ordering::SeqCst);
        self.owners[index] = owner;
        for signal in signals_of(wanted) {
            if let Err(error) = self.handle(signal) {
                self.free_place(index, owner);
                return Err(error);
            }
        }
        Ok((index, owner))
    }

    /// Installs the handler for `signal`, if nobody wanted it before.
    fn handle(&mut self, signal: Signal) -> Result<()> {
        let before = &mut self.before[signal.number() as usize - 1];
        if before.is_none() {
            let manner = Manner {
                on_alternate_stack: true,
                restart_calls: true,
                alone: true,
                reentrant: false,
            };
            // SAFETY: the handler sets bits and writes to event counters; it neither allocates nor locks.
            *before = Some(unsafe { install(signal, on_signal, manner) }?);
        }
        Ok(())
    }

    /// Takes the place back, and puts back what happened on signals that nobody wants now.
    fn free_place(&mut self, index: usize, owner: u64) {
        if self.owners[index] != owner {
            return;
        }
        self.owners[index] = 0;
        ALL[index].wanted.store(0, Ordering::SeqCst);
        let wanted = ALL.iter().fold(0, |all, place| all | place.wanted.load(Ordering::SeqCst));
        for signal in signals_of(!wanted) {
            if let Some(action) = self.before[signal.number() as usize - 1].take() {
                // SAFETY: it was in force before.
                let _restored = unsafe { restore(signal, &action) };
            }
        }
    }
}

/// Receives signals until it is dropped; a [`Receiver`], which [`select!`](crate::select!) takes as well.
pub struct Signals {
    receiver: Receiver<Signal>,
    place: usize,
    owner: u64,
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Makes `signals` arrive as messages, instead of what else they do, until the last who wants them is dropped.
///
/// While it lives somebody may come from outside, so that waiting is no deadlock.
///
/// # Errors
/// [`ErrorKind::InvalidInput`]: a signal that nobody may handle (`SIGKILL`, `SIGSTOP`), that tells of a fault where it
/// happens (`SIGSEGV` and its like), or that the runtime itself uses (`SIGURG`). [`ErrorKind::QuotaExceeded`]: 32 such
/// channels exist. No memory, no descriptors.
///
/// # Panics
/// The caller is no microprocess.
pub fn channel(signals: impl IntoIterator<Item = Signal>) -> Result<Signals> {
    let mut wanted = 0;
    for signal in signals {
        check(signal)?;
        wanted |= bit(signal);
    }
    make_events()?;
    let mut table = TABLE.enter();
    let taken = table.take_place(wanted);
    drop(table);
    let (place, owner) = taken?;
    let (sender, receiver) = bounded(QUEUED_MAX);
    let signals = Signals { receiver, place, owner };
    // On an error `signals` is dropped, and its place is free again.
    let forward = move || forward(place, owner, &sender);
    drop(Builder::new().name("signals").spawn(forward)?);
    Ok(signals)
}

/// Whether `signal` can be a message.
fn check(signal: Signal) -> Result<()> {
    let why = match signal.number() {
        libc::SIGKILL | libc::SIGSTOP => "nobody may handle it",
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP => {
            "it tells of a fault in the very code it interrupts"
        }
        libc::SIGURG => "the runtime preempts by it",
        _ => return Ok(()),
    };
    let message = format!("signal {} cannot be received: {why}", signal.number());
    Err(Error::new(ErrorKind::InvalidInput, message))
}

/// Makes an event counter for the first place that has none, unless a free place has one. Not inside the table: it allocates.
fn make_events() -> Result<()> {
    let table = TABLE.enter();
    let owners = table.owners;
    drop(table);
    let free = |index: &usize| owners[*index] == 0;
    if (0..PLACES).filter(free).any(|index| ALL[index].event.get().is_some()) {
        return Ok(());
    }
    if let Some(place) = ALL.iter().find(|place| place.event.get().is_none()) {
        // Somebody else may be faster: then theirs is kept.
        let _theirs = place.event.set(Event::new()?);
    }
    Ok(())
}

/// Sends what comes to `place` until that is no longer `owner`'s.
fn forward(place: usize, owner: u64, sender: &Sender<Signal>) {
    let Some(event) = ALL[place].event.get() else { return };
    loop {
        // An event counter can always be waited for and read; if a test says otherwise, look once more.
        let _ready = ready(event.as_fd(), Interest::Read, None);
        let _count = event.drain();
        let table = TABLE.enter();
        let is_ours = table.owners[place] == owner;
        let come = if is_ours { ALL[place].come.swap(0, Ordering::SeqCst) } else { 0 };
        drop(table);
        if !is_ours {
            // What woke us may have been for the next owner.
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
        TABLE.enter().free_place(self.place, self.owner);
        if let Some(event) = ALL[self.place].event.get() {
            // Who forwards finds that the place is its no more.
            let _full = event.notify();
        }
    }
}
