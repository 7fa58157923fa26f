//! Linux's restartable sequences: registration of each thread's area, and errors if it is not
//! possible.
//!
//! The kernel keeps one area for each thread. Since glibc 2.35 the C library registers it for every
//! thread. If it has not (an older or another C library, or `GLIBC_TUNABLES=glibc.pthread.rseq=0`),
//! each thread registers an area when it first needs one. If another library has registered an
//! area, or the kernel has no such call, the error says so.
#![expect(unsafe_code, reason = "registers areas")]

use core::fmt;
use std::sync::OnceLock;

use kyocho_arch::rseq::{AREA_BYTES, Library, SIGNATURE, library, own_area, use_library};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// `RSEQ_FLAG_UNREGISTER` of linux/rseq.h.
const UNREGISTER: usize = 1;

/// Which code registers the areas of this process's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registrar {
    /// The C library, before a thread runs.
    Library,
    /// This crate, when a thread first needs it ([`register_thread`]).
    Ourselves,
}

/// The reason why a thread has no area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The kernel has no such call (Linux 4.18 has it), or a filter forbids it.
    NoCall,
    /// Another library has registered an area for this thread; the kernel keeps only one.
    Taken,
    /// The kernel refused for another reason.
    Refused(Errno),
    /// The thread is ending: its area was unregistered.
    Ending,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCall => {
                f.write_str("this kernel has no rseq (Linux 4.18), or a filter hides it")
            }
            Self::Taken => f.write_str("another library has registered rseq for this thread"),
            Self::Refused(errno) => write!(f, "the kernel refuses rseq: {errno}"),
            Self::Ending => f.write_str("this thread is ending"),
        }
    }
}

impl core::error::Error for Unavailable {}

/// Determines once for the process which code registers threads, and tells the sequences where the
/// areas are.
///
/// # Errors
/// [`Unavailable`] if the first thread that asks cannot have an area. The answer stays for the life
/// of the process.
pub fn registrar() -> Result<Registrar, Unavailable> {
    static ANSWER: OnceLock<Result<Registrar, Unavailable>> = OnceLock::new();
    *ANSWER.get_or_init(|| match library() {
        Library::Registered(offset) => {
            // SAFETY: the offset that `library` returned.
            unsafe { use_library(offset) };
            Ok(Registrar::Library)
        }
        Library::Off | Library::Ignorant => register_own().map(|()| Registrar::Ourselves),
    })
}

/// Registers an area for the calling thread unless it has one: a system call the first time, then
/// nothing.
///
/// # Errors
/// [`Unavailable`]
pub fn register_thread() -> Result<(), Unavailable> {
    match registrar()? {
        Registrar::Library => Ok(()),
        Registrar::Ourselves => register_own(),
    }
}

/// Unregisters the area before the thread's memory is freed: a C library may unmap a stack that its
/// thread still runs on.
struct Registration;

impl Drop for Registration {
    fn drop(&mut self) {
        // If refused, the area stays registered.
        let _answer = rseq(UNREGISTER);
    }
}

fn register_own() -> Result<(), Unavailable> {
    thread_local! {
        static REGISTRATION: Result<Registration, Unavailable> = register_area();
    }
    let answer = REGISTRATION.try_with(|answer| answer.as_ref().map(|_| ()).map_err(|why| *why));
    answer.unwrap_or(Err(Unavailable::Ending))
}

fn register_area() -> Result<Registration, Unavailable> {
    match rseq(0) {
        Ok(()) => Ok(Registration),
        Err(Errno::NOSYS | Errno::PERM) => Err(Unavailable::NoCall),
        // INVAL: an area at another address is registered. BUSY: this one is.
        Err(Errno::INVAL | Errno::BUSY) => Err(Unavailable::Taken),
        Err(errno) => Err(Unavailable::Refused(errno)),
    }
}

fn rseq(flags: usize) -> Result<(), Errno> {
    fault::check(Call::Rseq)?;
    let arguments = [own_area() as usize, AREA_BYTES as usize, flags, SIGNATURE as usize];
    // SAFETY: the area is in this thread's static TLS, and unregistered before the thread ends.
    unsafe { call(libc::SYS_rseq, arguments) }?;
    Ok(())
}
