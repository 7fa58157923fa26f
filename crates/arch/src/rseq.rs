//! Restartable sequences of the host: Linux's rseq, for words of a CPU.
//!
//! A sequence for words of a CPU is atomic for all kernel threads on that CPU. If a thread is
//! preempted, migrated or signalled while its program counter lies between `start` and post-commit,
//! the kernel sends it to the sequence's abort address, which restarts the sequence. This is Paper
//! 0's nullification done by the kernel, on every return to user mode, also after a page fault that
//! slept.
//!
//! The kernel finds the running sequence through an area of 32 bytes that each thread registers
//! once. The C library does so since glibc 2.35. If it has not, `kyocho_sys::rseq` registers an
//! area of this crate.
//!
//! **Invariant:** all threads' areas have the same distance from their thread pointers, so a
//! sequence finds its thread's area with a constant of the process.
//!
//! The operations are those of [`restartable`](crate::restartable), with a [`Cpu`] as the holder.
#![expect(unsafe_code, reason = "tells sequences where areas lie")]

use crate::isa::rseq as isa;

pub use crate::cpu::{Cpu, Sequence};

/// The bytes before an abort address by which the kernel recognises it.
pub const SIGNATURE: u32 = 0x5305_3053;

/// Bytes of an area, as of the first version of the interface.
pub const AREA_BYTES: u32 = 32;

impl Cpu {
    /// The CPU that runs the caller, which may have migrated when this returns. `None` if this
    /// thread has no registered area. Takes 1 ns.
    #[inline(always)]
    #[must_use]
    pub fn current() -> Option<Self> {
        u32::try_from(isa::cpu_id()).ok().map(Self::new)
    }
}

/// The C library's areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// It does not support rseq.
    Ignorant,
    /// It supports rseq and has not registered areas: it was configured so, or the kernel refused.
    Off,
    /// It registers every thread's area, at this distance from the thread pointer.
    Registered(isize),
}

/// Whether the C library has registered areas.
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
/// `offset` is the one that [`library`] returned.
pub unsafe fn use_library(offset: isize) {
    // SAFETY: guaranteed by the caller.
    unsafe { isa::set_area_offset(offset) };
}

/// This crate's area of this thread, [`AREA_BYTES`] in static TLS. It is registered if the C
/// library has not registered one, and is valid as long as the thread lives.
#[must_use]
pub fn own_area() -> *mut u8 {
    isa::area_at(isa::own_area())
}

/// All sequences.
#[must_use]
pub fn sequences() -> &'static [Sequence] {
    isa::sequences()
}
