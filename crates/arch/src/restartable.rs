//! Restartable sequences: read-modify-writes that need no atomic instruction (Paper 0).
//!
//! A sequence runs where other threads are excluded except by preemption: on a virtual processor,
//! which runs one of its microprocesses at a time (this file), or on a CPU, which runs one of its
//! kernel threads at a time ([`rseq`](crate::rseq)). It may read shared words any number of times,
//! and changes them with ONE store, its last instruction: the *commit*. A preemption handler that
//! finds the interrupted PC inside a sequence moves it back to the start ([`rewind`]). So whatever
//! other microprocesses do in between, the sequence has either committed or had no effect.
//!
//! ```text
//!   start:  this thread holds the words' virtual processor?  ── no ──►  refused, nothing done
//!           read, compute, store to private memory
//!           commit                                  ◄── the last instruction of the range
//!   end:    return                                  ◄── here and outside: nothing to rewind
//! ```
//!
//! In Paper 0, the kernel invalidates the *address* of the commit on every return to user mode, and
//! the fault handler restarts the operation. Here Kyocho's own preemption handler stands for the
//! return to user mode, and it moves the PC.
//!
//! **Invariant:** a sequence preserves its input registers, so that it can start again.
//!
//! **Invariant:** "this thread holds that virtual processor" is read inside the range, so it and
//! the commit are nullified together. A thread that is preempted, and continues with another
//! virtual processor or none, repeats the check and is refused.
//!
//! # What is *not* nullified
//! A page fault inside a sequence also releases the CPU, without running the preemption handler. So
//! the words must lie in memory that cannot fault (touched, and locked or never reclaimed). Linux's
//! own sequences do not need this: the kernel aborts them whenever the thread leaves the CPU. It is
//! the caller of [`set_current_vp`](crate::set_current_vp) that ensures that no two kernel threads
//! hold one virtual processor.
#![expect(unsafe_code, reason = "operations on raw words that only sequences may touch")]

/// This kernel thread does not hold the virtual processor, or does not run on the CPU, that the
/// words belong to. Nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotHeld;

impl core::fmt::Display for NotHeld {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("this kernel thread does not hold the virtual processor or CPU of the words")
    }
}

impl core::error::Error for NotHeld {}

/// Address range of a sequence: from its first instruction to the one after its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Where it starts, and restarts.
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

unsafe extern "C" {
    /// First byte of the sequences, and first byte after them.
    static kyocho_restartable_begin: u8;
    static kyocho_restartable_end: u8;
    /// The table of the sequences, and its end.
    static kyocho_restartable_table: Offsets;
    static kyocho_restartable_table_end: Offsets;
}

/// Start and end of a sequence, as offsets from the first of all.
pub(crate) type Offsets = [u32; 2];

/// All sequences, in the order of their addresses.
pub fn ranges() -> impl Iterator<Item = Range> {
    let begin = &raw const kyocho_restartable_begin;
    let table = [&raw const kyocho_restartable_table, &raw const kyocho_restartable_table_end];
    // SAFETY: the assembler laid out the table between its labels.
    unsafe { ranges_of(begin, table) }
}

/// The ranges of one table of offsets from `begin`.
///
/// # Safety
/// The table lies between the two addresses, constant for the life of the program.
pub(crate) unsafe fn ranges_of(
    begin: *const u8,
    [table, end]: [*const Offsets; 2],
) -> impl Iterator<Item = Range> {
    let count = (end as usize - table as usize) / size_of::<Offsets>();
    // SAFETY: guaranteed by the caller.
    let table = unsafe { core::slice::from_raw_parts(table, count) };
    let at = move |offset: u32| begin as usize + offset as usize;
    table.iter().map(move |&[start, end]| Range { start: at(start), end: at(end) })
}

/// The address at which code interrupted at `pc` must resume: the start of the sequence. `None`
/// outside of sequences.
///
/// For the preemption handler, before it lets another microprocess run. Safe in a signal handler.
/// Costs two comparisons if `pc` is elsewhere.
#[must_use]
pub fn rewind(pc: usize) -> Option<usize> {
    if !extent().contains(&pc) {
        return None;
    }
    ranges().find(|range| range.contains(pc)).map(|range| range.start)
}

/// Whether `pc` lies inside a sequence.
#[must_use]
pub fn contains(pc: usize) -> bool {
    rewind(pc).is_some()
}

/// The address range of all sequences.
#[must_use]
pub fn extent() -> core::ops::Range<usize> {
    let [begin, end] = [&raw const kyocho_restartable_begin, &raw const kyocho_restartable_end];
    begin as usize..end as usize
}

/// Whether code that continues at `pc` would be in the middle of a sequence: after its first
/// instruction, before the end of its commit.
#[must_use]
pub fn is_in_the_middle(pc: usize) -> bool {
    rewind(pc).is_some_and(|start| start != pc)
}

/// The result of a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The old value, or the removed link.
    pub value: usize,
    /// Nothing was done: the holder is not held.
    pub refused: bool,
}

impl Outcome {
    #[inline(always)]
    pub(crate) const fn answer(self) -> Result<usize, NotHeld> {
        if self.refused { Err(NotHeld) } else { Ok(self.value) }
    }
}

/// The owner of words, which a thread must hold to change them: a virtual processor, named by a
/// pointer that is never dereferenced, or a [`Cpu`](crate::rseq::Cpu). The methods are the
/// sequences, with up to three inputs.
///
/// # Safety
/// Each method does what the function with its name below documents, atomically with respect to all
/// sequences of this holder.
#[expect(missing_docs, reason = "documented by the functions below")]
#[expect(clippy::missing_safety_doc, reason = "documented by the functions below")]
pub unsafe trait Holder: Copy {
    const NAME: &'static str;

    unsafe fn test_and_set(self, inputs: [usize; 3]) -> Outcome;
    unsafe fn compare_and_swap(self, inputs: [usize; 3]) -> Outcome;
    unsafe fn fetch_add(self, inputs: [usize; 3]) -> Outcome;
    unsafe fn push(self, inputs: [usize; 3]) -> Outcome;
    unsafe fn pop(self, inputs: [usize; 3]) -> Outcome;
    unsafe fn enqueue(self, inputs: [usize; 3]) -> Outcome;
    unsafe fn dequeue(self, inputs: [usize; 3]) -> Outcome;
}

/// `old = *word; if old == 0 { *word = 1 }; old != 0`. (Paper 0, figure 1.)
///
/// # Errors
/// The thread does not hold the `holder`. The same holds for all operations below.
///
/// # Safety
/// `word` is valid, aligned, cannot fault, and only sequences for this holder change it while it is
/// 0.
#[inline(always)]
pub unsafe fn test_and_set<H: Holder>(holder: H, word: *mut u32) -> Result<bool, NotHeld> {
    // SAFETY: the caller guarantees what the sequence requires.
    unsafe { holder.test_and_set([word as usize, 0, 0]) }.answer().map(|old| old != 0)
}

/// `old = *word; if old == expected { *word = new }; old`.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// `word` is valid, aligned, cannot fault, and only sequences for this holder change it. The same
/// holds for the words of all operations below.
#[inline(always)]
pub unsafe fn compare_and_swap<H: Holder>(
    holder: H,
    word: *mut usize,
    expected: usize,
    new: usize,
) -> Result<usize, NotHeld> {
    // SAFETY: the caller guarantees what the sequence requires.
    unsafe { holder.compare_and_swap([word as usize, expected, new]) }.answer()
}

/// `old = *word; *word = old + addend; old`, wrapping.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// As for [`compare_and_swap`].
#[inline(always)]
pub unsafe fn fetch_add<H: Holder>(
    holder: H,
    word: *mut usize,
    addend: usize,
) -> Result<usize, NotHeld> {
    // SAFETY: the caller guarantees what the sequence requires.
    unsafe { holder.fetch_add([word as usize, addend, 0]) }.answer()
}

/// A link of an intrusive list: the first field of a listed object.
#[derive(Debug)]
#[repr(C)]
pub struct Link {
    /// The next link. Valid only while the link is in a list and not the last one.
    pub next: *mut Self,
}

/// `node.next = *head; *head = node`.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// As for [`compare_and_swap`], for `head`, `node` and the links reached; `node` is in no list.
#[inline(always)]
pub unsafe fn push<H: Holder>(
    holder: H,
    head: *mut *mut Link,
    node: *mut Link,
) -> Result<(), NotHeld> {
    // SAFETY: the caller guarantees what the sequence requires.
    unsafe { holder.push([head as usize, node as usize, 0]) }.answer().map(|_| ())
}

/// `first = *head; if first != null { *head = first.next }; first`. No ABA: the sequence is
/// nullified as a whole.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn pop<H: Holder>(holder: H, head: *mut *mut Link) -> Result<*mut Link, NotHeld> {
    // SAFETY: the caller guarantees what the sequence requires.
    unsafe { holder.pop([head as usize, 0, 0]) }.answer().map(|first| first as *mut Link)
}

/// A first-in first-out queue of links.
///
/// Empty exactly if `tail` is null. Then `head` is not valid; the `next` of the last link never is.
/// So one store can commit each operation: the store that prepares it is past the logical end.
#[derive(Debug)]
#[repr(C)]
pub struct Fifo {
    /// The link that is removed next, if the queue is not empty.
    pub head: *mut Link,
    /// The link that was added last, or null.
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
/// The thread does not hold the `holder`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn enqueue<H: Holder>(
    holder: H,
    queue: *mut Fifo,
    node: *mut Link,
) -> Result<(), NotHeld> {
    // SAFETY: the caller guarantees what the sequence requires.
    unsafe { holder.enqueue([queue as usize, node as usize, 0]) }.answer().map(|_| ())
}

/// `if tail == null { null } else { first = head; if first == tail { tail = null } else { head =
/// first.next }; first }`.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn dequeue<H: Holder>(holder: H, queue: *mut Fifo) -> Result<*mut Link, NotHeld> {
    // SAFETY: the caller guarantees what the sequence requires.
    unsafe { holder.dequeue([queue as usize, 0, 0]) }.answer().map(|first| first as *mut Link)
}
