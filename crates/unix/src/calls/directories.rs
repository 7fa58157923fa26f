//! Making, removing and renaming entries of directories.

use crate::errors::host;
use crate::paths::walk::{FinalLink, Slot};
use crate::server::{Answer, DONE, Request};
use kyocho_sys::error::Errno;
use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};

/// A directory's descriptor, and which argument is the path.
pub(crate) type At = (i32, usize);

impl Request<'_> {
    /// The place that directory and path name, where an entry will change.
    fn place(&self, (directory, path): At) -> Result<Slot, Errno> {
        let path = self.path(path)?;
        let base = if path.starts_with(b"/") { Vec::new() } else { self.base_of(directory)? };
        let slot = self.server.slot(&self.client, &base, &path)?;
        self.open_directory(&slot.directory)?;
        Ok(slot)
    }

    /// A place in a directory that may be written.
    fn writable(&self, at: At) -> Result<Slot, Errno> {
        let slot = self.place(at)?;
        slot.directory.must_be_writable()?;
        Ok(slot)
    }

    /// A place whose entry may be removed: writable, and no mount is at it.
    fn removable(&self, at: At) -> Result<Slot, Errno> {
        let slot = self.writable(at)?;
        if self.server.mounts.holds_mount(&slot.path()) {
            return Err(Errno::BUSY);
        }
        Ok(slot)
    }

    fn mode(&self, word: u64) -> Result<Mode, Errno> {
        Ok(Mode::from_raw_mode(word as u32 & 0o7777 & !self.client.umask()?))
    }

    pub(crate) fn make_directory(&self, directory: i32, path: usize) -> Result<Answer, Errno> {
        let slot = self.place((directory, path))?;
        let name = slot.name.as_slice();
        if self.server.node(&self.client, &slot.path()).is_ok() {
            return Err(Errno::new(libc::EEXIST));
        }
        slot.directory.must_be_writable()?;
        let mode = self.mode(self.word(path + 1))?;
        rustix::fs::mkdirat(&slot.directory.file, name, mode).map_err(host)?;
        DONE
    }

    /// Files, named pipes and sockets. Devices would be the host's.
    pub(crate) fn make_node(&self, directory: i32, path: usize) -> Result<Answer, Errno> {
        let word = self.word(path + 1);
        let kind = match FileType::from_raw_mode(word as u32) {
            FileType::Unknown if word & u64::from(libc::S_IFMT) == 0 => FileType::RegularFile,
            kind @ (FileType::RegularFile | FileType::Fifo | FileType::Socket) => kind,
            _ => return Err(Errno::PERM),
        };
        let slot = self.writable((directory, path))?;
        let (mode, name) = (self.mode(word)?, slot.name.as_slice());
        rustix::fs::mknodat(&slot.directory.file, name, kind, mode, 0).map_err(host)?;
        DONE
    }

    pub(crate) fn unlink(&self, directory: i32, path: usize, flags: i32) -> Result<Answer, Errno> {
        let slot = self.removable((directory, path))?;
        if slot.wants_directory && flags & libc::AT_REMOVEDIR == 0 {
            return Err(Errno::new(libc::ENOTDIR));
        }
        let flags = AtFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        rustix::fs::unlinkat(&slot.directory.file, slot.name.as_slice(), flags).map_err(host)?;
        DONE
    }

    pub(crate) fn rename(&self, old: At, new: At, flags: u64) -> Result<Answer, Errno> {
        let (old, new) = (self.removable(old)?, self.removable(new)?);
        let flags = RenameFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        let (from, to) = (old.name.as_slice(), new.name.as_slice());
        rustix::fs::renameat_with(&old.directory.file, from, &new.directory.file, to, flags)
            .map_err(host)?;
        DONE
    }

    pub(crate) fn link(&self, old: At, new: At, flags: i32) -> Result<Answer, Errno> {
        let slot = self.writable(new)?;
        let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
        let stay = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        let node = self.find(old.0, old.1, flags & libc::AT_EMPTY_PATH | stay)?;
        node.must_be_own()?;
        let host_path = node.descriptor_path();
        let name = slot.name.as_slice();
        let target = &slot.directory.file;
        if node.kind == FileType::Symlink {
            // The link itself, by its directory and its name.
            let place = self.server.walk(
                &self.client,
                b"/",
                crate::state::mounts::parent(&node.path),
                FinalLink::Follow,
            )?;
            let own = node.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            rustix::fs::linkat(&place.file, own, target, name, AtFlags::empty()).map_err(host)?;
            return DONE;
        }
        let flags = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(rustix::fs::CWD, host_path.as_str(), target, name, flags)
            .map_err(host)?;
        DONE
    }

    pub(crate) fn symbolic_link(
        &self,
        text: usize,
        directory: i32,
        path: usize,
    ) -> Result<Answer, Errno> {
        let text = self.path(text)?;
        let slot = self.writable((directory, path))?;
        let name = slot.name.as_slice();
        rustix::fs::symlinkat(text.as_slice(), &slot.directory.file, name).map_err(host)?;
        DONE
    }
}
