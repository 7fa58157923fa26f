//! BPF programs, which run inside the host's kernel, and the memory they share with this process
//! (`bpf(2)`).
//!
//! ```text
//!   Assembler ──► Program ──attach──► tracepoint: the kernel runs it while the attachment lives
//!                    │
//!                    └─ Map: a hash, words in shared memory (`Words`), or a ring whose reader can
//!                       sleep (`Ring`)
//! ```
//!
//! Needs the capabilities `CAP_BPF` and `CAP_PERFMON`. The kernel verifies a program before it
//! accepts it. A program that could loop without end, or read memory it must not read, is refused;
//! [`Refused`] has the verifier's messages.
//!
//! No compiler and no object file is involved: the programs have a few dozen instructions, and do
//! not depend on the layout of kernel structures.
#![expect(unsafe_code, reason = "system calls on structures and descriptors")]

pub mod assembler;
mod ring;
mod words;

use core::ffi::CStr;
use core::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};
pub use ring::Ring;
pub use words::Words;

/// Commands of `bpf(2)`, linux/bpf.h.
mod command {
    pub(super) const MAP_CREATE: usize = 0;
    pub(super) const MAP_UPDATE: usize = 2;
    pub(super) const PROGRAM_LOAD: usize = 5;
    pub(super) const PROGRAM_RUN: usize = 10;
    pub(super) const RAW_TRACEPOINT_OPEN: usize = 17;
}

/// `BPF_PROG_TYPE_RAW_TRACEPOINT`.
const RAW_TRACEPOINT: u32 = 17;
/// `BPF_F_NO_PREALLOC`: entries of a hash are allocated on insertion.
const NO_PREALLOC: u32 = 1;
/// `BPF_F_MMAPABLE`.
const MMAPABLE: u32 = 1 << 10;
/// Room for the verifier's messages.
const LOG_BYTES: usize = 64 << 10;

/// Calls `bpf(2)`. Retries if a signal interrupted the verifier.
///
/// # Safety
/// `attributes` is a prefix of the kernel's `union bpf_attr` for the command, and all addresses in
/// it are valid.
unsafe fn bpf<A>(command: usize, attributes: &mut A) -> Result<usize, Errno> {
    fault::check(Call::Bpf)?;
    const RETRIES_MAX: u32 = 100;
    let arguments = [command, &raw mut *attributes as usize, size_of::<A>()];
    for _ in 0..RETRIES_MAX {
        // SAFETY: guaranteed by the caller.
        match unsafe { call(libc::SYS_bpf, arguments) } {
            Err(Errno::AGAIN | Errno::INTR) => {}
            answer => return answer,
        }
    }
    Err(Errno::AGAIN)
}

/// Memory in the kernel that both programs and this process read and write.
#[derive(Debug)]
pub struct Map(OwnedFd);

/// `BPF_MAP_CREATE`.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
    inner_map: u32,
}

impl MapCreate {
    fn create(mut self) -> Result<Map, Errno> {
        // SAFETY: a prefix of the union, without addresses.
        let descriptor = unsafe { bpf(command::MAP_CREATE, &mut self) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        Ok(Map(unsafe { owned(descriptor) }))
    }
}

impl Map {
    /// A hash of at most `entries_max` values, for look-ups by programs.
    ///
    /// # Errors
    /// `PERM`: without `CAP_BPF`. `INVAL`: kernels before 6.1. `NOMEM`, `MFILE`.
    pub fn hash(key_bytes: u32, value_bytes: u32, entries_max: u32) -> Result<Self, Errno> {
        let (kind, flags) = (1, NO_PREALLOC);
        let wanted = MapCreate { kind, key_bytes, value_bytes, entries_max, flags, inner_map: 0 };
        wanted.create()
    }

    /// A table of `entries_max` maps of the same kind as `example`, all empty.
    ///
    /// # Errors
    /// As for [`hash`](Self::hash).
    pub fn table_of(example: &Self, entries_max: u32) -> Result<Self, Errno> {
        let inner_map = example.0.as_raw_fd() as u32;
        let (kind, key_bytes, value_bytes, flags) = (12, 4, 4, 0);
        MapCreate { kind, key_bytes, value_bytes, entries_max, flags, inner_map }.create()
    }

    /// Stores `inner` at `index` of a table of maps ([`table_of`](Self::table_of)).
    ///
    /// # Errors
    /// `E2BIG`: the index is out of range. `INVAL`: `inner` is not of the example's kind, or this
    /// is not a table of maps.
    pub fn put(&self, index: u32, inner: &Self) -> Result<(), Errno> {
        #[repr(C)]
        struct Update {
            map: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let value = inner.0.as_raw_fd() as u32;
        let (key_at, value_at) = (&raw const index as u64, &raw const value as u64);
        let map = self.0.as_raw_fd() as u32;
        let mut attributes = Update { map, key: key_at, value: value_at, flags: 0 };
        // SAFETY: a prefix of the union; the kernel reads key and value, four bytes each in a
        // table.
        unsafe { bpf(command::MAP_UPDATE, &mut attributes) }.map(drop)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A refusal of a program by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// `PERM`: without `CAP_BPF` and `CAP_PERFMON`. Other errors come from the verifier.
    pub errno: Errno,
    /// The verifier's messages.
    pub log: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel refused a BPF program: {}", self.errno)?;
        if self.log.is_empty() { Ok(()) } else { write!(f, "\n{}", self.log) }
    }
}

impl core::error::Error for Refused {}

/// A verified program.
#[derive(Debug)]
pub struct Program(OwnedFd);

/// Keeps a program attached to its tracepoint until dropped.
#[derive(Debug)]
pub struct Attachment {
    _descriptor: OwnedFd,
}

impl Program {
    /// Loads a program, which receives each argument of a tracepoint as a word. Allocates.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn load(code: &[u64]) -> Result<Self, Refused> {
        let mut log = Vec::new();
        match Self::try_load(code, &mut log) {
            Ok(program) => Ok(program),
            Err(Errno::PERM) => Err(Refused { errno: Errno::PERM, log: String::new() }),
            Err(_) => {
                // Loads again, to get the messages.
                log = vec![0; LOG_BYTES];
                let again = Self::try_load(code, &mut log);
                let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
                let log = String::from_utf8_lossy(&log[..end]).into_owned();
                again.map_err(|errno| Refused { errno, log })
            }
        }
    }

    fn try_load(code: &[u64], log: &mut [u8]) -> Result<Self, Errno> {
        #[repr(C)]
        struct Load {
            kind: u32,
            instructions: u32,
            code: u64,
            license: u64,
            log_level: u32,
            log_bytes: u32,
            log: u64,
        }
        // Helpers that read memory of the traced process require this licence.
        const LICENSE: &CStr = c"Dual MIT/GPL";
        let log_at = if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 };
        let mut attributes = Load {
            kind: RAW_TRACEPOINT,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_bytes: log.len() as u32,
            log: log_at,
        };
        // SAFETY: a prefix of the union; the kernel reads code and licence, and writes at most the
        // log's length to it.
        let descriptor = unsafe { bpf(command::PROGRAM_LOAD, &mut attributes) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        Ok(Self(unsafe { owned(descriptor) }))
    }

    /// Attaches the program to the tracepoint with this name, on every CPU and for every process.
    ///
    /// # Errors
    /// `NOENT`: no such tracepoint. `INVAL`: it has fewer arguments than the program reads.
    pub fn attach(&self, tracepoint: &CStr) -> Result<Attachment, Errno> {
        #[repr(C)]
        struct Open {
            name: u64,
            program: u32,
            padding: u32,
        }
        let program = self.0.as_raw_fd() as u32;
        let mut attributes = Open { name: tracepoint.as_ptr() as u64, program, padding: 0 };
        // SAFETY: a prefix of the union; the name ends in a zero byte.
        let descriptor = unsafe { bpf(command::RAW_TRACEPOINT_OPEN, &mut attributes) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        Ok(Attachment { _descriptor: unsafe { owned(descriptor) } })
    }

    /// Runs the program once, on the calling thread, and returns its result.
    ///
    /// # Errors
    /// `INVAL`: fewer arguments than the program reads. `NOSYS` and similar: kernels before 5.10.
    pub fn run<const N: usize>(&self, arguments: [u64; N]) -> Result<u32, Errno> {
        #[repr(C)]
        #[derive(Default)]
        struct Run {
            program: u32,
            answer: u32,
            data_bytes: [u32; 2],
            data: [u64; 2],
            repeat: u32,
            duration: u32,
            context_bytes: [u32; 2],
            context: [u64; 2],
            flags: u32,
            cpu: u32,
        }
        let mut attributes = Run {
            program: self.0.as_raw_fd() as u32,
            context_bytes: [size_of_val(&arguments) as u32, 0],
            context: [arguments.as_ptr() as u64, 0],
            ..Run::default()
        };
        // SAFETY: a prefix of the union; the kernel reads the arguments and writes `answer`.
        unsafe { bpf(command::PROGRAM_RUN, &mut attributes) }?;
        Ok(attributes.answer)
    }
}

#[cfg(test)]
mod tests;
