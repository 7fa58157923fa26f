//! Opening files, and describing them.

use crate::errors::{NOT_A_DIRECTORY, host};
use crate::paths::walk::{FinalLink, Node, Origin};
use crate::server::{Answer, DONE, Request};
use core::time::Duration;
use kyocho_microprocess::io::descriptor;
use kyocho_sys::error::Errno;
use kyocho_sys::opening::Opening;
use kyocho_sys::poll::Interest;
use kyocho_sys::seccomp::Inherited;
use kyocho_sys::status;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

/// The flags of `creat`.
pub(crate) const CREAT_FLAGS: u64 = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64;
/// How often making a file is retried if another process makes or removes it meanwhile.
const RACES_MAX: usize = 16;
/// A shared mapping of this device is memory without a file, which nothing counts. A descriptor for
/// reading permits none.
const ZERO: &[u8] = b"/dev/zero";
const EXISTS: Errno = Errno::new(libc::EEXIST);

fn wants_to_write(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC)
}

/// The flags for reading alone; writing is dropped from those for both.
///
/// # Errors
/// `ACCES`: they are for writing alone.
fn for_reading(flags: OFlags) -> Result<OFlags, Errno> {
    match flags & OFlags::RWMODE {
        OFlags::WRONLY => Err(Errno::new(libc::EACCES)),
        _ => Ok(flags.difference(OFlags::RWMODE)),
    }
}

impl Request<'_> {
    /// `open`. The arguments are the directory, the index of the path, flags, and the permissions
    /// of a new file.
    pub(crate) fn open(
        &self,
        directory: i32,
        path: usize,
        flags: u64,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let path = self.path(path)?;
        let base = if path.starts_with(b"/") { Vec::new() } else { self.base_of(directory)? };
        let flags = OFlags::from_bits_retain(flags as u32);
        let inherited =
            if flags.contains(OFlags::CLOEXEC) { Inherited::No } else { Inherited::Yes };
        if flags.contains(OFlags::PATH) {
            return self.open_naming(&base, &path, flags, inherited);
        }
        let file = self.open_at(&base, &path, flags, mode as u32)?;
        self.send_sites(&path, &file);
        Ok(Answer::Descriptor(file, inherited))
    }

    /// `open` with `O_PATH`. Of the other flags, only `O_NOFOLLOW`, `O_DIRECTORY` and `O_CLOEXEC`
    /// have an effect.
    fn open_naming(
        &self,
        base: &[u8],
        path: &[u8],
        flags: OFlags,
        inherited: Inherited,
    ) -> Result<Answer, Errno> {
        let last =
            if flags.contains(OFlags::NOFOLLOW) { FinalLink::Stay } else { FinalLink::Follow };
        let node = self.server.walk(&self.client, base, path, last)?;
        if flags.contains(OFlags::DIRECTORY) && node.kind != FileType::Directory {
            return Err(NOT_A_DIRECTORY);
        }
        // Links in `/proc` are the host's, with another text than inside.
        if node.kind == FileType::Symlink && self.server.is_synthetic(&node.path) {
            return Err(Errno::new(libc::ELOOP));
        }
        self.give_naming(node.file.as_fd(), inherited)
    }

    fn open_at(
        &self,
        base: &[u8],
        path: &[u8],
        flags: OFlags,
        mode: u32,
    ) -> Result<OwnedFd, Errno> {
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let stay = exclusive || flags.contains(OFlags::NOFOLLOW);
        let last = if stay { FinalLink::Stay } else { FinalLink::Follow };
        for _ in 0..RACES_MAX {
            match self.server.walk(&self.client, base, path, last) {
                Ok(_) if exclusive => return Err(EXISTS),
                Ok(node) => return self.open_node(&node, flags, mode),
                Err(errno) if errno.number() != libc::ENOENT => return Err(errno),
                Err(errno) if !flags.contains(OFlags::CREATE) => return Err(errno),
                Err(_) => {}
            }
            match self.make_file(base, path, flags, mode) {
                Err(EXISTS) => {}
                other => return other,
            }
        }
        Err(Errno::BUSY)
    }

    /// Opens a node that exists.
    fn open_node(&self, node: &Node, flags: OFlags, mode: u32) -> Result<OwnedFd, Errno> {
        if flags & OFlags::RWMODE != OFlags::WRONLY {
            node.must_be_readable()?;
        }
        match node.kind {
            FileType::Symlink => return Err(Errno::new(libc::ELOOP)),
            FileType::Socket => return Err(Errno::new(libc::ENXIO)),
            FileType::Directory if flags.contains(OFlags::CREATE) => {
                return Err(Errno::new(libc::EISDIR));
            }
            FileType::RegularFile | FileType::Directory if wants_to_write(flags) => {
                node.must_be_writable()?;
            }
            // Only devices below `/dev` are harmless.
            FileType::CharacterDevice | FileType::BlockDevice => self.server.check_device(node)?,
            _ if node.origin != Origin::Path && wants_to_write(flags) => node.must_be_writable()?,
            _ => {}
        }
        let unnamed = flags.contains(OFlags::TMPFILE);
        let mode = if unnamed { mode & !self.client.umask()? } else { 0 };
        let gone = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = if unnamed { flags } else { flags.difference(gone) };
        let mut flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        if self.server.limited.memory && node.path == ZERO {
            flags = for_reading(flags)?;
        }
        if node.kind == FileType::RegularFile && wants_to_write(flags) {
            return self.open_to_write(node, flags);
        }
        if node.kind == FileType::Fifo {
            return self.open_pipe(node, flags);
        }
        let file = rustix::fs::open(node.descriptor_path(), flags, Mode::from_raw_mode(mode))
            .map_err(host)?;
        self.server.note_terminal(node, &file);
        Ok(file)
    }

    /// Opens a file that may be a program. It is truncated only when no process is known to run it.
    /// A process that begins to run it meanwhile finds it open for writing.
    fn open_to_write(&self, node: &Node, flags: OFlags) -> Result<OwnedFd, Errno> {
        let for_reading = !flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        // Truncating requires permission to write.
        let access = if for_reading { OFlags::RDWR } else { OFlags::empty() };
        let opened = flags.difference(OFlags::TRUNC) | access;
        let host_path = node.descriptor_path();
        let file = rustix::fs::open(host_path.as_str(), opened, Mode::empty()).map_err(host)?;
        self.server.running.must_not_run(&file)?;
        if flags.contains(OFlags::TRUNC) {
            rustix::fs::ftruncate(&file, 0).map_err(host)?;
        }
        if for_reading {
            let again = flags.difference(OFlags::TRUNC);
            return rustix::fs::open(host_path.as_str(), again, Mode::empty()).map_err(host);
        }
        Ok(file)
    }

    /// Opens a named pipe, which may wait for its other end. The wait ends if the client dies.
    fn open_pipe(&self, node: &Node, flags: OFlags) -> Result<OwnedFd, Errno> {
        /// How often the server checks that a waiting client is alive.
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        /// How often the wait for a dead client is interrupted again.
        const AGAIN: Duration = Duration::from_millis(1);
        if flags.intersects(OFlags::NONBLOCK | OFlags::RDWR) {
            return rustix::fs::open(node.descriptor_path(), flags, Mode::empty()).map_err(host);
        }
        let path = CString::new(node.descriptor_path()).map_err(|_| Errno::INVAL)?;
        let opening = Opening::start(path, flags.bits() as i32)?;
        let mut pause = LOOK_EVERY;
        while !opening.is_over() {
            // Ready or not, the state is checked again.
            let _ = descriptor::ready(opening.as_fd(), Interest::Read, Some(pause));
            if self.client.must_wait().is_err() {
                opening.interrupt();
                pause = AGAIN;
            }
        }
        opening.finish()
    }

    /// Makes a file where there is none, also at the end of dangling links. `EXISTS` if another
    /// process made it meanwhile.
    fn make_file(
        &self,
        base: &[u8],
        path: &[u8],
        flags: OFlags,
        mode: u32,
    ) -> Result<OwnedFd, Errno> {
        let mut slot = self.server.slot(&self.client, base, path)?;
        for _ in 0..RACES_MAX {
            if slot.wants_directory {
                return Err(Errno::new(libc::EISDIR));
            }
            slot.directory.must_be_writable()?;
            let permissions = Mode::from_raw_mode(mode & 0o7777 & !self.client.umask()?);
            let new = flags | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let name = slot.name.as_slice();
            match rustix::fs::openat(self.open_directory(&slot.directory)?, name, new, permissions)
            {
                Err(rustix::io::Errno::EXIST) if !flags.contains(OFlags::EXCL) => {}
                other => return other.map_err(host),
            }
            // It is a file that was made meanwhile, or a dangling link.
            let there =
                self.server.walk(&self.client, &slot.directory.path, name, FinalLink::Stay)?;
            if there.kind != FileType::Symlink {
                return Err(EXISTS);
            }
            let text = there.read_link()?;
            slot = self.server.slot(&self.client, &slot.directory.path, &text)?;
        }
        Err(Errno::new(libc::ELOOP))
    }

    /// A directory node at which names can be resolved.
    pub(crate) fn open_directory<'a>(&self, node: &'a Node) -> Result<&'a OwnedFd, Errno> {
        if self.server.is_synthetic(&node.path) {
            return Err(Errno::new(libc::EACCES));
        }
        Ok(&node.file)
    }

    /// The node that directory and path name together. An empty path may mean the descriptor
    /// itself.
    pub(crate) fn find(&self, directory: i32, path: usize, flags: i32) -> Result<Node, Errno> {
        self.find_at(directory, &self.text(path, flags)?, flags)
    }

    /// The path that argument `path` points to. The argument may be null if the path may be empty.
    fn text(&self, path: usize, flags: i32) -> Result<Vec<u8>, Errno> {
        if self.word(path) == 0 && flags & libc::AT_EMPTY_PATH != 0 {
            return Ok(Vec::new());
        }
        self.path(path)
    }

    fn find_at(&self, directory: i32, path: &[u8], flags: i32) -> Result<Node, Errno> {
        if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            if directory == libc::AT_FDCWD {
                let base = self.base_of(directory)?;
                return self.server.node(&self.client, &base);
            }
            let file = self.client.any_descriptor(directory)?;
            return self.server.node_of(&self.client, file);
        }
        let base = if path.starts_with(b"/") { Vec::new() } else { self.base_of(directory)? };
        let stay = flags & libc::AT_SYMLINK_NOFOLLOW != 0;
        let last = if stay { FinalLink::Stay } else { FinalLink::Follow };
        self.server.walk(&self.client, &base, path, last)
    }

    /// The file that is asked about. It may be an open one to which no path leads: libraries ask
    /// this way for `fstat`.
    fn asked_about(&self, directory: i32, path: usize, flags: i32) -> Result<OwnedFd, Errno> {
        let text = self.text(path, flags)?;
        if text.is_empty() && flags & libc::AT_EMPTY_PATH != 0 && directory != libc::AT_FDCWD {
            return self.client.object(directory);
        }
        self.find_at(directory, &text, flags).map(|node| node.file)
    }

    pub(crate) fn stat(
        &self,
        directory: i32,
        path: usize,
        result: usize,
        flags: i32,
    ) -> Result<Answer, Errno> {
        let file = self.asked_about(directory, path, flags)?;
        self.client.write(self.word(result), &status::stat(file.as_fd())?)?;
        DONE
    }

    pub(crate) fn statx(&self) -> Result<Answer, Errno> {
        const SYNC_FLAGS: i32 = libc::AT_STATX_FORCE_SYNC | libc::AT_STATX_DONT_SYNC;
        let flags = self.int(2);
        let file = self.asked_about(self.int(0), 1, flags)?;
        let bytes = status::statx(file.as_fd(), (flags & SYNC_FLAGS) as u32, self.word(3) as u32)?;
        self.client.write(self.word(4), &bytes)?;
        DONE
    }

    pub(crate) fn statfs(&self) -> Result<Answer, Errno> {
        let node = self.find(libc::AT_FDCWD, 0, 0)?;
        self.client.write(self.word(1), &status::statfs(node.file.as_fd())?)?;
        DONE
    }

    pub(crate) fn access(
        &self,
        directory: i32,
        path: usize,
        wanted: i32,
        flags: i32,
    ) -> Result<Answer, Errno> {
        let node = self.find(directory, path, flags & !libc::AT_EACCESS)?;
        let wanted = Access::from_bits(wanted as u32).ok_or(Errno::INVAL)?;
        if wanted.contains(Access::WRITE_OK) && node.kind != FileType::CharacterDevice {
            node.must_be_writable()?;
        }
        let host_path = node.descriptor_path();
        if node.kind != FileType::Symlink {
            rustix::fs::accessat(rustix::fs::CWD, host_path.as_str(), wanted, AtFlags::empty())
                .map_err(host)?;
        }
        DONE
    }

    pub(crate) fn read_link(&self, directory: i32, path: usize) -> Result<Answer, Errno> {
        let (place, room) = (self.word(path + 1), self.word(path + 2) as usize);
        if room == 0 {
            return Err(Errno::INVAL);
        }
        let empty = libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW;
        let text = self.find(directory, path, empty)?.read_link()?;
        let kept = &text[..text.len().min(room)];
        self.client.write(place, kept)?;
        Ok(Answer::Value(kept.len() as i64))
    }

    pub(crate) fn current_directory(&self) -> Result<Answer, Errno> {
        let mut path = self.base_of(libc::AT_FDCWD)?;
        path.push(0);
        if path.len() > self.word(1) as usize {
            return Err(Errno::new(libc::ERANGE));
        }
        self.client.write(self.word(0), &path)?;
        Ok(Answer::Value(path.len() as i64))
    }
}
