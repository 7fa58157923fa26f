//! One caller, as the host knows it. The server remembers nothing of processes: the host keeps what
//! is needed, and inherits it at `fork`.
//!
//! The host names a caller by the number of its thread. Once the caller has died, another thread
//! may get that number. So what was learned by the number counts only if the call is seen to wait
//! afterwards: then the caller lives, and the number was its own all the time.
//!
//! **Invariant:** no method of [`Client`] returns what it learned of a caller that no longer waits
//! (`SRCH`), and none writes before it has checked that the caller waits.
//!
//! One gap remains. Between that check and the write, the caller can die and a process outside can
//! get its number. The host has no call that writes to a process known by a descriptor and checks
//! the permissions of its memory. It gives numbers out in turn, so all of them would have to be
//! used up between two system calls.

use crate::clients::tree::{is_client, status_field};
use crate::errors::host;
use kyocho_sys::error::Errno;
use kyocho_sys::remote;
use kyocho_sys::seccomp::{Listener, Notification};
use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;

/// A thread of a client process, which sleeps in the call that it made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client<'a> {
    thread: u32,
    /// The call that must still wait; `None` if the number cannot become another thread's.
    call: Option<(&'a Listener, u64)>,
}

/// Longest path, as on Linux.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

impl<'a> Client<'a> {
    /// The caller of `asked`.
    pub(crate) fn of(listener: &'a Listener, asked: &Notification) -> Self {
        Self { thread: asked.thread, call: Some((listener, asked.id)) }
    }

    /// The caller of code that runs before there is a client.
    pub(crate) fn own_process() -> Self {
        Self { thread: std::process::id(), call: None }
    }

    /// A thread that is stopped because this server traces it. Its number stays its own until that
    /// ends.
    pub(crate) fn traced(thread: u32) -> Self {
        Self { thread, call: None }
    }

    /// Returns what `look` learns by the thread's number, if that is about the caller.
    ///
    /// # Errors
    /// Those of `look`. `SRCH`: the caller no longer waits.
    fn learn<T>(&self, look: impl FnOnce(u32) -> Result<T, Errno>) -> Result<T, Errno> {
        let learned = look(self.thread);
        self.must_wait()?;
        learned
    }

    /// # Errors
    /// `SRCH`: the caller no longer waits.
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

    /// Reads its memory into `buffer`.
    ///
    /// # Errors
    /// `FAULT`: not all of it can be read.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        match self.read_some(address, buffer)? {
            all if all == buffer.len() => Ok(()),
            _ => Err(Errno::FAULT),
        }
    }

    /// Reads its memory up to the first byte that cannot be read. Returns how many bytes were read.
    ///
    /// # Errors
    /// `FAULT`: not even the first byte can be read.
    pub(crate) fn read_some(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.learn(|thread| remote::read(thread, address, buffer))
    }

    /// Writes `bytes` to its memory.
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

    /// A string in its memory, without the NUL. It is copied once, so that the bytes that were
    /// checked are the bytes that are used.
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
            // Never across the end of a page: the next page may not be mapped.
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

    /// The permission bits that are cleared in files it makes.
    ///
    /// # Errors
    /// `SRCH`: it is gone.
    pub(crate) fn umask(&self) -> Result<u32, Errno> {
        self.learn(|thread| status_field(thread, "Umask:", 8))
    }

    /// A copy of one of its descriptors, if that is for more than naming (`O_PATH`).
    ///
    /// # Errors
    /// `BADF`: it has no such descriptor.
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
    /// `BADF`: it has no such descriptor.
    pub(crate) fn any_descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let bad = Errno::new(libc::EBADF);
        if number < 0 {
            return Err(bad);
        }
        // The host finds the table through the leader of the process. Threads of a client share it.
        let process = self.process()?;
        self.learn(|_| descriptor_of(process, number))
    }

    /// The object behind one of its descriptors, as a descriptor for naming alone (`O_PATH`).
    ///
    /// # Errors
    /// `BADF`: it has no such descriptor.
    pub(crate) fn object(&self, number: i32) -> Result<OwnedFd, Errno> {
        let bad = Errno::new(libc::EBADF);
        if number < 0 {
            return Err(bad);
        }
        self.learn(|thread| {
            let host_path = format!("/proc/{thread}/fd/{number}");
            match rustix::fs::open(
                host_path.as_str(),
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
            ) {
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
            let host_path = match number {
                libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
                _ => format!("/proc/{thread}/fd/{number}"),
            };
            match rustix::fs::readlink(host_path.as_str(), Vec::new()) {
                Ok(text) => Ok(text.into_bytes()),
                Err(rustix::io::Errno::NOENT) if number >= 0 => Err(Errno::new(libc::EBADF)),
                Err(errno) => Err(host(errno)),
            }
        })
    }

    /// The fields of its `/proc/ID/stat` that follow the name. The name may contain anything.
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

/// A copy of descriptor `number` of a process of the instance. `id` is the number of the process,
/// or of one of its threads.
///
/// # Errors
/// `SRCH`: the instance has no such process. `BADF`: the process has no such descriptor.
pub(crate) fn descriptor_in(id: u32, number: i32) -> Result<OwnedFd, Errno> {
    let process = status_field(id, "Tgid:", 10)?;
    // The descriptor first: what is learned after it is about the process that it names.
    let handle = kyocho_sys::process::open(process)?;
    if is_client(process) { copy_of(&handle, number) } else { Err(Errno::SRCH) }
}

#[cfg(test)]
mod tests;
