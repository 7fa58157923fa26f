//! Restartable sequences: read-modify-writes that need no atomic instruction (Paper 0).
//!
//! A sequence runs on a virtual processor, whose microprocesses exclude each other except for
//! preemption. It reads shared words as often as it likes and changes them by ONE store, its last
//! instruction: the *commit*. A preemption handler that finds the interrupted PC inside the sequence moves it back to
//! the start ([`rewind`]), so whatever other microprocesses do in between, the sequence has either
//! committed or never begun.
//!
//! ```text
//!   start:  this thread holds the words' virtual processor?  ── no ──►  refused, nothing done
//!           read, compute, store where nobody looks
//!           commit                                  ◄── the last instruction of the range
//!   end:    return                                  ◄── here and outside: nothing to rewind
//! ```
//!
//! Paper 0 has the kernel poison the *address* of the commit on every return to user mode, and restarts in
//! the fault handler. Here the return to user mode that matters is our own preemption handler, and it moves the PC.
//!
//! **Invariant:** a sequence leaves its input registers alone, so that it can start again.
//!
//! **Invariant:** "this thread holds that virtual processor" is read inside the range, so it and the commit are
//! nullified together: who is preempted, and goes on with another virtual processor or none, asks again and is refused.
//!
//! # What is *not* nullified
//! A page fault inside a sequence also gives the processor away, and no handler of ours sees it: the
//! words must lie in memory that cannot fault (touched, and locked or never reclaimed). Two kernel threads that believe to
//! hold one virtual processor are excluded by whoever sets [`set_current_vp`](crate::set_current_vp), not here.
#![expect(unsafe_code, reason = "operations on raw words that only sequences may touch")]

use core::ptr::NonNull;

use crate::isa;

/// This kernel thread does not hold the virtual processor that the words belong to: nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotHeld;

impl core::fmt::Display for NotHeld {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("this kernel thread does not hold the virtual processor")
    }
}

impl core::error::Error for NotHeld {}

/// Addresses of one sequence: from its first instruction to the one after its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Where it begins, and begins again.
    pub start: usize,
    /// The address after the committing store.
    pub end: usize,
}

impl Range {
    /// Whether an interruption at `pc` nullifies this sequence.
    #[must_use]
    pub const fn contains(self, pc: usize) -> bool {
        self.start <= pc && pc < self.end
    }
}

/// All sequences, in the order of their addresses.
pub fn ranges() -> impl Iterator<Item = Range> {
    let (begin, _, table) = isa::restartable_section();
    ranges_of(begin, table)
}

/// The ranges of one table of offsets from `begin`.
pub(crate) fn ranges_of(begin: usize, table: &[[u32; 2]]) -> impl Iterator<Item = Range> {
    table.iter().map(move |&[start, end]| Range {
        start: begin + start as usize,
        end: begin + end as usize,
    })
}

/// Where to resume code that was interrupted at `pc` inside a sequence: at its start. `None` outside.
///
/// For the preemption handler, before anybody else runs. Safe in a signal handler; two comparisons when
/// `pc` is elsewhere.
#[must_use]
pub fn rewind(pc: usize) -> Option<usize> {
    let (begin, end, table) = isa::restartable_section();
    if pc < begin || pc >= end {
        return None;
    }
    ranges_of(begin, table).find(|range| range.contains(pc)).map(|range| range.start)
}

/// Whether `pc` lies inside a sequence.
#[must_use]
pub fn contains(pc: usize) -> bool {
    rewind(pc).is_some()
}

/// `old = *word; if old == 0 { *word = 1 }; old != 0`. (Paper 0, figure 1.)
///
/// # Errors
/// The thread does not hold `vp`; so for all operations below.
///
/// # Safety
/// `word` is valid, aligned, cannot fault, and only sequences for `vp` change it while it is 0.
#[inline(always)]
pub unsafe fn test_and_set(vp: NonNull<()>, word: *mut u32) -> Result<bool, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::test_and_set(vp, [word as usize, 0, 0]) }).map(|old| old != 0)
}

/// `old = *word; if old == expected { *word = new }; old`.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// `word` is valid, aligned, cannot fault, and only sequences for `vp` change it. So for
/// the words of all operations below.
#[inline(always)]
pub unsafe fn compare_and_swap(
    vp: NonNull<()>,
    word: *mut usize,
    expected: usize,
    new: usize,
) -> Result<usize, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::compare_and_swap(vp, [word as usize, expected, new]) })
}

/// `old = *word; *word = old + addend; old`, wrapping.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`compare_and_swap`].
#[inline(always)]
pub unsafe fn fetch_add(
    vp: NonNull<()>,
    word: *mut usize,
    addend: usize,
) -> Result<usize, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::fetch_add(vp, [word as usize, addend, 0]) })
}

/// `old = *word; *word = new; old`. With `new` null on a list head: takes the whole list.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`compare_and_swap`].
#[inline(always)]
pub unsafe fn exchange(vp: NonNull<()>, word: *mut usize, new: usize) -> Result<usize, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::exchange(vp, [word as usize, new, 0]) })
}

/// A link of an intrusive list: the first field of what is linked.
#[derive(Debug)]
#[repr(C)]
pub struct Link {
    /// The next one. Means something only while the link is in a list, and not behind its end.
    pub next: *mut Self,
}

/// `node.next = *head; *head = node`.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`compare_and_swap`], for `head`, `node` and the links reached; `node` is in no list.
#[inline(always)]
pub unsafe fn push(vp: NonNull<()>, head: *mut *mut Link, node: *mut Link) -> Result<(), NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::push(vp, [head as usize, node as usize, 0]) }).map(|_| ())
}

/// `first = *head; if first != null { *head = first.next }; first`. No ABA: the sequence is nullified as a whole.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn pop(vp: NonNull<()>, head: *mut *mut Link) -> Result<*mut Link, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::pop(vp, [head as usize, 0, 0]) }).map(|first| first as *mut Link)
}

/// A first-in first-out queue of links.
///
/// Empty if and only if `tail` is null; `head` then means nothing, as does the `next` of the last link. That is
/// what lets one store commit each operation: the store that prepares it lands past the logical end.
#[derive(Debug)]
#[repr(C)]
pub struct Fifo {
    /// The link that leaves next, when the queue is not empty.
    pub head: *mut Link,
    /// The link that came last, or null.
    pub tail: *mut Link,
}

impl Fifo {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self { head: core::ptr::null_mut(), tail: core::ptr::null_mut() }
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Self::new()
    }
}

/// `(if tail == null { head } else { tail.next }) = node; tail = node`.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn enqueue(vp: NonNull<()>, queue: *mut Fifo, node: *mut Link) -> Result<(), NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::enqueue(vp, [queue as usize, node as usize, 0]) }).map(|_| ())
}

/// `if tail == null { null } else { first = head; if first == tail { tail = null } else { head = first.next }; first }`.
///
/// # Errors
/// The thread does not hold `vp`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn dequeue(vp: NonNull<()>, queue: *mut Fifo) -> Result<*mut Link, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    answer(unsafe { isa::dequeue(vp, [queue as usize, 0, 0]) }).map(|first| first as *mut Link)
}

/// The sequence's two output registers as a `Result`.
#[inline(always)]
pub(crate) fn answer(outcome: isa::Outcome) -> Result<usize, NotHeld> {
    if outcome.refused { Err(NotHeld) } else { Ok(outcome.value) }
}
