//! Programs on their way into a process, and threads on their way back from the launcher.

use crate::program::elf::{Elf, Unfit};
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
    /// What its processes map while they run it.
    pub(crate) mark: Mark,
    /// The thread that asked.
    pub(crate) thread: u32,
}

/// A program, and what a script puts in place of its first argument.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) program: Program,
    pub(crate) prefix: Vec<Vec<u8>>,
}

/// A thread that is diverted.
#[derive(Debug)]
pub(crate) struct Diverted {
    /// What it gets back.
    pub(crate) registers: Registers,
    pub(crate) then: Then,
}

/// What a diverted call ends with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Then {
    /// Its own answer.
    Answer,
    /// The number of a descriptor, or an error, which stands at this address.
    Number(u64),
    /// The directory that has this number is entered.
    Enter(u64),
}

/// Why a file cannot be entered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    Host(Errno),
    Unfit(Unfit),
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
            Self::Unfit(unfit) => unfit.fmt(f),
        }
    }
}

impl Refusal {
    /// What `execve` fails with.
    pub(crate) fn errno(self) -> Errno {
        match self {
            Self::Host(errno) => errno,
            Self::Unfit(_) => Errno::new(libc::ENOEXEC),
        }
    }
}
