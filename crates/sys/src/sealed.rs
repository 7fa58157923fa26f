//! Memory that processes pass to each other as a descriptor (`memfd`), sealed so that none can
//! shorten it.
//!
//! Without the seal, a peer could shorten the file, and every access after the new end would raise
//! `SIGBUS`. So memory from another process is mapped only if the kernel guarantees its length. The
//! *contents* are still unchecked.
#![expect(unsafe_code, reason = "maps descriptors; calls on structures")]

use core::ptr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::memory::copy_shared;
use crate::prim::atomic::unmodelled::AtomicU32;
use crate::raw::{call, owned};

/// Which processes may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Every process that gets the descriptor.
    All,
    /// Only the creator: later mappings are read-only (`F_SEAL_FUTURE_WRITE`).
    Maker,
}

/// The access that a mapping of received memory needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// Mapped memory of fixed length, unmapped when dropped. Its addresses are exposed: the owner
/// converts offsets to pointers to atomic words.
#[derive(Debug)]
pub struct SealedMemory {
    file: OwnedFd,
    base: usize,
    bytes: usize,
}

/// Length can neither shrink nor grow, permanently.
const FIXED: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

impl SealedMemory {
    /// Creates `bytes` of zeroed memory.
    ///
    /// # Errors
    /// `MFILE`: no more descriptors. `NOMEM`. `INVAL`: `bytes` is 0. Injected errors.
    pub fn new(bytes: usize, writers: Writers) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the kernel reads the name up to its NUL.
        let number =
            unsafe { call(libc::SYS_memfd_create, [c"kyocho".as_ptr().addr(), flags as usize]) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        let file = unsafe { owned(number) };
        fault::check(Call::Open)?;
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_ftruncate, [number, bytes]) }?;
        let base = map(&file, bytes, Use::ReadWrite)?;
        let memory = Self { file, base, bytes };
        let seals = match writers {
            Writers::All => FIXED | libc::F_SEAL_SEAL,
            Writers::Maker => FIXED | libc::F_SEAL_SEAL | libc::F_SEAL_FUTURE_WRITE,
        };
        fault::check(Call::Open)?;
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_fcntl, [number, libc::F_ADD_SEALS as usize, seals as usize]) }?;
        Ok(memory)
    }

    /// Maps memory received from another process.
    ///
    /// # Errors
    /// `PERM`: its length is not sealed, or it is read-only. `INVAL`: it is empty or longer than
    /// `bytes_max`. Injected errors.
    pub fn receive(file: OwnedFd, bytes_max: usize, wanted: Use) -> Result<Self, Errno> {
        let number = file.as_raw_fd() as usize;
        // SAFETY: takes numbers.
        let seals = unsafe { call(libc::SYS_fcntl, [number, libc::F_GET_SEALS as usize]) };
        if seals.map_or(0, |seals| seals as i32) & FIXED != FIXED {
            return Err(Errno::PERM);
        }
        // SAFETY: a `stat` consists of numbers, for which zero is a valid value.
        let mut found: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: the kernel writes one `stat` to `found`.
        if unsafe { libc::fstat(file.as_raw_fd(), &raw mut found) } != 0 {
            return Err(Errno::last());
        }
        let bytes = usize::try_from(found.st_size).unwrap_or(0);
        if bytes == 0 || bytes > bytes_max {
            return Err(Errno::INVAL);
        }
        let base = map(&file, bytes, wanted)?;
        Ok(Self { file, base, bytes })
    }

    /// Address of the first byte; page-aligned.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.base
    }

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// A word of the memory, which other processes may change. It must not be written if the memory
    /// was mapped for reading.
    ///
    /// # Panics
    /// It lies outside of the memory, or `offset` is not a multiple of 4.
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, size_of::<AtomicU32>());
        assert!(
            offset.is_multiple_of(align_of::<AtomicU32>()),
            "the offset of a word must be a multiple of 4"
        );
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned; an atomic word.
        unsafe { &*ptr::with_exposed_provenance(self.base + offset) }
    }

    /// Copies bytes to the memory. If other processes write there meanwhile, the result is a
    /// mixture. The memory must not have been mapped for reading only.
    ///
    /// # Panics
    /// The range exceeds the memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        let to = ptr::with_exposed_provenance_mut(self.base + offset);
        // SAFETY: inside the mapping; `bytes` are private.
        unsafe { copy_shared(to, bytes.as_ptr(), bytes.len()) };
    }

    /// Copies bytes from the memory. If other processes write there meanwhile, the result is a
    /// mixture.
    ///
    /// # Panics
    /// The range exceeds the memory.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        let from = ptr::with_exposed_provenance(self.base + offset);
        // SAFETY: inside the mapping; `into` is private.
        unsafe { copy_shared(into.as_mut_ptr(), from, into.len()) };
    }

    fn check(&self, offset: usize, bytes: usize) {
        let fits = offset <= self.bytes && bytes <= self.bytes - offset;
        assert!(fits, "the range exceeds the memory");
    }
}

impl AsFd for SealedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SealedMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`; pointers made from its addresses are not used any more.
        let answer = unsafe { call(libc::SYS_munmap, [self.base, self.bytes]) };
        debug_assert!(answer.is_ok(), "munmap: {answer:?}");
    }
}

fn map(file: &OwnedFd, bytes: usize, wanted: Use) -> Result<usize, Errno> {
    fault::check(Call::Mmap)?;
    let protection = match wanted {
        Use::Read => libc::PROT_READ,
        Use::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
    };
    let descriptor = file.as_raw_fd() as usize;
    let arguments = [0, bytes, protection as usize, libc::MAP_SHARED as usize, descriptor, 0];
    // SAFETY: requests a mapping at an address chosen by the kernel, so existing memory does not
    // change.
    unsafe { call(libc::SYS_mmap, arguments) }
}

#[cfg(test)]
mod tests {
    use super::{SealedMemory, Use, Writers};
    use crate::error::Errno;
    use crate::prim::atomic::unmodelled::Ordering;
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};

    fn again(memory: &SealedMemory) -> OwnedFd {
        memory.as_fd().try_clone_to_owned().unwrap()
    }

    #[test]
    fn sealed_length_cannot_change() {
        let memory = SealedMemory::new(8192, Writers::All).unwrap();
        let file = File::from(again(&memory));
        for bytes in [0, 4096, 16_384] {
            assert_eq!(file.set_len(bytes).unwrap_err().raw_os_error(), Some(libc::EPERM));
        }
        let other = SealedMemory::receive(again(&memory), 8192, Use::ReadWrite).unwrap();
        assert_eq!(other.bytes(), 8192);
        assert_ne!(other.base(), memory.base());
    }

    #[test]
    fn one_mapping_reads_what_the_other_wrote() {
        let memory = SealedMemory::new(4096, Writers::All).unwrap();
        let other = SealedMemory::receive(again(&memory), 4096, Use::ReadWrite).unwrap();
        memory.write(3, b"words");
        memory.word(4092).store(7, Ordering::Relaxed);
        let mut read = [0; 7];
        other.read(2, &mut read);
        assert_eq!(&read, b"\0words\0");
        assert_eq!(other.word(4092).load(Ordering::Relaxed), 7);
    }

    #[test]
    #[should_panic(expected = "exceeds the memory")]
    fn writing_beyond_the_end_panics() {
        SealedMemory::new(4096, Writers::All).unwrap().write(4092, b"words");
    }

    #[test]
    fn memory_with_one_writer_is_read_only_for_others() {
        let memory = SealedMemory::new(4096, Writers::Maker).unwrap();
        assert_eq!(
            SealedMemory::receive(again(&memory), 4096, Use::ReadWrite).unwrap_err(),
            Errno::PERM
        );
        assert!(SealedMemory::receive(again(&memory), 4096, Use::Read).is_ok());
    }

    #[test]
    fn unsealed_empty_and_oversized_memory_is_refused() {
        let path = std::env::temp_dir().join(format!("kyocho-unsealed-{}", std::process::id()));
        let file = File::create_new(&path).unwrap();
        file.set_len(4096).unwrap();
        std::fs::remove_file(&path).unwrap();
        let refused = SealedMemory::receive(file.into(), 4096, Use::Read);
        assert_eq!(refused.unwrap_err(), Errno::PERM);
        let memory = SealedMemory::new(8192, Writers::All).unwrap();
        let refused = SealedMemory::receive(again(&memory), 4096, Use::Read);
        assert_eq!(refused.unwrap_err(), Errno::INVAL);
        assert!(SealedMemory::new(0, Writers::All).is_err());
    }
}
