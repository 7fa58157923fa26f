//! The call sites that a client rewrites by itself.

use crate::program::sites::{Site, is_library};
use crate::server::Request;
use kyocho_arch::launcher::{COUNT, LOCAL, SHARERS};
use kyocho_sys::error::Errno;
use std::os::fd::OwnedFd;

impl Request<'_> {
    /// Writes the sites of `file`, which the caller has opened as `path`, to the caller's page if
    /// the file is the C library. If that fails, nothing is rewritten.
    pub(crate) fn send_sites(&self, path: &[u8], file: &OwnedFd) {
        if let Some(sites) = &self.server.sites
            && is_library(path)
        {
            let _ = sites.of_library(file).and_then(|sites| self.write_sites(&sites));
        }
    }

    fn write_sites(&self, sites: &[Site]) -> Result<(), Errno> {
        let at = (LOCAL + COUNT) as u64;
        let mut count = [0; 4];
        self.client.read(at, &mut count)?;
        // Another thread of the caller is mapping a library.
        if count != [0; 4] {
            return Ok(());
        }
        let words = sites.iter().flat_map(|site| [site.offset, site.old, site.new]);
        let mut page = (sites.len() as u32).to_le_bytes().to_vec();
        page.extend(words.flat_map(u64::to_le_bytes));
        self.client.write(at, &page)
    }

    /// Makes the caller's page forget the process's number for good. Called before the caller makes
    /// a process that shares its memory, by a call that is not a site. That process must not read
    /// the number of the caller's.
    pub(crate) fn forget(&self) -> Result<(), Errno> {
        let at = (LOCAL + SHARERS) as u64;
        let mut sharers = [0; 4];
        self.client.read(at, &mut sharers)?;
        let more = u32::from_le_bytes(sharers).wrapping_add(1);
        self.client.write(at, &more.to_le_bytes())
    }
}
