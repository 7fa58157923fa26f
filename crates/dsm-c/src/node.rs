//! The node of this thread, or its seat at one, and its errors as C sees them.

use core::cell::RefCell;
use core::ffi::c_int;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kyocho_dsm::{Aside, Dsm, DsmError, Error, Hand, Hindrance, Instead, Seat};

/// Exit code of a program that cannot go on, as where a page is lost.
pub(crate) const EXIT_LOST: i32 = 75;

/// What a thread is to its node.
pub(crate) enum Mine {
    /// Its only thread.
    Node(Dsm),
    /// It has joined, and others have seats in its place.
    Aside(Aside),
    /// One of those.
    Hand(Hand<'static>),
}

/// Seats that nobody has taken.
static SEATS: Mutex<Vec<Seat<'static>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: RefCell<Option<Mine>> = const { RefCell::new(None) };
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
    /// It stands aside for those with seats.
    Aside,
    /// There are seats still.
    Seated,
    /// There are no seats.
    NoSeat,
    /// Only the thread that joined can do that, while it is its node's only one.
    NotWhole,
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
                f.write_str("this thread has no node: call kyocho_dsm_join on it first")
            }
            Self::Joined => f.write_str("this thread has a node already"),
            Self::Aside => f.write_str("the node is shared: use a thread that has a seat"),
            Self::Seated => f.write_str("a thread still has its seat"),
            Self::NoSeat => f.write_str("no seat is left: call kyocho_dsm_share first"),
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
    /// Its error number.
    fn number(&self) -> c_int {
        match self {
            Self::Dsm(Error::Protocol(why)) => match why {
                DsmError::OutOfRange(_) | DsmError::Misplaced(..) => libc::EINVAL,
                DsmError::Discord(why) => discord(why.instead),
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
            Self::Aside | Self::Seated => libc::EBUSY,
            Self::NoSeat => libc::EAGAIN,
            Self::NotWhole => libc::EPERM,
            Self::Joined => libc::EISCONN,
            Self::Busy => libc::EBUSY,
            Self::TimedOut => libc::ETIMEDOUT,
            Self::Panicked => libc::ENOTRECOVERABLE,
        }
    }
}

/// What is told where a region was not made.
fn discord(instead: Instead) -> c_int {
    match instead {
        Instead::Hindered(Hindrance::Host(number)) => {
            c_int::try_from(number).ok().filter(|number| *number > 0).unwrap_or(libc::EIO)
        }
        _ => libc::ECANCELED,
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

/// Does something with what this thread is to its node.
pub(crate) fn with_mine<T>(body: impl FnOnce(&mut Mine) -> Result<T>) -> Result<T> {
    MINE.with_borrow_mut(|mine| body(mine.as_mut().ok_or(Failure::NotJoined)?))
}

/// Does something with this thread's node, which is its own.
pub(crate) fn with<T>(body: impl FnOnce(&mut Dsm) -> Result<T>) -> Result<T> {
    with_mine(|mine| match mine {
        Mine::Node(dsm) => body(dsm),
        Mine::Aside(_) => Err(Failure::Aside),
        Mine::Hand(_) => Err(Failure::NotWhole),
    })
}

/// The same for what the only thread of a node and one of several do alike.
macro_rules! with_either {
    (|$node:ident| $body:expr) => {
        $crate::node::with_mine(|mine| match mine {
            $crate::node::Mine::Node($node) => $body,
            $crate::node::Mine::Hand($node) => $body,
            $crate::node::Mine::Aside(_) => Err($crate::node::Failure::Aside),
        })
    };
}
pub(crate) use with_either;

/// Gives this thread a node.
pub(crate) fn enter(join: impl FnOnce() -> Result<Dsm>) -> Result<()> {
    become_what(|| Ok(Mine::Node(join()?)))
}

fn become_what(make: impl FnOnce() -> Result<Mine>) -> Result<()> {
    MINE.with_borrow_mut(|mine| {
        if mine.is_some() {
            return Err(Failure::Joined);
        }
        *mine = Some(make()?);
        Ok(())
    })
}

/// Takes it away in good order.
pub(crate) fn leave() -> Result<()> {
    let node = MINE.with_borrow_mut(|mine| match mine.take() {
        Some(Mine::Node(dsm)) => Ok(dsm),
        other => {
            *mine = other;
            Err(not_whole(mine.as_ref()))
        }
    })?;
    Ok(node.leave()?)
}

fn seats() -> MutexGuard<'static, Vec<Seat<'static>>> {
    SEATS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets so many threads share this thread's node in its place.
pub(crate) fn share(threads: u16) -> Result<()> {
    MINE.with_borrow_mut(|mine| match mine.take() {
        Some(Mine::Node(dsm)) => {
            let (aside, mut new) = dsm.stand_aside(threads);
            // None are left of a node that was there before: it had them back.
            seats().append(&mut new);
            *mine = Some(Mine::Aside(aside));
            Ok(())
        }
        other => {
            *mine = other;
            Err(not_whole(mine.as_ref()))
        }
    })
}

/// Why a thread is not its node's only one.
fn not_whole(mine: Option<&Mine>) -> Failure {
    match mine {
        None => Failure::NotJoined,
        Some(Mine::Aside(_)) => Failure::Aside,
        Some(_) => Failure::NotWhole,
    }
}

/// Gives this thread a seat.
pub(crate) fn sit() -> Result<()> {
    become_what(|| {
        let seat = seats().pop().ok_or(Failure::NoSeat)?;
        Ok(Mine::Hand(seat.take()?))
    })
}

/// Takes this thread's seat away.
pub(crate) fn rise() -> Result<()> {
    MINE.with_borrow_mut(|mine| match mine {
        Some(Mine::Hand(_)) => {
            *mine = None;
            Ok(())
        }
        None => Err(Failure::NotJoined),
        Some(_) => Err(Failure::NoSeat),
    })
}

/// Makes this thread its node's only one again.
pub(crate) fn unshare() -> Result<()> {
    MINE.with_borrow_mut(|mine| match mine.take() {
        Some(Mine::Aside(aside)) => {
            seats().clear();
            match aside.back() {
                Ok(dsm) => {
                    *mine = Some(Mine::Node(dsm));
                    Ok(())
                }
                Err(aside) => {
                    *mine = Some(Mine::Aside(aside));
                    Err(Failure::Seated)
                }
            }
        }
        other => {
            *mine = other;
            Err(if mine.is_none() { Failure::NotJoined } else { Failure::NoSeat })
        }
    })
}
