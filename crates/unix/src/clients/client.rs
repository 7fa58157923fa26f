//! One caller, as the host knows it. The server remembers nothing of processes: what it needs, the host keeps, and inherits at `fork`.
//!
//! The host names a caller by its thread's number, which is another's once the caller has died. So nothing that was learned by the number counts before the call is
//! known to wait still: then the caller lives, and the number was its own all the time.
//!
//! **Invariant:** no method of [`Client`] returns what it learned of a caller that does not wait any more (`SRCH`), and none writes before it has looked. Between that
//! look and the write a caller can die, and somebody outside get its number: the host has no call that writes to a process which it knows by other than its
//! number, and checks the permissions of its memory. It gives numbers out in turn, so all of them would have to be used up between two system calls.

use crate::clients::tree::{is_client, status_field};
use crate::errors::host;
use kyocho_sys::error::Errno;
use kyocho_sys::remote;
use kyocho_sys::seccomp::{Listener, Notification};
use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;

/// A thread of a client process, asleep in the call that it made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client<'a> {
    thread: u32,
    /// By which it is known that it waits; nothing where its number is its own anyway.
    call: Option<(&'a Listener, u64)>,
}

/// Longest path, as on Linux.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

impl<'a> Client<'a> {
    /// Who made the call `asked`.
    pub(crate) fn of(listener: &'a Listener, asked: &Notification) -> Self {
        Self { thread: asked.thread, call: Some((listener, asked.id)) }
    }

    /// Who asks before there is a client.
    pub(crate) fn nobody() -> Self {
        Self { thread: std::process::id(), call: None }
    }

    /// A thread that stands still because this server traces it: nobody else gets its number before that ends.
    pub(crate) fn traced(thread: u32) -> Self {
        Self { thread, call: None }
    }

    /// What `look` learns by the number of the thread, if that is about the caller.
    ///
    /// # Errors
    /// What `look` says. `SRCH`: the caller does not wait any more.
    fn learn<T>(&self, look: impl FnOnce(u32) -> Result<T, Errno>) -> Result<T, Errno> {
        let learned = look(self.thread);
        self.must_wait()?;
        learned
    }

    /// # Errors
    /// `SRCH`: the caller does not wait any more.
    pub(crate) fn must_wait(&self) -> Result<(), Errno> {
        match self.call {
            Some((listener, id)) if !listener.waits(id) => Err(Errno::SRCH),
            _ => Ok(()),
        }
    }

    /// The number of its thread.
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    /// Bytes of its memory.
    ///
    /// # Errors
    /// `FAULT`: not all of it can be read.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        match self.read_some(address, buffer)? {
            all if all == buffer.len() => Ok(()),
            _ => Err(Errno::FAULT),
        }
    }

    /// Bytes of its memory, up to where it cannot be read any more: how many.
    ///
    /// # Errors
    /// `FAULT`: not one of them can be read.
    pub(crate) fn read_some(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.learn(|thread| remote::read(thread, address, buffer))
    }

    /// Puts bytes into its memory.
    ///
    /// # Errors
    /// `FAULT`: not all of it can be written.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.must_wait()?;
        match self.learn(|thread| remote::write(thread, address, bytes))? {
            all if all == bytes.len() => Ok(()),
            _ => Err(Errno::FAULT),
        }
    }

    /// A word of its memory.
    ///
    /// # Errors
    /// `FAULT`.
    pub(crate) fn word(&self, address: u64) -> Result<u64, Errno> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A string of its memory, without its NUL: copied once, so that what was checked is what is used.
    ///
    /// # Errors
    /// `FAULT`. `NAMETOOLONG`: no NUL within `bytes_max`.
    pub(crate) fn string(&self, address: u64, bytes_max: usize) -> Result<Vec<u8>, Errno> {
        const PAGE: u64 = 4096;
        const FIRST: u64 = 256;
        let mut text = Vec::new();
        let mut step = FIRST;
        while text.len() < bytes_max {
            let at = address.checked_add(text.len() as u64).ok_or(Errno::FAULT)?;
            // Never over the end of a page, behind which there may be nothing.
            let mut chunk = [0; PAGE as usize];
            let bytes = step.min(PAGE - at % PAGE).min((bytes_max - text.len()) as u64) as usize;
            self.read(at, &mut chunk[..bytes])?;
            if let Some(end) = chunk[..bytes].iter().position(|byte| *byte == 0) {
                text.extend(&chunk[..end]);
                return Ok(text);
            }
            text.extend(&chunk[..bytes]);
            step = PAGE;
        }
        Err(Errno::new(libc::ENAMETOOLONG))
    }

    /// A path of its memory.
    ///
    /// # Errors
    /// As for [`Client::string`].
    pub(crate) fn path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        self.string(address, PATH_BYTES_MAX)
    }

    /// The number of its process.
    ///
    /// # Errors
    /// `SRCH`: it is gone.
    pub(crate) fn process(&self) -> Result<u32, Errno> {
        self.learn(|thread| status_field(thread, "Tgid:", 10))
    }

    /// The permissions that files it makes do not get.
    ///
    /// # Errors
    /// `SRCH`: it is gone.
    pub(crate) fn umask(&self) -> Result<u32, Errno> {
        self.learn(|thread| status_field(thread, "Umask:", 8))
    }

    /// A copy of one of its descriptors that is for more than naming.
    ///
    /// # Errors
    /// `BADF`: it has no such.
    pub(crate) fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let copy = self.any_descriptor(number)?;
        if rustix::fs::fcntl_getfl(&copy).map_err(host)?.contains(OFlags::PATH) {
            return Err(Errno::new(libc::EBADF));
        }
        Ok(copy)
    }

    /// A copy of one of its descriptors.
    ///
    /// # Errors
    /// `BADF`: it has no such.
    pub(crate) fn any_descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let bad = Errno::new(libc::EBADF);
        if number < 0 {
            return Err(bad);
        }
        // The table belongs to the process; a thread's own is only reachable through its leader's, which nobody unshares here.
        let process = self.process()?;
        self.learn(|_| descriptor_of(process, number))
    }

    /// The object behind one of its descriptors, as a descriptor that permits nothing but naming it (`O_PATH`).
    ///
    /// # Errors
    /// `BADF`: it has no such.
    pub(crate) fn object(&self, number: i32) -> Result<OwnedFd, Errno> {
        let bad = Errno::new(libc::EBADF);
        if number < 0 {
            return Err(bad);
        }
        self.learn(|thread| {
            let shown = format!("/proc/{thread}/fd/{number}");
            match rustix::fs::open(shown.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
                Err(rustix::io::Errno::NOENT) => Err(bad),
                other => other.map_err(host),
            }
        })
    }

    /// The host path of one of its directories.
    ///
    /// # Errors
    /// `BADF`: it has no such descriptor.
    pub(crate) fn directory(&self, number: i32) -> Result<Vec<u8>, Errno> {
        if number < 0 && number != libc::AT_FDCWD {
            return Err(Errno::new(libc::EBADF));
        }
        self.learn(|thread| {
            let shown = match number {
                libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
                _ => format!("/proc/{thread}/fd/{number}"),
            };
            match rustix::fs::readlink(shown.as_str(), Vec::new()) {
                Ok(text) => Ok(text.into_bytes()),
                Err(rustix::io::Errno::NOENT) if number >= 0 => Err(Errno::new(libc::EBADF)),
                Err(errno) => Err(host(errno)),
            }
        })
    }

    /// Fields of its `/proc/ID/stat` behind the name, which may hold anything.
    ///
    /// # Errors
    /// `SRCH`: it is gone.
    pub(crate) fn statistics(&self) -> Result<Vec<String>, Errno> {
        self.learn(|thread| {
            let text = std::fs::read_to_string(format!("/proc/{thread}/stat"));
            let text = text.map_err(|_| Errno::SRCH)?;
            let (_, rest) = text.rsplit_once(')').ok_or(Errno::SRCH)?;
            Ok(rest.split_ascii_whitespace().map(str::to_owned).collect())
        })
    }
}

/// A copy of descriptor `number` of `process`.
fn descriptor_of(process: u32, number: i32) -> Result<OwnedFd, Errno> {
    let handle = kyocho_sys::process::open(process)?;
    copy_of(&handle, number)
}

fn copy_of(process: &OwnedFd, number: i32) -> Result<OwnedFd, Errno> {
    let flags = rustix::process::PidfdGetfdFlags::empty();
    rustix::process::pidfd_getfd(process, number, flags).map_err(host)
}

/// A copy of descriptor `number` of process `id` of the instance, or of the process that its thread `id` belongs to.
///
/// # Errors
/// `SRCH`: the instance has no such. `BADF`: it has no such descriptor.
pub(crate) fn descriptor_in(id: u32, number: i32) -> Result<OwnedFd, Errno> {
    let process = status_field(id, "Tgid:", 10)?;
    // The descriptor first: what is learned behind it is about the process that it names.
    let handle = kyocho_sys::process::open(process)?;
    if is_client(process) { copy_of(&handle, number) } else { Err(Errno::SRCH) }
}

#[cfg(test)]
mod tests;
