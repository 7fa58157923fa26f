//! `memfd_create`, and shared memory without a file, if memory has a limit.

use crate::program::launcher;
use crate::program::loading::Completion;
use crate::server::{Answer, Request};
use crate::state::memory_files::NAME_BYTES_MAX;
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::Inherited;
use std::os::fd::AsFd;

/// The name of the file behind shared memory that the client made without one.
const UNNAMED: &[u8] = b"shared";
const PAGE: u64 = 4096;

impl Request<'_> {
    /// `memfd_create`, if memory has a limit.
    ///
    /// # Errors
    /// `INVAL`: the file is to be sealed, or to have huge pages.
    pub(crate) fn memory_file(&self) -> Result<Answer, Errno> {
        const KNOWN: u32 = libc::MFD_CLOEXEC | libc::MFD_EXEC;
        let name = self.client.string(self.word(0), NAME_BYTES_MAX + 1).map_err(|errno| {
            if errno.number() == libc::ENAMETOOLONG { Errno::INVAL } else { errno }
        })?;
        let flags = self.word(1) as u32;
        if flags & !KNOWN != 0 {
            return Err(Errno::INVAL);
        }
        let closes = flags & libc::MFD_CLOEXEC != 0;
        let inherited = if closes { Inherited::No } else { Inherited::Yes };
        Ok(Answer::Descriptor(self.server.memory_files.make(&name)?, inherited))
    }

    /// `mmap` of shared memory without a file, if memory has a limit.
    ///
    /// The host keeps all of such memory while a part of it is mapped, and counts only the part. So
    /// the client is diverted to map a memory file instead, whose size counts.
    ///
    /// # Errors
    /// `NOMEM`: it has huge pages, or there can be no more memory files or descriptors.
    pub(crate) fn map_shared(&self) -> Result<Answer, Errno> {
        let flags = self.word(3);
        if flags & libc::MAP_HUGETLB as u64 != 0 {
            return Err(Errno::NOMEM);
        }
        let file = self.server.memory_files.make(UNNAMED).map_err(|_| Errno::NOMEM)?;
        let bytes = self.word(1).checked_next_multiple_of(PAGE).ok_or(Errno::NOMEM)?;
        rustix::fs::ftruncate(&file, bytes).map_err(|_| Errno::NOMEM)?;
        let number = self.listener.give(self.asked.id, file.as_fd(), Inherited::No);
        let number = number.map_err(|_| Errno::NOMEM)? as u64;
        drop(file);
        self.divert(|_, registers| {
            registers.rip = launcher::address(|launcher| launcher.exec);
            registers.rax = libc::SYS_mmap as u64;
            [registers.rdi, registers.rsi, registers.rdx] = [0, 1, 2].map(|index| self.word(index));
            registers.r10 = flags & !(libc::MAP_ANONYMOUS as u64);
            [registers.r8, registers.r9] = [number, 0];
            Ok(Completion::Mapped(number))
        })
    }
}
