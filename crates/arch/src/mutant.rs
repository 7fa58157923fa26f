//! Faulty sequences, each breaking a rule, for tests that must detect it. Only with the feature
//! `mutants`.
//!
//! | mutant | fault | consequence |
//! |---|---|---|
//! | [`test_and_set_twice`] | commits by two stores | if restarted between them, it finds its own mark and reports the word as taken (Paper 0, figure 8) |
//! | [`enqueue_tail_first`] | commits before it has linked | if restarted in between, it links the node to itself |
//! | [`test_and_set_unregistered`] | is in no table, so it is not restarted | two threads get the lock |
//! | [`fetch_add_unregistered`] | the same | an addition is lost |
#![expect(unsafe_code, reason = "operations on raw words")]

#[cfg(target_arch = "x86_64")]
pub mod rseq;

use core::ptr::NonNull;

use crate::isa::mutants as isa;
use crate::restartable::{Fifo, Link, NotHeld, Offsets, Range, ranges_of};

/// Number of mutants that a handler restarts: the first ones of the table.
const REGISTERED: usize = 2;

/// The bytes that a trap has replaced.
#[derive(Debug, Clone, Copy)]
pub struct Hidden([u8; isa::BREAKPOINT.len()]);

/// Replaces the instruction at `address` by a breakpoint, so that a test is interrupted exactly
/// there.
///
/// # Safety
/// An instruction starts there, its page is writable, and no other thread executes it now.
#[must_use]
pub unsafe fn lay_trap(address: usize) -> Hidden {
    // SAFETY: guaranteed by the caller.
    Hidden(unsafe { exchange_instruction(address, isa::BREAKPOINT) })
}

/// Restores the instruction that a trap has replaced.
///
/// # Safety
/// As for [`lay_trap`], for the address it was given.
pub unsafe fn lift_trap(address: usize, hidden: Hidden) {
    // SAFETY: guaranteed by the caller.
    unsafe { exchange_instruction(address, hidden.0) };
}

/// Address of the trap that reports this PC.
#[must_use]
pub const fn trap_of(pc: usize) -> usize {
    pc - isa::PC_AFTER_BREAKPOINT
}

/// # Safety
/// As for [`lay_trap`].
unsafe fn exchange_instruction<const N: usize>(address: usize, new: [u8; N]) -> [u8; N] {
    let at = core::ptr::with_exposed_provenance_mut::<[u8; N]>(address);
    // SAFETY: guaranteed by the caller.
    let old = unsafe { at.read_volatile() };
    // SAFETY: as above.
    unsafe { at.write_volatile(new) };
    // SAFETY: mapped, as above.
    unsafe { isa::publish(address) };
    old
}

unsafe extern "C" {
    static kyocho_mutants_begin: u8;
    static kyocho_mutants_table: Offsets;
    static kyocho_mutants_table_end: Offsets;
}

/// All mutants, registered or not.
pub fn ranges() -> impl Iterator<Item = Range> {
    let begin = &raw const kyocho_mutants_begin;
    let table = [&raw const kyocho_mutants_table, &raw const kyocho_mutants_table_end];
    // SAFETY: the assembler laid out the table between its labels.
    unsafe { ranges_of(begin, table) }
}

/// As [`restartable::rewind`](crate::restartable::rewind), for the mutants that are registered.
#[must_use]
pub fn rewind(pc: usize) -> Option<usize> {
    ranges().take(REGISTERED).find(|range| range.contains(pc)).map(|range| range.start)
}

/// `test_and_set` that commits twice.
///
/// # Errors
/// The thread does not hold `vp`. The same holds below.
///
/// # Safety
/// As for [`restartable::test_and_set`](crate::restartable::test_and_set), whose guarantee it then
/// breaks. The same holds below.
pub unsafe fn test_and_set_twice(vp: NonNull<()>, word: *mut u32) -> Result<bool, NotHeld> {
    // SAFETY: guaranteed by the caller.
    unsafe { isa::test_and_set_twice(vp.as_ptr() as usize, [word as usize, 0, 0]) }
        .answer()
        .map(|old| old != 0)
}

/// `enqueue` that moves the tail first.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`restartable::enqueue`](crate::restartable::enqueue).
pub unsafe fn enqueue_tail_first(
    vp: NonNull<()>,
    queue: *mut Fifo,
    node: *mut Link,
) -> Result<(), NotHeld> {
    // SAFETY: guaranteed by the caller.
    let outcome = unsafe {
        isa::enqueue_tail_first(vp.as_ptr() as usize, [queue as usize, node as usize, 0])
    };
    outcome.answer().map(|_| ())
}

/// A `test_and_set` that is not restarted.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`test_and_set_twice`].
pub unsafe fn test_and_set_unregistered(vp: NonNull<()>, word: *mut u32) -> Result<bool, NotHeld> {
    // SAFETY: guaranteed by the caller.
    unsafe { isa::test_and_set_unregistered(vp.as_ptr() as usize, [word as usize, 0, 0]) }
        .answer()
        .map(|old| old != 0)
}

/// A `fetch_add` that is not restarted.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`restartable::fetch_add`](crate::restartable::fetch_add).
pub unsafe fn fetch_add_unregistered(
    vp: NonNull<()>,
    word: *mut usize,
    addend: usize,
) -> Result<usize, NotHeld> {
    // SAFETY: guaranteed by the caller.
    unsafe { isa::fetch_add_unregistered(vp.as_ptr() as usize, [word as usize, addend, 0]) }
        .answer()
}
