//! Postpones a preemption that interrupts the C library, since locks of the library are likely to
//! be held there.
//!
//! A preempted microprocess waits in its signal handler, and keeps the locks that it holds. If one
//! of them is a lock of the allocator, each kernel thread that allocates from the same arena waits
//! for the microprocess. The maker may be among these threads, and then makes no spare kernel
//! thread. In that case the reserve of the [pool](crate::processor::pool) takes a virtual processor
//! from a holder that sleeps, and passes it to the microprocess. So every thread continues, but
//! late.
//!
//! Calls of the C library are short, so the preemption is postponed to the next check of the
//! monitor. A call that computes for long is preempted after [`PUT_OFFS_MAX`] postponements in a
//! row. An allocator elsewhere, in the program or in another library, postpones nothing.

use std::fs;
use std::sync::OnceLock;

use core::ops::Range;

use crate::processor::code_map;
use crate::processor::kernel_thread::KernelThread;

/// The most interruptions in a row that are postponed because the kernel thread is in the C
/// library. A thread that spends half its time in the allocator reaches this once in some 60,000
/// preemptions.
const PUT_OFFS_MAX: u32 = 16;

/// Names of the files with the code of the C library and of the dynamic linker, without their
/// versions.
const FILES: [&str; 5] = ["libc.so", "libc-2.", "ld-linux", "ld-2.", "ld-musl"];

/// The address ranges of that code. Not known if the program is linked statically.
static CODE: OnceLock<Vec<Range<usize>>> = OnceLock::new();

/// Finds the code of the C library. Reads a file: call outside signal handlers.
pub(crate) fn prepare() {
    if let Ok(maps) = fs::read_to_string("/proc/self/maps") {
        // If an earlier runtime set it, the value is the same.
        let _same = CODE.set(code_of(&maps));
    }
}

/// Whether to postpone the preemption of `thread`, which was interrupted at `pc`. Call in its
/// signal handler.
pub(crate) fn postpones(thread: &KernelThread, pc: usize) -> bool {
    let inside = CODE.get().is_some_and(|code| code.iter().any(|range| range.contains(&pc)));
    let count = next(thread.put_offs.get(), inside);
    thread.put_offs.set(count);
    count > 0
}

/// The number of postponements in a row, after one more interruption. `inside`: it was inside the C
/// library.
fn next(count: u32, inside: bool) -> u32 {
    if inside && count < PUT_OFFS_MAX { count + 1 } else { 0 }
}

/// The code of the C library and of the dynamic linker, from the text of `/proc/self/maps`.
fn code_of(maps: &str) -> Vec<Range<usize>> {
    let is_one = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        FILES.iter().any(|name| file.starts_with(name))
    };
    code_map::code_in(maps).filter(|(_, path)| is_one(path)).map(|(range, _)| range).collect()
}

#[cfg(test)]
mod tests;
