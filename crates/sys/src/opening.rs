//! Opens a file that may block for long, in a kernel thread of its own, so that it can be
//! abandoned.
//!
//! ```text
//!   start ─► thread: open(path) ... waits for the other end of a named pipe ─► raises the event
//!   interrupt ─► a signal to that thread: open fails with INTR
//! ```
//!
//! A signal that arrives before the thread waits is lost. So a caller that abandons the opening
//! must interrupt repeatedly until it is done.
#![expect(unsafe_code, reason = "a handler, and opening with flags of a caller's")]

use core::ffi::c_void;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Errno;
use crate::event::Event;
use crate::fault::{self, Call};
use crate::prim::thread::Builder;
use crate::raw::{call, owned};
use crate::signal::{self, Delivery, HandlerOptions, Info, Signal};
use crate::thread_id::ThreadId;

/// Stack for one system call and the library's own frames.
const STACK_BYTES: usize = 64 << 10;
/// A real-time signal that nothing else of this program uses.
const SIGNAL: i32 = 11;

/// State shared by both threads.
#[derive(Debug)]
struct Shared {
    /// The opening thread, while it can be interrupted.
    thread: Mutex<Option<ThreadId>>,
    result: Mutex<Option<Result<OwnedFd, Errno>>>,
    over: Event,
}

/// A file that is being opened.
#[derive(Debug)]
pub struct Opening(Arc<Shared>);

impl Opening {
    /// Starts to open `path` with `flags` of `open`, which must not create a file. Allocates.
    ///
    /// # Errors
    /// `AGAIN`, `MFILE`, `NOMEM`: no thread or no descriptor available. Injected errors.
    pub fn start(path: CString, flags: i32) -> Result<Self, Errno> {
        install_handler()?;
        let over = Event::new()?;
        let shared = Arc::new(Shared { thread: Mutex::new(None), result: Mutex::new(None), over });
        let theirs = Arc::clone(&shared);
        let started =
            Builder::new().stack_size(STACK_BYTES).spawn(move || theirs.open(&path, flags));
        started.map_err(|error| Errno::new(error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
        Ok(Self(shared))
    }

    /// Whether the opening has succeeded or failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.result().is_some()
    }

    /// Interrupts the thread, so that the opening fails.
    pub fn interrupt(&self) {
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = *thread {
            // The thread has not ended: it would have cleared the field before.
            let _ = signal::send(thread, Signal::realtime(SIGNAL));
        }
    }

    /// Returns the file.
    ///
    /// # Errors
    /// The error of the opening; `INTR`: it was interrupted. `BUSY`: it is not done.
    pub fn finish(self) -> Result<OwnedFd, Errno> {
        self.0.result().take().unwrap_or(Err(Errno::BUSY))
    }
}

/// Readable when the opening is done.
impl AsFd for Opening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.over.as_fd()
    }
}

impl Shared {
    fn thread(&self, is: Option<ThreadId>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = is;
    }

    fn result(&self) -> MutexGuard<'_, Option<Result<OwnedFd, Errno>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, path: &CString, flags: i32) {
        let opened = signal::set_delivery(Signal::realtime(SIGNAL), Delivery::Unblock);
        self.thread(Some(ThreadId::current()));
        let opened = opened.and_then(|_| open(path, flags));
        self.thread(None);
        *self.result() = Some(opened);
        // Ignored: a waiting caller also checks from time to time.
        let _ = self.over.notify();
    }
}

fn open(path: &CString, flags: i32) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    let folder = libc::AT_FDCWD as usize;
    // SAFETY: the kernel reads `path` up to its NUL.
    let number =
        unsafe { call(libc::SYS_openat, [folder, path.as_ptr().addr(), flags as usize, 0]) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    Ok(unsafe { owned(number) })
}

/// Handlers are for a whole process: once is enough.
fn install_handler() -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        // SAFETY: the handler does nothing.
        unsafe { signal::install(Signal::realtime(SIGNAL), nothing, HandlerOptions::default()) }
            .map(drop)
    })
}

/// The handler's execution is what interrupts calls.
unsafe extern "C" fn nothing(_signal: i32, _info: *mut Info, _context: *mut c_void) {}

#[cfg(test)]
mod tests {
    use super::Opening;
    use crate::error::Errno;
    use crate::poll::{Interest, wait};
    use std::ffi::CString;
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    struct Pipe(PathBuf);

    impl Pipe {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("kyocho-{name}-{}", std::process::id()));
            let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
            Self(path)
        }

        fn opening(&self) -> Opening {
            let path = CString::new(self.0.clone().into_os_string().into_vec()).unwrap();
            Opening::start(path, libc::O_RDONLY | libc::O_CLOEXEC).unwrap()
        }
    }

    impl Drop for Pipe {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn an_opening_waits_for_the_other_end() {
        let pipe = Pipe::new("other-end");
        let opening = pipe.opening();
        assert!(!opening.is_over());
        let writer = std::fs::File::options().write(true).open(&pipe.0).unwrap();
        assert_eq!(wait([(opening.as_fd(), Interest::Read)], None), Ok(true));
        assert!(opening.is_over());
        drop(writer);
        assert!(opening.finish().is_ok());
    }

    #[test]
    fn interrupted_opening_fails() {
        let pipe = Pipe::new("interrupted");
        let opening = pipe.opening();
        while !opening.is_over() {
            opening.interrupt();
            crate::prim::thread::yield_now();
        }
        assert_eq!(opening.finish().unwrap_err(), Errno::INTR);
    }

    #[test]
    fn opening_a_missing_file_is_an_error() {
        let opening = Opening::start(c"/none/such".into(), libc::O_RDONLY).unwrap();
        assert_eq!(wait([(opening.as_fd(), Interest::Read)], None), Ok(true));
        assert_eq!(opening.finish().unwrap_err().number(), libc::ENOENT);
    }
}
