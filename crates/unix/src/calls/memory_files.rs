//! `memfd_create`, where memory has a limit.

use crate::server::{Answer, Request};
use crate::state::memory_files::NAME_BYTES_MAX;
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::Inherited;

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
}
