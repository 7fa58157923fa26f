//! Rewinds restartable sequences that are hidden below a signal handler of the program.
//!
//! A profiler's signal handler interrupts a sequence. While the handler runs, the thread is
//! preempted or sleeps in the kernel. The program counter is then in the handler, but the sequence
//! would continue in the middle when the handler returns. Meanwhile the virtual processor may have
//! changed hands. So the program counter that the kernel has saved is moved back to the start of
//! the sequence, which then checks again whether its thread holds the virtual processor.
//!
//! ```text
//!   high   ├ frames of the program
//!          ├ frame of the sequence
//!          ├ registers that the kernel saved: stack pointer, program counter ◄── rewound, flags
//!          ├ frames of the handler
//!   low    └ stack pointer
//! ```
//! Whatever the handler's flags (`SA_NODEFER`, `SA_ONSTACK`, any restorer), the saved registers lie
//! on the stack, above the stack pointer, in one order. So each place of the stack is examined: a
//! program counter in a sequence, between [what the kernel saves with
//! it](kyocho_arch::is_beside_saved_pc).
//!
//! Registers that were saved earlier may still lie in a part of a live frame that nothing has
//! written since. They are rewound as well, which has no effect. A number that merely equals an
//! address in a sequence is left alone: a handler that has ended may have left one behind.
//!
//! # Limits
//! Not found is a sequence on, or a handler on, a stack that belongs neither to the microprocess nor
//! to the kernel thread. So a program must not replace the alternate signal stack of a kernel thread
//! of the runtime. Nor may a handler that interrupts a sequence call the runtime.
//!
//! A thread may sleep at a missing page while `rt_sigreturn` reads its frame. It is not taken then,
//! but detection by BPF does not notice in which call it sleeps.
#![expect(unsafe_code, reason = "reads and writes words of a stack whose thread stands still")]

use core::ops::Range;

use kyocho_arch::{is_beside_saved_pc, restartable};

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::Record;

/// Rewinds the sequences in whose middle the microprocess of `record` would continue when it
/// returns from its signal handlers; returns whether there was one. `thread` carries the
/// microprocess and executes no user code now; its user stack pointer is `sp`.
///
/// Call in a signal handler for the calling thread, or for a thread that was seen asleep with a
/// claim pending. Such a thread may wake up at any time. So if this returns true, the caller must
/// see it asleep again, and call this again.
pub(crate) fn rewind(thread: &KernelThread, record: &Record, sp: usize) -> bool {
    let Some(stacks) = thread.stacks() else { return false };
    let stack = record.stack().unwrap_or_else(|| stacks.base_range());
    let handlers = stacks.handlers_range();
    let mut found = false;
    let from = if handlers.contains(&sp) {
        found |= rewind_saved(sp..handlers.end);
        // One of the words that point into the stack is the stack pointer saved when the first
        // handler began.
        match words(sp..handlers.end).map(read).filter(|word| stack.contains(word)).min() {
            Some(lowest) => lowest,
            None => return found,
        }
    } else {
        sp
    };
    if stack.contains(&from) {
        found |= rewind_saved(from..stack.end);
    }
    found
}

/// Rewinds the saved program counters in this part of a stack that lie in the middle of a sequence;
/// returns whether there was one. Makes two comparisons for most words.
fn rewind_saved(stack: Range<usize>) -> bool {
    const WORD: usize = size_of::<usize>();
    let extent = restartable::extent();
    let mut found = false;
    let end = stack.end.saturating_sub(2 * WORD);
    for address in words(stack.start + WORD..end) {
        let pc = read(address);
        if !extent.contains(&pc) || !restartable::is_in_the_middle(pc) {
            continue;
        }
        let around = [address - WORD, address + WORD, address + 2 * WORD].map(read);
        if let Some(start) = restartable::rewind(pc).filter(|_| is_beside_saved_pc(around)) {
            replace(address, pc, start);
            found = true;
        }
    }
    found
}

/// Replaces a word of a stack, unless it has changed. The thread may have woken up since the word
/// was read, and may use it for something else.
fn replace(address: usize, expected: usize, new: usize) {
    let word = core::ptr::with_exposed_provenance_mut::<usize>(address);
    // SAFETY: an aligned word of a stack, which is never unmapped. Other threads only read it.
    let word = unsafe { AtomicUsize::from_ptr(word) };
    // A word that has changed is no longer a program counter that was saved.
    let _changed = word.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
}

/// The addresses of the aligned words in a range of addresses, in ascending order.
fn words(range: Range<usize>) -> impl Iterator<Item = usize> {
    let first = range.start.next_multiple_of(size_of::<usize>());
    (first..range.end).step_by(size_of::<usize>())
}

/// The word of a stack at `address`, which is aligned.
fn read(address: usize) -> usize {
    let word = core::ptr::with_exposed_provenance::<usize>(address);
    // SAFETY: an aligned word of a stack, which is never unmapped. The thread that uses the stack
    // stands still, or the word is read again later. Any bits are a valid number.
    unsafe { word.read_volatile() }
}

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests;
