//! Restartable sequences that a signal handler of the program stands on.
//!
//! A profiler's handler interrupts a sequence; in that handler the thread is preempted, or sleeps in the kernel. The program counter
//! lies in the handler, and the sequence goes on in the middle when that returns. So the virtual processor must not change hands
//! meanwhile: a preemption is put off until the next one, a sleeper keeps its processor.
//!
//! ```text
//!   high   ├ frames of the program                     the kernel has saved the interrupted program counter somewhere here,
//!          ├ frame of the sequence                     on the stack where the handler runs
//!          ├ saved registers: pc in the sequence ◄──   one of these words
//!          ├ frames of the handler
//!   low    └ stack pointer
//! ```
//! Whatever the handler's flags (`SA_NODEFER`, `SA_ONSTACK`, any restorer), the saved program counter is a word of the stack above the
//! stack pointer. So each such word is looked at. A word that merely looks like one delays a preemption; sequences call nothing, so none is
//! a return address.
//!
//! Not seen is a sequence on a stack that is neither the microprocess's nor the kernel thread's.
#![expect(unsafe_code, reason = "reads the words of a stack that stands still")]

use core::ops::Range;

use kyocho_arch::restartable;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::Record;

/// Whether the microprocess of `record`, which `thread` carries and which stands still in user mode with stack pointer `sp`, would go on
/// in the middle of a sequence when it returns from signal handlers.
///
/// Call for the calling thread in a signal handler, or for one that sleeps behind a claim.
pub(crate) fn goes_on_in_the_middle(thread: &KernelThread, record: &Record, sp: usize) -> bool {
    let Some(stacks) = thread.stacks() else { return false };
    let stack = record.stack().unwrap_or_else(|| stacks.base_range());
    let handlers = stacks.handlers_range();
    let from = if handlers.contains(&sp) {
        if names_the_middle(sp..handlers.end) {
            return true;
        }
        // Among the words that point there is the stack pointer that was saved when the first handler began.
        match words(sp..handlers.end).filter(|word| stack.contains(word)).min() {
            Some(lowest) => lowest,
            None => return false,
        }
    } else {
        sp
    };
    stack.contains(&from) && names_the_middle(from..stack.end)
}

/// Whether one of the words is an address in the middle of a sequence. Two comparisons a word.
fn names_the_middle(range: Range<usize>) -> bool {
    let extent = restartable::extent();
    words(range).filter(|word| extent.contains(word)).any(restartable::is_in_the_middle)
}

/// The aligned words in a range of addresses, ascending.
fn words(range: Range<usize>) -> impl Iterator<Item = usize> {
    let first = range.start.next_multiple_of(size_of::<usize>());
    (first..range.end).step_by(size_of::<usize>()).map(|address| {
        let word = core::ptr::with_exposed_provenance::<usize>(address);
        // SAFETY: an aligned word of a stack, which is mapped for good; who owns it stands still, and any bits are a number.
        unsafe { word.read_volatile() }
    })
}

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests;
