//! Memory that is mapped twice: where a program works, with rights that change page by page, and where its runtime reads and
//! writes the same pages whatever the program may do.
//!
//! ```text
//!   program's view   [ no access | read | read and write | ... ]   rights by mprotect or userfaultfd
//!                         │          │           │
//!   the pages (memfd)     o          o           o
//!                         │          │           │
//!   runtime's view   [ read and write, always                 ]
//! ```
//!
//! A copy of the process, by `fork`, has neither view: what it wrote there would be in the pages, and
//! nobody would notice, as rights and their faults are the original's.
#![expect(unsafe_code, reason = "maps memory and changes its protection")]

use core::ptr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::memory::copy_shared;
use crate::raw::{call, owned};

/// What the program may do with pages in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Any access is a `SIGSEGV`.
    None,
    /// A write is.
    Read,
    /// Everything is permitted.
    ReadWrite,
}

/// Both mappings, unmapped when dropped. Their addresses are exposed: the owner turns offsets into pointers itself.
#[derive(Debug)]
pub struct TwoViews {
    program: usize,
    runtime: usize,
    bytes: usize,
}

impl TwoViews {
    /// Maps `bytes` of zeroed memory twice. The program's view has no rights yet, and lies at `at` if an address is given; a page
    /// costs memory once it is touched.
    ///
    /// # Errors
    /// `EXIST`: something else lies at `at`. `NOMEM`, `MFILE`. `INVAL`: no bytes, or not whole pages. Injected ones.
    pub fn new(bytes: usize, at: Option<usize>) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let name = c"kyocho-shared".as_ptr().addr();
        // SAFETY: the kernel reads the name up to its NUL.
        let number = unsafe { call(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC as usize]) }?;
        // SAFETY: the kernel has just made it, for us.
        let file = unsafe { owned(number) };
        fault::check(Call::Open)?;
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_ftruncate, [number, bytes]) }?;
        let fixed = at.map_or(0, |_| libc::MAP_FIXED_NOREPLACE);
        let program = map(&file, bytes, at.unwrap_or(0), libc::PROT_NONE, fixed)?;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        match map(&file, bytes, 0, both, 0) {
            Ok(runtime) => Ok(Self { program, runtime, bytes }),
            Err(errno) => {
                unmap(program, bytes);
                Err(errno)
            }
        }
    }

    /// Address of the first byte where the program works; page-aligned.
    #[must_use]
    pub const fn program(&self) -> usize {
        self.program
    }

    /// Address of the same byte for the runtime.
    #[must_use]
    pub const fn runtime(&self) -> usize {
        self.runtime
    }

    /// Length.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies words out, as the runtime sees them. A program that writes there meanwhile gets in old words or new ones.
    ///
    /// # Panics
    /// The range leaves the memory, or does not begin at a word.
    pub fn read(&self, offset: usize, into: &mut [u32]) {
        let from = ptr::with_exposed_provenance::<u8>(self.runtime + self.words(offset, into));
        // SAFETY: inside of the mapping; `into` is our own.
        unsafe { copy_shared(into.as_mut_ptr().cast(), from, size_of_val(into)) };
    }

    /// Copies words in, from the runtime's side.
    ///
    /// # Panics
    /// As for [`Self::read`].
    pub fn write(&self, offset: usize, words: &[u32]) {
        let to = ptr::with_exposed_provenance_mut::<u8>(self.runtime + self.words(offset, words));
        // SAFETY: inside of the mapping; `words` are our own.
        unsafe { copy_shared(to, words.as_ptr().cast(), size_of_val(words)) };
    }

    fn words(&self, offset: usize, words: &[u32]) -> usize {
        let fits = offset <= self.bytes && size_of_val(words) <= self.bytes - offset;
        assert!(fits && offset.is_multiple_of(size_of::<u32>()), "words lie inside of the memory");
        offset
    }

    /// Changes the rights of `[offset, offset + bytes)` in the program's view.
    ///
    /// # Errors
    /// `NOMEM`: neighbours with different rights are mappings of their own, and the host allows no more of them (65,530 by default).
    /// Injected ones.
    ///
    /// # Panics
    /// The range leaves the memory.
    pub fn protect(&self, offset: usize, bytes: usize, rights: Protection) -> Result<(), Errno> {
        self.check(offset, bytes);
        fault::check(Call::Mprotect)?;
        let rights = match rights {
            Protection::None => libc::PROT_NONE,
            Protection::Read => libc::PROT_READ,
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: our own mapping; what lies there is raw words, which nobody is promised access to.
        unsafe { call(libc::SYS_mprotect, [self.program + offset, bytes, rights as usize]) }?;
        Ok(())
    }

    /// Takes `[offset, offset + bytes)` out of the program's page table; the pages stay. The next access is a page fault.
    ///
    /// # Errors
    /// Injected ones.
    ///
    /// # Panics
    /// The range leaves the memory.
    pub fn unlink(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        self.check(offset, bytes);
        fault::check(Call::Madvise)?;
        let arguments = [self.program + offset, bytes, libc::MADV_DONTNEED as usize];
        // SAFETY: our own mapping of a file, whose contents stay.
        unsafe { call(libc::SYS_madvise, arguments) }?;
        Ok(())
    }

    fn check(&self, offset: usize, bytes: usize) {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "range leaves the memory");
    }
}

impl Drop for TwoViews {
    fn drop(&mut self) {
        unmap(self.program, self.bytes);
        unmap(self.runtime, self.bytes);
    }
}

fn map(file: &OwnedFd, bytes: usize, at: usize, rights: i32, flags: i32) -> Result<usize, Errno> {
    fault::check(Call::Mmap)?;
    let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE | flags) as usize;
    let arguments = [at, bytes, rights as usize, flags, file.as_raw_fd() as usize, 0];
    // SAFETY: replaces nothing: the address is the kernel's choice, or refused where something lies.
    let address = unsafe { call(libc::SYS_mmap, arguments) }?;
    if at != 0 && address != at {
        // Before Linux 4.17 the address is a mere hint.
        unmap(address, bytes);
        return Err(Errno::new(libc::EEXIST));
    }
    keep_from_copies(address, bytes).inspect_err(|_| unmap(address, bytes))?;
    Ok(address)
}

/// Leaves what was just mapped out of copies of this process.
fn keep_from_copies(address: usize, bytes: usize) -> Result<(), Errno> {
    fault::check(Call::Madvise)?;
    // SAFETY: our own mapping; this process keeps it.
    unsafe { call(libc::SYS_madvise, [address, bytes, libc::MADV_DONTFORK as usize]) }?;
    Ok(())
}

/// Unmaps what [`map`] returned.
fn unmap(address: usize, bytes: usize) {
    // SAFETY: our own mapping, whose users end with their owner.
    let answer = unsafe { call(libc::SYS_munmap, [address, bytes]) };
    debug_assert!(answer.is_ok(), "munmap: {answer:?}");
}

#[cfg(test)]
mod tests;
