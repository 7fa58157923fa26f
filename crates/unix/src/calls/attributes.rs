//! Permissions, owners, times and lengths of files.

use crate::errors::host;
use crate::paths::walk::Node;
use crate::server::{Answer, DONE, Request};
use kyocho_sys::error::Errno;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};

impl Request<'_> {
    /// The file whose attributes change: the one at a path, or an open one.
    fn changed(&self, directory: i32, path: Option<usize>, flags: i32) -> Result<Node, Errno> {
        let node = match path {
            Some(path) => self.find(directory, path, flags)?,
            None => self.server.node_of(&self.client, self.client.descriptor(directory)?)?,
        };
        node.must_be_own()?;
        Ok(node)
    }

    pub(crate) fn change_mode(
        &self,
        directory: i32,
        path: Option<usize>,
        mode: u64,
        flags: i32,
    ) -> Result<Answer, Errno> {
        let node = self.changed(directory, path, flags)?;
        if node.kind == FileType::Symlink {
            return Err(Errno::new(libc::EOPNOTSUPP));
        }
        let mode = Mode::from_raw_mode(mode as u32 & 0o7777);
        rustix::fs::chmod(node.descriptor_path().as_str(), mode).map_err(host)?;
        DONE
    }

    pub(crate) fn change_owner(
        &self,
        directory: i32,
        path: Option<usize>,
        owner: usize,
        flags: i32,
    ) -> Result<Answer, Errno> {
        let node = self.changed(directory, path, flags)?;
        let number = |index| Some(self.word(index) as u32).filter(|number| *number != u32::MAX);
        let (user, group) =
            (number(owner).map(Uid::from_raw), number(owner + 1).map(Gid::from_raw));
        rustix::fs::chownat(&node.file, "", user, group, AtFlags::EMPTY_PATH).map_err(host)?;
        DONE
    }

    pub(crate) fn change_times(&self) -> Result<Answer, Errno> {
        let path = Some(1).filter(|index| self.word(*index) != 0);
        let node = self.changed(self.int(0), path, self.int(3))?;
        let times = match self.word(2) {
            0 => Timestamps { last_access: NOW, last_modification: NOW },
            address => Timestamps {
                last_access: self.time(address)?,
                last_modification: self.time(address + 16)?,
            },
        };
        if node.kind == FileType::Symlink {
            // The link itself, by its directory and its name.
            let above = self.server.node(&self.client, crate::state::mounts::parent(&node.path))?;
            let name = node.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(&above.file, name, &times, flags).map_err(host)?;
        } else {
            let flags = AtFlags::empty();
            rustix::fs::utimensat(rustix::fs::CWD, node.descriptor_path().as_str(), &times, flags)
                .map_err(host)?;
        }
        DONE
    }

    fn time(&self, address: u64) -> Result<Timespec, Errno> {
        let [seconds, nanoseconds] = [self.client.word(address)?, self.client.word(address + 8)?];
        Ok(Timespec { tv_sec: seconds as i64, tv_nsec: nanoseconds as i64 })
    }

    pub(crate) fn truncate(&self) -> Result<Answer, Errno> {
        let node = self.changed(libc::AT_FDCWD, Some(0), 0)?;
        match node.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::new(libc::EISDIR)),
            _ => return Err(Errno::INVAL),
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(node.descriptor_path().as_str(), flags, Mode::empty())
            .map_err(host)?;
        self.server.running.must_not_run(&file)?;
        rustix::fs::ftruncate(&file, self.word(1)).map_err(host)?;
        DONE
    }
}

/// The present time, in place of nanoseconds, as the host reads it.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
