//! Restartable sequences of the host: Linux's rseq, one CPU each.
//!
//! A sequence for words that belong to a CPU runs as one step for all kernel threads on that CPU: while its program
//! counter lies between `start` and post-commit, the kernel sends a thread that was preempted, moved or signalled to the
//! sequence's abort address, which starts it again. That is Paper 0's nullification done by the kernel, on every return
//! to user mode, page faults that slept included.
//!
//! The kernel finds the running sequence through an area of 32 bytes that each thread registers once. The C library has
//! done so since glibc 2.35; where it has not, there is an area of our own, and `kyocho_sys::rseq` registers it.
//!
//! **Invariant:** all threads' areas lie at one distance from their thread pointers, so that a sequence finds its thread's
//! area by one constant of the process.
//!
//! The operations are those of [`restartable`](crate::restartable), with a [`Cpu`] as the holder.
#![expect(unsafe_code, reason = "tells sequences where areas lie")]

use crate::isa::rseq as isa;

/// The bytes before an abort address by which the kernel knows that it is one.
pub const SIGNATURE: u32 = 0x5305_3053;

/// Bytes of an area, as of the first version of the interface.
pub const AREA_BYTES: u32 = 32;

/// A CPU of the host, as the holder of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cpu(u32);

impl Cpu {
    /// The CPU with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The CPU that runs the caller; it may be another one on return. `None` where this thread has no registered area.
    /// 1 ns.
    #[inline(always)]
    #[must_use]
    pub fn current() -> Option<Self> {
        u32::try_from(isa::cpu_id()).ok().map(Self)
    }
}

/// The C library's areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// It knows nothing of rseq.
    Ignorant,
    /// It knows of it and has not registered: told not to, or the kernel refused.
    Off,
    /// It registers every thread's area, at this distance from the thread pointer.
    Registered(isize),
}

/// What the C library has done.
#[must_use]
pub fn library() -> Library {
    match isa::library_area() {
        None => Library::Ignorant,
        Some((_, 0)) => Library::Off,
        Some((offset, _)) => Library::Registered(offset),
    }
}

/// Makes the sequences of this process use the C library's areas.
///
/// # Safety
/// `offset` is what [`library`] gave.
pub unsafe fn use_library(offset: isize) {
    // SAFETY: the caller's promise.
    unsafe { isa::set_area_offset(offset) };
}

/// This thread's own area, [`AREA_BYTES`] in static TLS: to be registered where the C library has not, and
/// valid as long as the thread.
#[must_use]
pub fn own_area() -> *mut u8 {
    isa::area_at(isa::own_area())
}

/// Where a sequence lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Sequence {
    /// Where it is called, and begins again.
    pub entry: usize,
    /// From here on the kernel nullifies it.
    pub start: usize,
    /// The address after the commit.
    pub post_commit: usize,
    /// Where the kernel sends whom it nullified.
    pub abort: usize,
}

/// All sequences.
#[must_use]
pub fn sequences() -> &'static [Sequence] {
    isa::sequences()
}
