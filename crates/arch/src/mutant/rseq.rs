//! Sequences of Linux's kind that break a rule each.
//!
//! | mutant | breach | what goes wrong |
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
/// The thread does not run on `cpu`; so below.
///
/// # Safety
/// As for [`restartable::test_and_set`](crate::restartable::test_and_set), whose promise it then breaks; so below.
pub unsafe fn test_and_set_twice(cpu: Cpu, word: *mut u32) -> Result<bool, NotHeld> {
    let inputs = [word as usize, 0, 0];
    // SAFETY: the caller's promise.
    let outcome = unsafe { isa::test_and_set_twice(cpu.number() as usize, inputs) };
    outcome.answer().map(|old| old != 0)
}

/// `fetch_add` that the kernel does not know of.
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
    // SAFETY: the caller's promise.
    unsafe { isa::fetch_add_unwatched(cpu.number() as usize, inputs) }.answer()
}

/// `fetch_add` whose post-commit lies before its commit.
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
    // SAFETY: the caller's promise.
    unsafe { isa::fetch_add_ends_early(cpu.number() as usize, inputs) }.answer()
}

/// `fetch_add` whose post-commit lies behind the instruction after its commit.
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
    // SAFETY: the caller's promise.
    unsafe { isa::fetch_add_ends_late(cpu.number() as usize, inputs) }.answer()
}
