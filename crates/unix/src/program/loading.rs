//! Programs that processes are about to enter, and threads that are diverted to the launcher.

use crate::program::elf::{Elf, ImageError};
use crate::program::running::Mark;
use core::fmt;
use kyocho_sys::error::Errno;
use kyocho_sys::remote::Registers;
use std::os::fd::OwnedFd;

/// A program that is ready to be entered.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) file: OwnedFd,
    pub(crate) elf: Elf,
    pub(crate) interpreter: Option<(OwnedFd, Elf)>,
    pub(crate) name: Vec<u8>,
    /// The mark that its processes map while they run it.
    pub(crate) mark: Mark,
    /// The thread that made the call.
    pub(crate) thread: u32,
}

/// A program, and the words that replace the first argument if it is the interpreter of a script.
#[derive(Debug)]
pub(crate) struct FoundProgram {
    pub(crate) program: Program,
    pub(crate) prefix: Vec<Vec<u8>>,
}

/// A thread that is diverted.
#[derive(Debug)]
pub(crate) struct Diverted {
    /// The registers that it gets back.
    pub(crate) registers: Registers,
    pub(crate) then: Completion,
}

/// How a diverted call ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion {
    /// With the result of the call that the launcher made.
    Answer,
    /// With the number of a descriptor, or an error, that is at this address.
    Number(u64),
    /// By entering the directory whose descriptor number is at this address.
    Enter(u64),
    /// With the address of a mapping of this descriptor, which is closed then.
    Mapped(u64),
    /// With this value.
    Value(i64),
}

/// Why a file cannot be entered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    Host(Errno),
    ImageError(ImageError),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Host(errno)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(errno) => errno.fmt(f),
            Self::ImageError(unfit) => unfit.fmt(f),
        }
    }
}

impl Refusal {
    /// The error of `execve`.
    pub(crate) fn errno(self) -> Errno {
        match self {
            Self::Host(errno) => errno,
            Self::ImageError(_) => Errno::new(libc::ENOEXEC),
        }
    }
}
