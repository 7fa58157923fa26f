//! A critical section entered by a system call (Paper 0, §1.3, method 2).
//!
//! The paper's kernel performs the test-and-set itself (`sysmips`). Linux has one call that tests
//! and sets a word of the caller: trying to lock a priority-inheriting futex. Leaving is a plain
//! store, as in the paper.
#![expect(unsafe_code, reason = "promises exclusion")]

use kyocho_sys::futex::try_take;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::scheduling::yield_to_host;

use crate::contract::{Everywhere, Refusal};
use crate::section::Section;

/// Exclusion between all threads. Costs one system call for each operation, 100 to 300 ns. A thread
/// that finds the section taken yields to the host.
#[derive(Debug, Default)]
pub struct SystemCall {
    word: AtomicU32,
}

impl SystemCall {
    /// A free section.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }
}

// SAFETY: the kernel gives the word to one caller while it is 0, and only the holder stores 0.
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

// SAFETY: the kernel serves every thread.
unsafe impl Everywhere for SystemCall {}
