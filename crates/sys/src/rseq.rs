//! Restartable sequences of Linux: who registers a thread's area, and what to say where nobody can.
//!
//! The kernel keeps one area a thread. The C library registers it for every thread since glibc 2.35: then there is nothing to
//! do. Where it has not (an older one, another one, `GLIBC_TUNABLES=glibc.pthread.rseq=0`) each thread registers an area of our
//! own when it first needs it. Where somebody else has taken the place, or the kernel knows no such call, the error says so.
#![expect(unsafe_code, reason = "registers areas")]

use core::fmt;
use std::sync::OnceLock;

use kyocho_arch::rseq::{AREA_BYTES, Library, SIGNATURE, library, own_area, use_library};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// `RSEQ_FLAG_UNREGISTER` of linux/rseq.h.
const UNREGISTER: usize = 1;

/// Who registers the areas of this process's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registrar {
    /// The C library, before a thread runs.
    Library,
    /// We, when a thread first needs it ([`register_thread`]).
    Ourselves,
}

/// Why a thread has no area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The kernel has no such call, or forbids it: Linux 4.18 and no filter are needed.
    NoCall,
    /// Another library has registered an area of its own for this thread; the kernel keeps one.
    Taken,
    /// The kernel refused for another reason.
    Refused(Errno),
    /// The thread is ending: its area has been taken back.
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

/// Finds out once for the process who registers threads, and tells the sequences where areas lie.
///
/// # Errors
/// [`Unavailable`] where the first thread that asks cannot have an area; kept for the life of the process.
pub fn registrar() -> Result<Registrar, Unavailable> {
    static ANSWER: OnceLock<Result<Registrar, Unavailable>> = OnceLock::new();
    *ANSWER.get_or_init(|| match library() {
        Library::Registered(offset) => {
            // SAFETY: what `library` gave.
            unsafe { use_library(offset) };
            Ok(Registrar::Library)
        }
        Library::Off | Library::Ignorant => register_own().map(|()| Registrar::Ourselves),
    })
}

/// Gives the calling thread an area, unless it has one. Nothing after the first time; a system call then, where we register.
///
/// # Errors
/// [`Unavailable`]
pub fn register_thread() -> Result<(), Unavailable> {
    match registrar()? {
        Registrar::Library => Ok(()),
        Registrar::Ourselves => register_own(),
    }
}

/// Takes the area back before the thread's memory goes: a C library may unmap a stack that its thread still runs on.
struct Registration;

impl Drop for Registration {
    fn drop(&mut self) {
        // A refusal leaves the area registered, which is what it was.
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
        // INVAL: an area at another address. BUSY: this very area.
        Err(Errno::INVAL | Errno::BUSY) => Err(Unavailable::Taken),
        Err(errno) => Err(Unavailable::Refused(errno)),
    }
}

fn rseq(flags: usize) -> Result<(), Errno> {
    fault::check(Call::Rseq)?;
    let arguments = [own_area() as usize, AREA_BYTES as usize, flags, SIGNATURE as usize];
    // SAFETY: the area is in this thread's static TLS, and taken back before the thread ends.
    unsafe { call(libc::SYS_rseq, arguments) }?;
    Ok(())
}
