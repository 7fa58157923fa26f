//! Numbers of kernel threads.
#![expect(unsafe_code, reason = "system calls that take numbers")]

use crate::error::Errno;
use crate::raw::call;

/// Number of a kernel thread, as the host counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(u32);

impl ThreadId {
    /// The thread with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The calling thread.
    #[must_use]
    pub fn current() -> Self {
        // SAFETY: takes nothing and cannot fail.
        Self(unsafe { call(libc::SYS_gettid, []) }.unwrap_or(0) as u32)
    }

    /// Whether a thread of this process has this number now.
    #[must_use]
    pub fn exists(self) -> bool {
        self.exists_in(std::process::id())
    }

    /// Whether a thread of `process` (as numbered in this namespace) has this number now.
    #[must_use]
    pub fn exists_in(self, process: u32) -> bool {
        let no_signal = 0;
        // SAFETY: takes numbers.
        let answer =
            unsafe { call(libc::SYS_tgkill, [process as usize, self.0 as usize, no_signal]) };
        // Not permitted: it exists, and belongs to another user.
        matches!(answer, Ok(_) | Err(Errno::PERM))
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}
