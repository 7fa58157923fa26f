//! Types shared by the portable and the instruction set's part of [`rseq`](crate::rseq).

/// A CPU of the host, as a holder of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cpu(u32);

impl Cpu {
    /// The CPU with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number, from 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Addresses of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Sequence {
    /// Where it is called, and restarts.
    pub entry: usize,
    /// From here on the kernel aborts it.
    pub start: usize,
    /// The address after the commit.
    pub post_commit: usize,
    /// Where the kernel sends a thread that it aborted.
    pub abort: usize,
}
