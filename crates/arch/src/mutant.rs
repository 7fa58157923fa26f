//! Sequences that break a rule each, for tests that must see the breach. Only with the feature `mutants`.
//!
//! | mutant | breach | what goes wrong |
//! |---|---|---|
//! | [`test_and_set_twice`] | commits by two stores | restarted between them, it finds its own mark and reports the word as taken (Paper 0, figure 8) |
//! | [`enqueue_tail_first`] | commits before it has linked | restarted in between, it links the node to itself |
//! | [`test_and_set_unregistered`] | is in no table, so nobody restarts it | two get the lock |
//! | [`fetch_add_unregistered`] | the same | an addition is lost |
#![expect(unsafe_code, reason = "operations on raw words")]

#[cfg(target_arch = "x86_64")]
pub mod rseq;

use core::ptr::NonNull;

use crate::isa::mutants as isa;
use crate::restartable::{Fifo, Link, NotHeld, Offsets, Range, ranges_of};

/// How many of the mutants a handler restarts: the first ones of the table.
const REGISTERED: usize = 2;

/// What a trap hides.
#[derive(Debug, Clone, Copy)]
pub struct Hidden([u8; isa::BREAKPOINT.len()]);

/// Lays a break-point trap over the instruction at `address`, so that a test interrupts exactly there.
///
/// # Safety
/// An instruction begins there, its page is writable, and no other thread executes it now.
#[must_use]
pub unsafe fn lay_trap(address: usize) -> Hidden {
    // SAFETY: the caller's promise.
    Hidden(unsafe { exchange_instruction(address, isa::BREAKPOINT) })
}

/// Puts back what a trap has hidden.
///
/// # Safety
/// As for [`lay_trap`], for the address it was given.
pub unsafe fn lift_trap(address: usize, hidden: Hidden) {
    // SAFETY: the caller's promise.
    unsafe { exchange_instruction(address, hidden.0) };
}

/// Where the trap lies that reports with this PC.
#[must_use]
pub const fn trap_of(pc: usize) -> usize {
    pc - isa::PC_AFTER_BREAKPOINT
}

/// # Safety
/// As for [`lay_trap`].
unsafe fn exchange_instruction<const N: usize>(address: usize, new: [u8; N]) -> [u8; N] {
    let at = core::ptr::with_exposed_provenance_mut::<[u8; N]>(address);
    // SAFETY: the caller's promise.
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
/// The thread does not hold `vp`; so below.
///
/// # Safety
/// As for [`restartable::test_and_set`](crate::restartable::test_and_set), whose promise it then breaks; so below.
pub unsafe fn test_and_set_twice(vp: NonNull<()>, word: *mut u32) -> Result<bool, NotHeld> {
    // SAFETY: the caller's promise.
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
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        isa::enqueue_tail_first(vp.as_ptr() as usize, [queue as usize, node as usize, 0])
    };
    outcome.answer().map(|_| ())
}

/// `test_and_set` that nobody restarts.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`test_and_set_twice`].
pub unsafe fn test_and_set_unregistered(vp: NonNull<()>, word: *mut u32) -> Result<bool, NotHeld> {
    // SAFETY: the caller's promise.
    unsafe { isa::test_and_set_unregistered(vp.as_ptr() as usize, [word as usize, 0, 0]) }
        .answer()
        .map(|old| old != 0)
}

/// `fetch_add` that nobody restarts.
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
    // SAFETY: the caller's promise.
    unsafe { isa::fetch_add_unregistered(vp.as_ptr() as usize, [word as usize, addend, 0]) }
        .answer()
}
