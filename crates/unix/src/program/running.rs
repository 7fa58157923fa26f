//! The programs that run. As on Linux, the file of a running program cannot be written (`ETXTBSY`),
//! under any name.
//!
//! The host executes nothing but the launcher, so it does not know which programs run. Instead each
//! program has a *mark*, a memory file. Each process that enters the program maps its page below
//! the guard, where no client can unmap it. `fork` inherits the mapping; `execve` and the end of
//! the process remove it. So the host does the counting.
//!
//! ```text
//!   enter a program     ─► its mark ─► plan: mmap(MARK, shared, writable), close
//!   open it for writing ─► its mark ─► seal it against writing: fails while it is mapped
//! ```
//!
//! A mark that was sealed cannot be mapped again, and is forgotten.

use crate::errors::host;
use kyocho_sys::error::Errno;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

const NAME: &str = "kyocho-running";
/// A process of the instance runs the program.
const BUSY: Errno = Errno::new(libc::ETXTBSY);
/// Most marks before those of ended programs are removed.
const MARKS_MAX: usize = 128;

/// The memory file of one program. The program also counts as running while a copy of this exists.
#[derive(Debug, Clone)]
pub(crate) struct Mark(Arc<OwnedFd>);

impl AsFd for Mark {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Mark {
    fn new() -> Result<Self, Errno> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(NAME, flags).map_err(host)?;
        ftruncate(&file, crate::program::launcher::MARK_BYTES as u64).map_err(host)?;
        Ok(Self(Arc::new(file)))
    }

    /// Whether the program runs or is about to. If not, the mark can no longer be mapped. If the
    /// host does not say, the program counts as running.
    fn is_used(&self) -> bool {
        /// The copy in the table.
        const OWN: usize = 1;
        Arc::strong_count(&self.0) > OWN || fcntl_add_seals(&self.0, SealFlags::WRITE).is_err()
    }
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(file: &OwnedFd) -> Result<Identity, Errno> {
    let status = fstat(file).map_err(host)?;
    Ok((status.st_dev, status.st_ino))
}

/// The marks of an instance.
#[derive(Debug, Default)]
pub(crate) struct Running {
    marks: Mutex<HashMap<Identity, Mark>>,
}

impl Running {
    /// The mark of the program in `file`, which is about to be entered.
    ///
    /// # Errors
    /// No descriptor, no memory.
    pub(crate) fn mark(&self, file: &OwnedFd) -> Result<Mark, Errno> {
        let identity = identity(file)?;
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mark) = marks.get(&identity) {
            return Ok(mark.clone());
        }
        if marks.len() >= MARKS_MAX {
            marks.retain(|_, mark| mark.is_used());
        }
        let mark = Mark::new()?;
        marks.insert(identity, mark.clone());
        Ok(mark)
    }

    /// # Errors
    /// `TXTBSY`: a process of the instance runs the program in `file`.
    pub(crate) fn must_not_run(&self, file: &OwnedFd) -> Result<(), Errno> {
        let identity = identity(file)?;
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        match marks.get(&identity) {
            Some(mark) if mark.is_used() => Err(BUSY),
            Some(_) => {
                marks.remove(&identity);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Whether the text of a link of the host's is the name of a mark.
pub(crate) fn is_mark(text: &[u8]) -> bool {
    text.strip_prefix(b"/memfd:").is_some_and(|name| name.starts_with(NAME.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{BUSY, MARKS_MAX, Mark, Running, is_mark};
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};

    fn file() -> OwnedFd {
        memfd_create("program", MemfdFlags::CLOEXEC).unwrap()
    }

    #[test]
    fn a_program_runs_as_long_as_its_mark_is_held() {
        let (running, program, other) = (Running::default(), file(), file());
        let [mark, again] = [(); 2].map(|()| running.mark(&program).unwrap());
        drop(mark);
        assert_eq!(running.must_not_run(&program), Err(BUSY));
        assert_eq!(running.must_not_run(&other), Ok(()));
        drop(again);
        assert_eq!(running.must_not_run(&program), Ok(()));
        assert!(running.marks.lock().unwrap().is_empty());
    }

    #[test]
    fn marks_of_programs_that_ended_are_forgotten() {
        let running = Running::default();
        let (kept, program) = (file(), file());
        let mark = running.mark(&kept).unwrap();
        let ended: Vec<OwnedFd> = (0..2 * MARKS_MAX).map(|_| file()).collect();
        for ended in &ended {
            drop(running.mark(ended).unwrap());
        }
        assert!(running.marks.lock().unwrap().len() <= MARKS_MAX);
        assert_eq!(running.must_not_run(&kept), Err(BUSY));
        drop((mark, running.mark(&program).unwrap()));
        assert_eq!(running.must_not_run(&kept), Ok(()));
    }

    #[test]
    fn a_mark_is_known_by_its_name() {
        let mark = Mark::new().unwrap();
        let host_path = format!("/proc/self/fd/{}", mark.as_fd().as_raw_fd());
        let text = rustix::fs::readlink(host_path.as_str(), Vec::new()).unwrap();
        assert!(is_mark(text.as_bytes()) && !is_mark(b"/memfd:program"));
    }
}
