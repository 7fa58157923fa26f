//! Faults in watched memory, handled on the thread that had them.
//!
//! ```text
//!   load or store ─> SIGSEGV or SIGBUS ─> handler: which memory? ─> Faulting::fault ─> return
//!                                            │ none of ours                     repeats the access
//!                                            └─> what the signal did before
//! ```
//!
//! The handler serves only faults of accesses to watched memory, which are synchronous. It forwards
//! all others. So it may do what code with such accesses may do, for example allocate. A thread
//! that accesses watched memory must not hold a lock that the handler takes. The runtime accesses
//! these pages through a second mapping that is never protected.
#![expect(unsafe_code, reason = "handles signals")]

use core::ffi::c_void;
use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::unmodelled::{AtomicPtr, AtomicUsize, Ordering};
use kyocho_sys::signal::{self, Action, HandlerOptions, Info, Signal};

use crate::region::REGIONS_MAX;

/// Handles the faults of one memory.
pub trait Faulting: Send + Sync {
    /// Handles an access at this offset.
    fn fault(&self, offset: usize) -> Answer;
}

/// How to continue after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Repeat the access.
    Again,
    /// The fault is not ours: do what the signal did before.
    Forward,
}

/// Memories of one process, at most: mostly those of one node, one per region.
const MEMORIES_MAX: usize = 4 * REGIONS_MAX;

/// A memory whose faults are handled.
struct Slot {
    base: AtomicUsize,
    /// 0: free.
    bytes: AtomicUsize,
    answerer: AtomicPtr<Arc<dyn Faulting>>,
}

static SLOTS: [Slot; MEMORIES_MAX] = [const {
    Slot {
        base: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        answerer: AtomicPtr::new(core::ptr::null_mut()),
    }
}; MEMORIES_MAX];

/// All slots that were ever used have a lower index, so handlers look no further.
static SLOTS_END: AtomicUsize = AtomicUsize::new(0);

/// The earlier actions of both signals. They are never freed, because handlers read them. The lock
/// also protects changes of slots.
static BEFORE: Mutex<Option<&'static [Action; 2]>> = Mutex::new(None);
static FORWARD: AtomicPtr<[Action; 2]> = AtomicPtr::new(core::ptr::null_mut());

const SIGNALS: [Signal; 2] = [Signal::SEGV, Signal::BUS];

/// A memory whose faults are handled until this is dropped, by the threads that have them.
pub struct Guarded {
    slot: &'static Slot,
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("base", &self.slot.base).finish_non_exhaustive()
    }
}

impl Guarded {
    /// Handles faults in `[base, base + bytes)`.
    ///
    /// # Errors
    /// `NOMEM`: there are four times [`REGIONS_MAX`] memories already. Those of the host, if it
    /// refuses a signal handler.
    pub fn new(base: usize, bytes: usize, answerer: Arc<dyn Faulting>) -> Result<Self, Errno> {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if before.is_none() {
            *before = Some(install()?);
        }
        let free = SLOTS.iter().position(|slot| slot.bytes.load(Ordering::Relaxed) == 0);
        let place = free.ok_or(Errno::NOMEM)?;
        let slot = &SLOTS[place];
        slot.base.store(base, Ordering::Release);
        slot.answerer.store(Box::into_raw(Box::new(answerer)), Ordering::Relaxed);
        slot.bytes.store(bytes, Ordering::Release);
        SLOTS_END.fetch_max(place + 1, Ordering::Release);
        Ok(Self { slot })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _changing = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        // No handler runs for this memory any more, so the order does not matter.
        let answerer = self.slot.answerer.swap(core::ptr::null_mut(), Ordering::Relaxed);
        self.slot.base.store(usize::MAX, Ordering::Relaxed);
        self.slot.bytes.store(0, Ordering::Release);
        // SAFETY: made by `Box::into_raw` in `new`, and taken out of the slot just now.
        drop(unsafe { Box::from_raw(answerer) });
    }
}

fn install() -> Result<&'static [Action; 2], Errno> {
    // On an alternate stack: the program's stack may be nearly full at a fault.
    let manner = HandlerOptions { on_alternate_stack: true, ..HandlerOptions::default() };
    // SAFETY: the handler answers for accesses to watched memory alone (the file's begin) and
    // forwards everything else.
    let segv = unsafe { signal::install(Signal::SEGV, handler, manner) }?;
    // SAFETY: as above.
    let bus = match unsafe { signal::install(Signal::BUS, handler, manner) } {
        Ok(bus) => bus,
        Err(errno) => {
            // SAFETY: what was there a moment ago.
            let _restored = unsafe { signal::restore(Signal::SEGV, &segv) };
            return Err(errno);
        }
    };
    let before: &'static [Action; 2] = Box::leak(Box::new([segv, bus]));
    FORWARD.store(core::ptr::from_ref(before).cast_mut(), Ordering::Release);
    Ok(before)
}

unsafe extern "C" fn handler(number: i32, info: *mut Info, context: *mut c_void) {
    // SAFETY: the kernel filled it for this signal.
    let cause = unsafe { &*info };
    // SAFETY: both signals carry an address.
    let address = unsafe { cause.si_addr() } as usize;
    if signal::preserving_errno(|| answer(address)) == Answer::Again {
        return;
    }
    let before = FORWARD.load(Ordering::Acquire);
    let place = usize::from(number == Signal::BUS.number());
    // SAFETY: null, or leaked by `install`.
    if let Some(before) = unsafe { before.as_ref() } {
        // SAFETY: inside a handler of this signal, with the arguments it got.
        unsafe { before[place].forward(SIGNALS[place], info, context) };
    }
}

fn answer(address: usize) -> Answer {
    for slot in &SLOTS[..SLOTS_END.load(Ordering::Acquire)] {
        let bytes = slot.bytes.load(Ordering::Acquire);
        let base = slot.base.load(Ordering::Acquire);
        let offset = address.wrapping_sub(base);
        // Another memory may reuse the slot meanwhile; its length is 0 in between.
        if offset >= bytes || slot.bytes.load(Ordering::Acquire) != bytes {
            continue;
        }
        // SAFETY: a slot with bytes has a handler until its `Guarded` is dropped; code that
        // accesses its memory borrows the owner of that.
        let answerer = unsafe { &*slot.answerer.load(Ordering::Relaxed) };
        return answerer.fault(offset);
    }
    Answer::Forward
}
