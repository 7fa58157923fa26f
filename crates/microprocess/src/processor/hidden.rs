//! Detects restartable sequences that are hidden below a signal handler of the program.
//!
//! A profiler's signal handler interrupts a sequence. While the handler runs, the thread is
//! preempted or sleeps in the kernel. The program counter is then in the handler, but the sequence
//! continues in the middle when the handler returns. So the virtual processor must not change hands
//! meanwhile. A preemption is postponed to the next one; a sleeper keeps its virtual processor.
//!
//! ```text
//!   high   ├ frames of the program                     the kernel has saved the interrupted program counter
//!          ├ frame of the sequence                     on the stack where the handler runs
//!          ├ saved registers: pc in the sequence ◄──   one of these words
//!          ├ frames of the handler
//!   low    └ stack pointer
//! ```
//! Whatever the handler's flags (`SA_NODEFER`, `SA_ONSTACK`, any restorer), the saved program
//! counter is a word on the stack, above the stack pointer. So each such word is checked. A word
//! that equals an address in a sequence by chance only delays a preemption. Sequences make no
//! calls, so no return address is such a word.
//!
//! A sequence on a stack that belongs neither to the microprocess nor to the kernel thread is not
//! detected.
#![expect(unsafe_code, reason = "reads the words of a stack whose thread stands still")]

use core::ops::Range;

use kyocho_arch::restartable;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::Record;

/// Whether the microprocess of `record` would continue in the middle of a sequence when it returns
/// from its signal handlers. `thread` carries the microprocess and executes no user code now; its
/// user stack pointer is `sp`.
///
/// Call in a signal handler for the calling thread, or for a sleeping thread with a claim pending.
pub(crate) fn continues_in_a_sequence(thread: &KernelThread, record: &Record, sp: usize) -> bool {
    let Some(stacks) = thread.stacks() else { return false };
    let stack = record.stack().unwrap_or_else(|| stacks.base_range());
    let handlers = stacks.handlers_range();
    let from = if handlers.contains(&sp) {
        if contains_sequence_address(sp..handlers.end) {
            return true;
        }
        // One of the words that point into the stack is the stack pointer saved when the first
        // handler began.
        match words(sp..handlers.end).filter(|word| stack.contains(word)).min() {
            Some(lowest) => lowest,
            None => return false,
        }
    } else {
        sp
    };
    stack.contains(&from) && contains_sequence_address(from..stack.end)
}

/// Whether one of the words is an address in the middle of a sequence. Makes two comparisons for
/// most words.
fn contains_sequence_address(range: Range<usize>) -> bool {
    let extent = restartable::extent();
    words(range).filter(|word| extent.contains(word)).any(restartable::is_in_the_middle)
}

/// The aligned words in a range of addresses, in ascending order.
fn words(range: Range<usize>) -> impl Iterator<Item = usize> {
    let first = range.start.next_multiple_of(size_of::<usize>());
    (first..range.end).step_by(size_of::<usize>()).map(|address| {
        let word = core::ptr::with_exposed_provenance::<usize>(address);
        // SAFETY: an aligned word of a stack, which is never unmapped. The thread that uses the
        // stack stands still. Any bits are a valid number.
        unsafe { word.read_volatile() }
    })
}

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests;
