//! Restartable sequences: read-modify-writes that need no atomic instruction (Paper 0).
//!
//! A sequence runs where others are excluded except for preemption: on a virtual processor, of whose microprocesses one
//! runs at a time (this file), or on a CPU, of whose kernel threads one runs at a time ([`rseq`](crate::rseq)). It reads shared words as often as it likes and changes them by ONE store, its last
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
//! words must lie in memory that cannot fault (touched, and locked or never reclaimed). (Linux's own sequences need no
//! such care: the kernel aborts them whenever the thread leaves the CPU.) Two kernel threads that believe to
//! hold one virtual processor are excluded by whoever sets [`set_current_vp`](crate::set_current_vp), not here.
#![expect(unsafe_code, reason = "operations on raw words that only sequences may touch")]

/// This kernel thread does not hold the virtual processor, or does not run on the CPU, that the words belong to: nothing
/// was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotHeld;

impl core::fmt::Display for NotHeld {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("this kernel thread is not where the words belong")
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
    // SAFETY: the caller's promise.
    let table = unsafe { core::slice::from_raw_parts(table, count) };
    let at = move |offset: u32| begin as usize + offset as usize;
    table.iter().map(move |&[start, end]| Range { start: at(start), end: at(end) })
}

/// Where to resume code that was interrupted at `pc` inside a sequence: at its start. `None` outside.
///
/// For the preemption handler, before anybody else runs. Safe in a signal handler; two comparisons when
/// `pc` is elsewhere.
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

/// The addresses that all sequences lie in.
#[must_use]
pub fn extent() -> core::ops::Range<usize> {
    let [begin, end] = [&raw const kyocho_restartable_begin, &raw const kyocho_restartable_end];
    begin as usize..end as usize
}

/// Whether a sequence that goes on at `pc` would go on in the middle: its first instruction is behind it, its commit is not.
#[must_use]
pub fn is_in_the_middle(pc: usize) -> bool {
    rewind(pc).is_some_and(|start| start != pc)
}

/// What a sequence answers.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The old value, or the link taken.
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

/// What words belong to, and what a thread must hold to change them: a virtual processor, named by a pointer that nobody
/// follows, or a [`Cpu`](crate::rseq::Cpu). Its methods are the sequences, on up to three inputs.
///
/// # Safety
/// Each method does what the function of its name below says, as one step for all sequences of this holder.
#[expect(missing_docs, reason = "the functions below say it")]
#[expect(clippy::missing_safety_doc, reason = "the functions below say it")]
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
/// The thread does not hold the `holder`; so for all operations below.
///
/// # Safety
/// `word` is valid, aligned, cannot fault, and only sequences for this holder change it while it is 0.
#[inline(always)]
pub unsafe fn test_and_set<H: Holder>(holder: H, word: *mut u32) -> Result<bool, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    unsafe { holder.test_and_set([word as usize, 0, 0]) }.answer().map(|old| old != 0)
}

/// `old = *word; if old == expected { *word = new }; old`.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// `word` is valid, aligned, cannot fault, and only sequences for this holder change it. So for
/// the words of all operations below.
#[inline(always)]
pub unsafe fn compare_and_swap<H: Holder>(
    holder: H,
    word: *mut usize,
    expected: usize,
    new: usize,
) -> Result<usize, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
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
    // SAFETY: the caller's promise is the sequence's.
    unsafe { holder.fetch_add([word as usize, addend, 0]) }.answer()
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
    // SAFETY: the caller's promise is the sequence's.
    unsafe { holder.push([head as usize, node as usize, 0]) }.answer().map(|_| ())
}

/// `first = *head; if first != null { *head = first.next }; first`. No ABA: the sequence is nullified as a whole.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn pop<H: Holder>(holder: H, head: *mut *mut Link) -> Result<*mut Link, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    unsafe { holder.pop([head as usize, 0, 0]) }.answer().map(|first| first as *mut Link)
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
    // SAFETY: the caller's promise is the sequence's.
    unsafe { holder.enqueue([queue as usize, node as usize, 0]) }.answer().map(|_| ())
}

/// `if tail == null { null } else { first = head; if first == tail { tail = null } else { head = first.next }; first }`.
///
/// # Errors
/// The thread does not hold the `holder`.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
pub unsafe fn dequeue<H: Holder>(holder: H, queue: *mut Fifo) -> Result<*mut Link, NotHeld> {
    // SAFETY: the caller's promise is the sequence's.
    unsafe { holder.dequeue([queue as usize, 0, 0]) }.answer().map(|first| first as *mut Link)
}
