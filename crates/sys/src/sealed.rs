//! Memory that processes hand to each other as a descriptor (`memfd`), sealed so that none of them can cut it short.
//!
//! Without the seal a peer that shortens the file turns every look behind the new end into `SIGBUS`. So memory that comes from
//! another process is mapped only if the kernel vouches for its length. What the peer *writes* there is an allegation as before.
#![expect(unsafe_code, reason = "maps descriptors; calls on structures")]

use core::ptr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::memory::copy_shared;
use crate::prim::atomic::unmodelled::AtomicU32;
use crate::raw::{call, owned};

/// Who may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Everybody who gets the descriptor.
    All,
    /// The maker alone: later mappings are for reading (`F_SEAL_FUTURE_WRITE`).
    Maker,
}

/// What a mapping of received memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// Mapped memory of a fixed length, unmapped when dropped. Its addresses are exposed: the owner turns offsets into pointers to
/// atomic words itself.
#[derive(Debug)]
pub struct SealedMemory {
    file: OwnedFd,
    base: usize,
    bytes: usize,
}

/// The length can neither shrink nor grow, and nobody can change that.
const FIXED: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

impl SealedMemory {
    /// Makes `bytes` of zeroed memory.
    ///
    /// # Errors
    /// `MFILE`: no more descriptors. `NOMEM`. `INVAL`: no bytes at all. Injected ones.
    pub fn new(bytes: usize, writers: Writers) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the kernel reads the name up to its NUL.
        let number =
            unsafe { call(libc::SYS_memfd_create, [c"kyocho".as_ptr().addr(), flags as usize]) }?;
        // SAFETY: the kernel has just made it, for us.
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

    /// Maps memory that came from another process.
    ///
    /// # Errors
    /// `PERM`: its length is not sealed, or it may not be written. `INVAL`: it is empty or longer than `bytes_max`. Injected ones.
    pub fn receive(file: OwnedFd, bytes_max: usize, wanted: Use) -> Result<Self, Errno> {
        let number = file.as_raw_fd() as usize;
        // SAFETY: takes numbers.
        let seals = unsafe { call(libc::SYS_fcntl, [number, libc::F_GET_SEALS as usize]) };
        if seals.map_or(0, |seals| seals as i32) & FIXED != FIXED {
            return Err(Errno::PERM);
        }
        // SAFETY: a `stat` is numbers, for which all zero is a value.
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

    /// Length.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// A word of it, which other processes change as they like. Memory that was mapped for reading must not be written.
    ///
    /// # Panics
    /// It lies outside, or not at a multiple of 4.
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, size_of::<AtomicU32>());
        assert!(offset.is_multiple_of(align_of::<AtomicU32>()), "a word lies at a multiple of 4");
        // SAFETY: inside of the mapping, which lasts as long as `self`, and aligned; an atomic word.
        unsafe { &*ptr::with_exposed_provenance(self.base + offset) }
    }

    /// Copies bytes into it. Others that write there meanwhile get any mixture. Memory that was mapped for reading must not be written.
    ///
    /// # Panics
    /// The range leaves the memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        let to = ptr::with_exposed_provenance_mut(self.base + offset);
        // SAFETY: inside of the mapping; `bytes` are our own.
        unsafe { copy_shared(to, bytes.as_ptr(), bytes.len()) };
    }

    /// Copies bytes out of it: what was there once, or, where others write meanwhile, any mixture.
    ///
    /// # Panics
    /// The range leaves the memory.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        let from = ptr::with_exposed_provenance(self.base + offset);
        // SAFETY: inside of the mapping; `into` is our own.
        unsafe { copy_shared(into.as_mut_ptr(), from, into.len()) };
    }

    fn check(&self, offset: usize, bytes: usize) {
        let fits = offset <= self.bytes && bytes <= self.bytes - offset;
        assert!(fits, "the range leaves the memory");
    }
}

impl AsFd for SealedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SealedMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`; whoever made pointers from its addresses no longer uses them.
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
    // SAFETY: asks for a mapping at an address of the kernel's choice: nothing existing changes.
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
    fn nobody_can_change_the_length() {
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
    fn what_one_mapping_is_written_the_other_reads() {
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
    #[should_panic(expected = "leaves the memory")]
    fn nothing_is_written_behind_the_end() {
        SealedMemory::new(4096, Writers::All).unwrap().write(4092, b"words");
    }

    #[test]
    fn memory_of_the_maker_is_read_only_elsewhere() {
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
