//! The node of this thread, or its thread slot at a node; errors as C sees them.

use core::cell::RefCell;
use core::ffi::c_int;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kyocho_dsm::{
    Dsm, DsmError, Error, NodeThread, RegionDifference, RegionFailure, SharedNode, ThreadSlot,
};

/// Exit code of a program that cannot continue, for example because a page is lost.
pub(crate) const EXIT_LOST: i32 = 75;

/// The relation of a thread to its node.
pub(crate) enum Role {
    /// The node's only thread.
    Node(Dsm),
    /// The thread that joined, while others have slots.
    SharedNode(SharedNode),
    /// A thread with a slot.
    NodeThread(NodeThread<'static>),
}

/// Slots that no thread has taken.
static SLOTS: Mutex<Vec<ThreadSlot<'static>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: RefCell<Option<Role>> = const { RefCell::new(None) };
    /// The error of the last call.
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of `kyocho-dsm`.
    Dsm(Error),
    /// This thread has no node.
    NotJoined,
    /// This thread has a node already.
    Joined,
    /// Threads with slots use the node.
    Shared,
    /// Some slots are still taken.
    SlotInUse,
    /// There are no slots.
    NoSlot,
    /// Only the thread that joined may do this, and only while it is the node's only thread.
    NotWhole,
    /// The lock was not available at once.
    Busy,
    /// The lock was not available in time.
    TimedOut,
    /// An argument from C is invalid.
    Invalid(String),
    /// An internal error of the library, reported on standard error.
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
                f.write_str("this thread has no node: call kyocho_dsm_join on it first")
            }
            Self::Joined => f.write_str("this thread has a node already"),
            Self::Shared => f.write_str("the node is shared: use a thread that has a slot"),
            Self::SlotInUse => f.write_str("a thread still has its slot"),
            Self::NoSlot => f.write_str("no thread slot is left: call kyocho_dsm_share first"),
            Self::NotWhole => f.write_str("only the thread that joined may do this"),
            Self::Busy => f.write_str("the lock is held already"),
            Self::TimedOut => f.write_str("the lock was not released in time"),
            Self::Invalid(what) => f.write_str(what),
            Self::Panicked => {
                f.write_str("an internal error of the library; details are on standard error")
            }
        }
    }
}

impl Failure {
    /// The error number.
    fn number(&self) -> c_int {
        match self {
            Self::Dsm(Error::Protocol(why)) => match why {
                DsmError::OutOfRange(_) | DsmError::Misplaced(..) => libc::EINVAL,
                DsmError::RegionMismatch(why) => mismatch(why.difference),
                DsmError::NotHeld(_) => libc::EPERM,
                DsmError::AlreadyHeld(_) => libc::EDEADLK,
                DsmError::CallOutstanding => libc::EBUSY,
                DsmError::PeerLost(..) => libc::EHOSTDOWN,
                DsmError::PeerLeft(..) => libc::ESHUTDOWN,
                _ => libc::EPROTO,
            },
            Self::Dsm(Error::Join(_)) => libc::EHOSTUNREACH,
            Self::Dsm(Error::Environment(_) | Error::Unaligned { .. }) | Self::Invalid(_) => {
                libc::EINVAL
            }
            Self::Dsm(Error::Size { .. } | Error::Full { .. }) => libc::ENOMEM,
            Self::Dsm(Error::Host(why)) => why.number(),
            Self::Dsm(_) => libc::EIO,
            Self::NotJoined => libc::ENOTCONN,
            Self::Shared | Self::SlotInUse => libc::EBUSY,
            Self::NoSlot => libc::EAGAIN,
            Self::NotWhole => libc::EPERM,
            Self::Joined => libc::EISCONN,
            Self::Busy => libc::EBUSY,
            Self::TimedOut => libc::ETIMEDOUT,
            Self::Panicked => libc::ENOTRECOVERABLE,
        }
    }
}

/// The error number for a region that was not created.
fn mismatch(difference: RegionDifference) -> c_int {
    match difference {
        RegionDifference::Failed(RegionFailure::Host(number)) => {
            c_int::try_from(number).ok().filter(|number| *number > 0).unwrap_or(libc::EIO)
        }
        _ => libc::ECANCELED,
    }
}

pub(crate) type Result<T> = core::result::Result<T, Failure>;

/// Runs `body` for C. Returns 0, or the number of its error.
pub(crate) fn answer(body: impl FnOnce() -> Result<()>) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(why) => {
            WORDS.with_borrow_mut(|words| *words = why.to_string());
            why.number()
        }
    }
}

/// Runs `body` for a program that gets no errors. An error is printed and ends the program.
pub(crate) fn or_end<T>(body: impl FnOnce() -> Result<T>) -> T {
    caught(body).unwrap_or_else(|why| {
        let rank = with(|dsm| Ok(dsm.rank())).unwrap_or(0);
        say(&format!("kyocho-dsm: node {rank}: {why}"));
        std::process::exit(EXIT_LOST)
    })
}

/// Writes a line with one call, because other nodes may write at the same time.
fn say(text: &str) {
    use std::io::Write;
    // If standard error is closed, the line is lost.
    let _written = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Failure::Panicked))
}

/// The message of the last error.
pub(crate) fn words() -> String {
    WORDS.with_borrow(Clone::clone)
}

/// Calls a function with the thread's relation to its node.
pub(crate) fn with_mine<T>(body: impl FnOnce(&mut Role) -> Result<T>) -> Result<T> {
    MINE.with_borrow_mut(|mine| body(mine.as_mut().ok_or(Failure::NotJoined)?))
}

/// Calls a function with the node of which this thread is the only one.
pub(crate) fn with<T>(body: impl FnOnce(&mut Dsm) -> Result<T>) -> Result<T> {
    with_mine(|mine| match mine {
        Role::Node(dsm) => body(dsm),
        Role::SharedNode(_) => Err(Failure::Shared),
        Role::NodeThread(_) => Err(Failure::NotWhole),
    })
}

/// The same for calls that an only thread and one of several have in common.
macro_rules! with_either {
    (|$node:ident| $body:expr) => {
        $crate::node::with_mine(|mine| match mine {
            $crate::node::Role::Node($node) => $body,
            $crate::node::Role::NodeThread($node) => $body,
            $crate::node::Role::SharedNode(_) => Err($crate::node::Failure::Shared),
        })
    };
}
pub(crate) use with_either;

/// Makes this thread the only thread of a node.
pub(crate) fn enter(join: impl FnOnce() -> Result<Dsm>) -> Result<()> {
    become_what(|| Ok(Role::Node(join()?)))
}

fn become_what(make: impl FnOnce() -> Result<Role>) -> Result<()> {
    MINE.with_borrow_mut(|mine| {
        if mine.is_some() {
            return Err(Failure::Joined);
        }
        *mine = Some(make()?);
        Ok(())
    })
}

/// Leaves the node.
pub(crate) fn leave() -> Result<()> {
    let node = MINE.with_borrow_mut(|mine| match mine.take() {
        Some(Role::Node(dsm)) => Ok(dsm),
        other => {
            *mine = other;
            Err(not_whole(mine.as_ref()))
        }
    })?;
    Ok(node.leave()?)
}

fn slots() -> MutexGuard<'static, Vec<ThreadSlot<'static>>> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets so many threads share the node in place of this thread.
pub(crate) fn share(threads: u16) -> Result<()> {
    MINE.with_borrow_mut(|mine| match mine.take() {
        Some(Role::Node(dsm)) => {
            let (aside, mut new) = dsm.share(threads);
            // All slots of an earlier node were given back.
            slots().append(&mut new);
            *mine = Some(Role::SharedNode(aside));
            Ok(())
        }
        other => {
            *mine = other;
            Err(not_whole(mine.as_ref()))
        }
    })
}

/// Why a thread is not the only thread of its node.
fn not_whole(mine: Option<&Role>) -> Failure {
    match mine {
        None => Failure::NotJoined,
        Some(Role::SharedNode(_)) => Failure::Shared,
        Some(_) => Failure::NotWhole,
    }
}

/// Takes a thread slot for this thread.
pub(crate) fn attach() -> Result<()> {
    become_what(|| {
        let slot = slots().pop().ok_or(Failure::NoSlot)?;
        Ok(Role::NodeThread(slot.take()?))
    })
}

/// Gives this thread's slot back.
pub(crate) fn detach() -> Result<()> {
    MINE.with_borrow_mut(|mine| match mine {
        Some(Role::NodeThread(_)) => {
            *mine = None;
            Ok(())
        }
        None => Err(Failure::NotJoined),
        Some(_) => Err(Failure::NoSlot),
    })
}

/// Makes this thread the only thread of its node again.
pub(crate) fn unshare() -> Result<()> {
    MINE.with_borrow_mut(|mine| match mine.take() {
        Some(Role::SharedNode(aside)) => {
            slots().clear();
            match aside.back() {
                Ok(dsm) => {
                    *mine = Some(Role::Node(dsm));
                    Ok(())
                }
                Err(aside) => {
                    *mine = Some(Role::SharedNode(aside));
                    Err(Failure::SlotInUse)
                }
            }
        }
        other => {
            *mine = other;
            Err(if mine.is_none() { Failure::NotJoined } else { Failure::NoSlot })
        }
    })
}
