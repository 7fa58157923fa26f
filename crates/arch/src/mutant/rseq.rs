//! Sequences of Linux's kind that break a rule each.
//!
//! | mutant | fault | consequence |
//! |---|---|---|
//! | [`test_and_set_twice`] | commits by two stores | aborted between them, it finds its own mark |
//! | [`fetch_add_unwatched`] | tells the kernel nothing, so there is no abort | an addition is lost |
//! | [`fetch_add_ends_early`] | its post-commit lies before the commit | the same |
//! | [`fetch_add_ends_late`] | its post-commit lies after an instruction too many | aborted there, it adds twice |
#![expect(unsafe_code, reason = "operations on raw words")]

use crate::isa::rseq::mutants as isa;
use crate::restartable::NotHeld;
use crate::rseq::{Cpu, Sequence};

/// All of them.
#[must_use]
pub fn sequences() -> &'static [Sequence] {
    isa::sequences()
}

/// `test_and_set` that commits twice.
///
/// # Errors
/// The thread does not run on `cpu`. The same holds below.
///
/// # Safety
/// As for [`restartable::test_and_set`](crate::restartable::test_and_set), whose guarantee it then
/// breaks. The same holds below.
pub unsafe fn test_and_set_twice(cpu: Cpu, word: *mut u32) -> Result<bool, NotHeld> {
    let inputs = [word as usize, 0, 0];
    // SAFETY: guaranteed by the caller.
    let outcome = unsafe { isa::test_and_set_twice(cpu.number() as usize, inputs) };
    outcome.answer().map(|old| old != 0)
}

/// A `fetch_add` that the kernel does not abort.
///
/// # Errors
/// The thread does not run on `cpu`.
///
/// # Safety
/// As for [`test_and_set_twice`].
pub unsafe fn fetch_add_unwatched(
    cpu: Cpu,
    word: *mut usize,
    addend: usize,
) -> Result<usize, NotHeld> {
    let inputs = [word as usize, addend, 0];
    // SAFETY: guaranteed by the caller.
    unsafe { isa::fetch_add_unwatched(cpu.number() as usize, inputs) }.answer()
}

/// A `fetch_add` whose post-commit address lies before its commit.
///
/// # Errors
/// The thread does not run on `cpu`.
///
/// # Safety
/// As for [`test_and_set_twice`].
pub unsafe fn fetch_add_ends_early(
    cpu: Cpu,
    word: *mut usize,
    addend: usize,
) -> Result<usize, NotHeld> {
    let inputs = [word as usize, addend, 0];
    // SAFETY: guaranteed by the caller.
    unsafe { isa::fetch_add_ends_early(cpu.number() as usize, inputs) }.answer()
}

/// A `fetch_add` whose post-commit address lies after the instruction that follows its commit.
///
/// # Errors
/// The thread does not run on `cpu`.
///
/// # Safety
/// As for [`test_and_set_twice`].
pub unsafe fn fetch_add_ends_late(
    cpu: Cpu,
    word: *mut usize,
    addend: usize,
) -> Result<usize, NotHeld> {
    let inputs = [word as usize, addend, 0];
    // SAFETY: guaranteed by the caller.
    unsafe { isa::fetch_add_ends_late(cpu.number() as usize, inputs) }.answer()
}
