//! Stacks of kernel threads: one for the dispatching loop and for stackless steps, one for signal
//! handlers.
//!
//! ```text
//!   ├ guard ┼ handlers, 64 KiB ┼ guard ┼ base, 8 MiB ◄── ┤     untouched pages cost nothing
//! ```
//!
//! Like the slots of microprocesses, they are cut from large reservations and used again. So
//! starting a kernel thread maps and protects nothing, which would be half the cost of a start. A
//! thousand may be needed at once.
#![expect(unsafe_code, reason = "cuts memory into stacks")]

use core::ops::Range;
use core::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::memory::{self, PAGE_BYTES};

use crate::processor::instruments::register_stack;

/// Size of the stack for signal handlers, where a preempted microprocess waits.
pub(crate) const HANDLER_BYTES: usize = 64 << 10;
/// Size of the stack for the dispatching loop and for stackless steps.
pub(crate) const BASE_BYTES: usize = 8 << 20;
const STRIDE: usize = BASE_BYTES + HANDLER_BYTES + 2 * PAGE_BYTES;
/// Number of stacks in one reservation. If the address space is limited, half as many are tried.
const STACKS_MAX: usize = 128;

/// The two stacks of one kernel thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelStack(NonNull<u8>);

// SAFETY: the address of memory that belongs to the owner of this value.
unsafe impl Send for KernelStack {}

/// Unused stacks, and the part of a reservation that is not divided yet.
struct Store {
    free: Vec<KernelStack>,
    rest: Option<(NonNull<u8>, usize)>,
}

static STORE: Mutex<Store> = Mutex::new(Store { free: Vec::new(), rest: None });

// SAFETY: addresses of memory that belongs to the store.
unsafe impl Send for Store {}

impl KernelStack {
    /// Unused stacks for a kernel thread. Allocates.
    pub(crate) fn take() -> Result<Self, Errno> {
        let mut store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stack) = store.free.pop() {
            return Ok(stack);
        }
        let (start, count) = match store.rest.take() {
            Some(rest) => rest,
            None => reserve()?,
        };
        // SAFETY: the reservation has `count` strides, beginning at `start`.
        let next = unsafe { start.add(STRIDE) };
        store.rest = (count > 1).then_some((next, count - 1));
        let stack = Self(start);
        // SAFETY: the page belongs to this stack and is unused.
        unsafe { memory::guard_page(start) }?;
        // SAFETY: inside the stride.
        let between = unsafe { start.add(PAGE_BYTES + HANDLER_BYTES) };
        // SAFETY: the page belongs to this stack and is unused.
        unsafe { memory::guard_page(between) }?;
        for (lowest, bytes) in [(stack.handlers(), HANDLER_BYTES), (stack.base(), BASE_BYTES)] {
            register_stack(lowest.addr().get(), lowest.addr().get() + bytes);
        }
        Ok(stack)
    }

    /// Returns the stacks for use by another kernel thread. The one that used them has ended.
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
