//! A critical section entered by a system call (Paper 0, §1.3, method 2).
//!
//! The paper's kernel does the test-and-set itself (`sysmips`). Linux has one call that tests and sets a word of the caller: the
//! one that tries a priority-inheriting futex. Leaving is a store, as there.
#![expect(unsafe_code, reason = "promises exclusion")]

use kyocho_sys::futex::try_take;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::scheduling::yield_to_host;

use crate::contract::{Everywhere, Refusal};
use crate::section::Section;

/// Exclusion between all threads, by one system call an operation: 100 to 300 ns. Who finds it taken yields to the host.
#[derive(Debug, Default)]
pub struct SystemCall {
    word: AtomicU32,
}

impl SystemCall {
    /// A section that nobody is in.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }
}

// SAFETY: the kernel gives the word, while it is 0, to one caller, and only who has it stores 0.
unsafe impl Section for SystemCall {
    const NAME: &'static str = "system call";
    type Ticket = ();

    #[inline]
    fn enter(&self) -> Result<(), Refusal> {
        while !try_take(&self.word) {
            yield_to_host();
        }
        Ok(())
    }

    #[inline]
    fn leave(&self, (): ()) {
        self.word.store(0, Ordering::Release);
    }
}

// SAFETY: the kernel knows every thread.
unsafe impl Everywhere for SystemCall {}
