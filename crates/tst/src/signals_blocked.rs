//! A critical section with all signals blocked: what a user program has in place of `di` and `ei`
//! (Paper 0, §1.3, method 1).
//!
//! Without signals no preemption handler runs, so no other microprocess of the virtual processor
//! runs. A kernel thread can still be preempted. So this excludes kernel threads only if they share
//! a CPU in one real-time class.
#![expect(unsafe_code, reason = "promises exclusion")]

use kyocho_sys::signal::AllBlocked;

use crate::contract::Refusal;
use crate::section::Section;

/// Exclusion between the calling thread and its signal handlers. Costs two system calls for each
/// operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignalsBlocked;

// SAFETY: nothing interrupts the thread while its signals are blocked, except a preemption of its
// CPU, which this does not exclude.
unsafe impl Section for SignalsBlocked {
    const NAME: &'static str = "signals blocked";
    type Ticket = AllBlocked;

    #[inline]
    fn enter(&self) -> Result<AllBlocked, Refusal> {
        Ok(AllBlocked::new())
    }

    #[inline]
    fn leave(&self, blocked: AllBlocked) {
        drop(blocked);
    }
}
