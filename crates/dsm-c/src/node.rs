//! The node of this thread, and its errors as C sees them.

use core::cell::RefCell;
use core::ffi::c_int;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use kyocho_dsm::{Dsm, DsmError, Error};

/// Exit code of a program that cannot go on, as where a page is lost.
pub(crate) const EXIT_LOST: i32 = 75;

thread_local! {
    static NODE: RefCell<Option<Dsm>> = const { RefCell::new(None) };
    /// Why the last call failed.
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's own answer.
    Dsm(Error),
    /// This thread has no node.
    NotJoined,
    /// It has one already.
    Joined,
    /// A lock was not to be had at once.
    Busy,
    /// It was not to be had in time.
    TimedOut,
    /// What C passed cannot be.
    Invalid(String),
    /// A defect of the library, told on standard error.
    Panicked,
}

impl From<Error> for Failure {
    fn from(why: Error) -> Self {
        Self::Dsm(why)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dsm(why) => why.fmt(f),
            Self::NotJoined => {
                f.write_str("this thread has no node: join first, on the thread that works")
            }
            Self::Joined => f.write_str("this thread has a node already"),
            Self::Busy => f.write_str("somebody else has the lock"),
            Self::TimedOut => f.write_str("somebody else had the lock all the time"),
            Self::Invalid(what) => f.write_str(what),
            Self::Panicked => {
                f.write_str("a defect of the library; a message is on standard error")
            }
        }
    }
}

impl Failure {
    /// Its error number.
    fn number(&self) -> c_int {
        match self {
            Self::Dsm(Error::Protocol(why)) => match why {
                DsmError::OutOfRange(_) => libc::EINVAL,
                DsmError::NotHeld(_) => libc::EPERM,
                DsmError::AlreadyHeld(_) => libc::EDEADLK,
                DsmError::CallOutstanding => libc::EBUSY,
                DsmError::PeerLost(..) => libc::EHOSTDOWN,
                DsmError::PeerLeft(..) => libc::ESHUTDOWN,
                _ => libc::EPROTO,
            },
            Self::Dsm(Error::Join(_)) => libc::EHOSTUNREACH,
            Self::Dsm(Error::Environment(_)) | Self::Invalid(_) => libc::EINVAL,
            Self::Dsm(Error::Size { .. } | Error::Full { .. }) => libc::ENOMEM,
            Self::Dsm(Error::Host(why)) => why.number(),
            Self::Dsm(_) => libc::EIO,
            Self::NotJoined => libc::ENOTCONN,
            Self::Joined => libc::EISCONN,
            Self::Busy => libc::EBUSY,
            Self::TimedOut => libc::ETIMEDOUT,
            Self::Panicked => libc::ENOTRECOVERABLE,
        }
    }
}

pub(crate) type Result<T> = core::result::Result<T, Failure>;

/// Runs `body` for C: 0, or the number of its error.
pub(crate) fn answer(body: impl FnOnce() -> Result<()>) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(why) => {
            WORDS.with_borrow_mut(|words| *words = why.to_string());
            why.number()
        }
    }
}

/// Runs `body` for a program that cannot be told of an error: says it and ends the program.
pub(crate) fn or_end<T>(body: impl FnOnce() -> Result<T>) -> T {
    caught(body).unwrap_or_else(|why| {
        let rank = with(|dsm| Ok(dsm.rank())).unwrap_or(0);
        say(&format!("kyocho-dsm: node {rank}: {why}"));
        std::process::exit(EXIT_LOST)
    })
}

/// Writes a line in one piece, as other nodes write at the same time.
fn say(text: &str) {
    use std::io::Write;
    // A closed standard error leaves nobody to tell.
    let _told = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Failure::Panicked))
}

/// The words of the last error.
pub(crate) fn words() -> String {
    WORDS.with_borrow(Clone::clone)
}

/// Does something with this thread's node.
pub(crate) fn with<T>(body: impl FnOnce(&mut Dsm) -> Result<T>) -> Result<T> {
    NODE.with_borrow_mut(|node| body(node.as_mut().ok_or(Failure::NotJoined)?))
}

/// Gives this thread a node.
pub(crate) fn enter(join: impl FnOnce() -> Result<Dsm>) -> Result<()> {
    NODE.with_borrow_mut(|node| {
        if node.is_some() {
            return Err(Failure::Joined);
        }
        *node = Some(join()?);
        Ok(())
    })
}

/// Takes it away in good order.
pub(crate) fn leave() -> Result<()> {
    let node = NODE.with_borrow_mut(Option::take).ok_or(Failure::NotJoined)?;
    Ok(node.leave()?)
}
