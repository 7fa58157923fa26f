//! Memory that is mapped twice: a view for the program, with rights that change page by page, and a
//! view for its runtime, which can always read and write the same pages.
//!
//! ```text
//!   program's view  [ no access | read | read and write | ... ]  rights by mprotect or userfaultfd
//!                        │          │           │
//!   the pages (memfd)    o          o           o
//!                        │          │           │
//!   runtime's view  [ read and write, always                 ]
//! ```
//!
//! A copy of the process (`fork`) has neither view. Otherwise its writes would go to the pages
//! unnoticed, because rights and faults belong to the original.
#![expect(unsafe_code, reason = "maps memory and changes its protection")]

use core::ptr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::memory::copy_shared;
use crate::raw::{call, owned};

/// Rights of the program to pages in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Any access raises `SIGSEGV`.
    None,
    /// A write raises `SIGSEGV`.
    Read,
    /// Every access is permitted.
    ReadWrite,
}

/// Both mappings, unmapped when dropped. Their addresses are exposed: the owner converts offsets to
/// pointers.
#[derive(Debug)]
pub struct TwoViews {
    program: usize,
    runtime: usize,
    bytes: usize,
}

impl TwoViews {
    /// Maps `bytes` of zeroed memory twice. The program's view has no rights at first, and lies at
    /// `at` if an address is given. A page uses memory once it is touched.
    ///
    /// # Errors
    /// `EXIST`: something else is mapped at `at`. `NOMEM`, `MFILE`. `INVAL`: `bytes` is 0 or not a
    /// multiple of the page size. Injected errors.
    pub fn new(bytes: usize, at: Option<usize>) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let name = c"kyocho-shared".as_ptr().addr();
        // SAFETY: the kernel reads the name up to its NUL.
        let number = unsafe { call(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC as usize]) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
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

    /// Address of the first byte in the program's view; page-aligned.
    #[must_use]
    pub const fn program(&self) -> usize {
        self.program
    }

    /// Address of the first byte in the runtime's view; page-aligned.
    #[must_use]
    pub const fn runtime(&self) -> usize {
        self.runtime
    }

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies words out, from the runtime's view. If the program writes there meanwhile, each word
    /// is old or new.
    ///
    /// # Panics
    /// The range exceeds the memory, or does not start at a word.
    pub fn read(&self, offset: usize, into: &mut [u32]) {
        let from = ptr::with_exposed_provenance::<u8>(self.runtime + self.words(offset, into));
        // SAFETY: inside the mapping; `into` is private.
        unsafe { copy_shared(into.as_mut_ptr().cast(), from, size_of_val(into)) };
    }

    /// Copies words in, through the runtime's view.
    ///
    /// # Panics
    /// As for [`Self::read`].
    pub fn write(&self, offset: usize, words: &[u32]) {
        let to = ptr::with_exposed_provenance_mut::<u8>(self.runtime + self.words(offset, words));
        // SAFETY: inside the mapping; `words` are private.
        unsafe { copy_shared(to, words.as_ptr().cast(), size_of_val(words)) };
    }

    fn words(&self, offset: usize, words: &[u32]) -> usize {
        let fits = offset <= self.bytes && size_of_val(words) <= self.bytes - offset;
        assert!(
            fits && offset.is_multiple_of(size_of::<u32>()),
            "the words must lie inside the memory"
        );
        offset
    }

    /// Changes the rights of `[offset, offset + bytes)` in the program's view.
    ///
    /// # Errors
    /// `NOMEM`: neighbouring pages with different rights are separate mappings, and the host
    /// permits no more of them (65,530 by default). Injected errors.
    ///
    /// # Panics
    /// The range exceeds the memory.
    pub fn protect(&self, offset: usize, bytes: usize, rights: Protection) -> Result<(), Errno> {
        self.check(offset, bytes);
        fault::check(Call::Mprotect)?;
        let rights = match rights {
            Protection::None => libc::PROT_NONE,
            Protection::Read => libc::PROT_READ,
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: this object's mapping; it contains raw words, to which no one is guaranteed
        // access.
        unsafe { call(libc::SYS_mprotect, [self.program + offset, bytes, rights as usize]) }?;
        Ok(())
    }

    /// Removes `[offset, offset + bytes)` from the program's page table; the pages stay. The next
    /// access is a page fault.
    ///
    /// # Errors
    /// Injected errors.
    ///
    /// # Panics
    /// The range exceeds the memory.
    pub fn unlink(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        self.check(offset, bytes);
        fault::check(Call::Madvise)?;
        let arguments = [self.program + offset, bytes, libc::MADV_DONTNEED as usize];
        // SAFETY: this object's mapping of a file, whose contents stay.
        unsafe { call(libc::SYS_madvise, arguments) }?;
        Ok(())
    }

    fn check(&self, offset: usize, bytes: usize) {
        assert!(
            offset <= self.bytes && bytes <= self.bytes - offset,
            "the range exceeds the memory"
        );
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
    // SAFETY: replaces nothing: the kernel chooses the address, or refuses one where something is
    // mapped.
    let address = unsafe { call(libc::SYS_mmap, arguments) }?;
    if at != 0 && address != at {
        // Before Linux 4.17 the address is only a hint.
        unmap(address, bytes);
        return Err(Errno::new(libc::EEXIST));
    }
    keep_from_copies(address, bytes).inspect_err(|_| unmap(address, bytes))?;
    Ok(address)
}

/// Excludes a new mapping from copies of this process.
fn keep_from_copies(address: usize, bytes: usize) -> Result<(), Errno> {
    fault::check(Call::Madvise)?;
    // SAFETY: this object's mapping; the process itself keeps it.
    unsafe { call(libc::SYS_madvise, [address, bytes, libc::MADV_DONTFORK as usize]) }?;
    Ok(())
}

/// Unmaps what [`map`] returned.
fn unmap(address: usize, bytes: usize) {
    // SAFETY: this object's mapping; its owner ends all use of it.
    let answer = unsafe { call(libc::SYS_munmap, [address, bytes]) };
    debug_assert!(answer.is_ok(), "munmap: {answer:?}");
}

#[cfg(test)]
mod tests;
