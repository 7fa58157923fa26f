//! Stacks of kernel threads: one for the dispatching loop and for stackless steps, one for signal handlers.
//!
//! ```text
//!   ├ guard ┼ handlers, 64 KiB ┼ guard ┼ base, 8 MiB ◄── ┤     untouched pages cost nothing
//! ```
//!
//! Like the slots of microprocesses they are cut from large reservations and used again, so that starting a kernel thread
//! maps and protects nothing: that is half the cost of starting one, and a thousand may be wanted at a moment.
#![expect(unsafe_code, reason = "cuts memory into stacks")]

use core::ops::Range;
use core::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::memory::{self, PAGE_BYTES};

use crate::processor::instruments::register_stack;

/// Stack of signal handlers: a preempted microprocess waits there.
pub(crate) const HANDLER_BYTES: usize = 64 << 10;
/// Stack of the dispatching loop and of stackless steps.
pub(crate) const BASE_BYTES: usize = 8 << 20;
const STRIDE: usize = BASE_BYTES + HANDLER_BYTES + 2 * PAGE_BYTES;
/// Stacks of one reservation; half of it is tried where the address space is limited.
const STACKS_MAX: usize = 128;

/// Two stacks of one kernel thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelStack(NonNull<u8>);

// SAFETY: the address of memory that belongs to whoever holds this.
unsafe impl Send for KernelStack {}

/// Stacks that nobody uses, and the part of a reservation that is not cut yet.
struct Store {
    free: Vec<KernelStack>,
    rest: Option<(NonNull<u8>, usize)>,
}

static STORE: Mutex<Store> = Mutex::new(Store { free: Vec::new(), rest: None });

// SAFETY: addresses of memory that belongs to the store.
unsafe impl Send for Store {}

impl KernelStack {
    /// Stacks that nobody uses. Allocates.
    pub(crate) fn take() -> Result<Self, Errno> {
        let mut store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stack) = store.free.pop() {
            return Ok(stack);
        }
        let (start, count) = match store.rest.take() {
            Some(rest) => rest,
            None => reserve()?,
        };
        // SAFETY: the reservation has `count` strides from `start` on.
        let next = unsafe { start.add(STRIDE) };
        store.rest = (count > 1).then_some((next, count - 1));
        let stack = Self(start);
        // SAFETY: the page is ours and empty.
        unsafe { memory::guard_page(start) }?;
        // SAFETY: inside the stride.
        let between = unsafe { start.add(PAGE_BYTES + HANDLER_BYTES) };
        // SAFETY: the page is ours and empty.
        unsafe { memory::guard_page(between) }?;
        for (lowest, bytes) in [(stack.handlers(), HANDLER_BYTES), (stack.base(), BASE_BYTES)] {
            register_stack(lowest.addr().get(), lowest.addr().get() + bytes);
        }
        Ok(stack)
    }

    /// For the next kernel thread. The last one has ended.
    pub(crate) fn give_back(self) {
        STORE.lock().unwrap_or_else(PoisonError::into_inner).free.push(self);
    }

    /// The lowest address of the handlers' stack.
    pub(crate) fn handlers(self) -> NonNull<u8> {
        // SAFETY: inside the stride.
        unsafe { self.0.add(PAGE_BYTES) }
    }

    /// The addresses of the handlers' stack.
    pub(crate) fn handlers_range(self) -> Range<usize> {
        let start = self.handlers().as_ptr().expose_provenance();
        start..start + HANDLER_BYTES
    }

    /// The addresses of the base stack.
    pub(crate) fn base_range(self) -> Range<usize> {
        let start = self.base().as_ptr().expose_provenance();
        start..start + BASE_BYTES
    }

    /// The lowest address of the base stack.
    pub(crate) fn base(self) -> NonNull<u8> {
        // SAFETY: inside the stride.
        unsafe { self.0.add(2 * PAGE_BYTES + HANDLER_BYTES) }
    }
}

fn reserve() -> Result<(NonNull<u8>, usize), Errno> {
    let mut count = STACKS_MAX;
    loop {
        match memory::reserve(count * STRIDE) {
            Ok(start) => return Ok((start, count)),
            Err(_) if count > 1 => count /= 2,
            Err(errno) => return Err(errno),
        }
    }
}
