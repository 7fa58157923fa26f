//! Addresses of host names. The C library looks them up. That takes seconds if no server answers,
//! and cannot be interrupted. So a separate kernel thread does it. If the requesting thread must
//! stop, the kernel thread continues alone.
//!
//! **Invariant:** a look-up counts among its account's sockets until it ends, even if no thread
//! waits for it any more. At most `LOOK_UPS_MAX` run at a time.

use crate::port::waiting;
use crate::session::has_request;
use core::net::{IpAddr, SocketAddr};
use kyocho_heap::account::Held;
use kyocho_heap::heap::Mutator;
use kyocho_sys::error::Errno;
use kyocho_sys::event::Event;
use kyocho_sys::poll::{self, Interest};
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use kyocho_sys::prim::thread;
use std::io::{self, ErrorKind};
use std::net::ToSocketAddrs;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum number of concurrent look-ups of all users.
const LOOK_UPS_MAX: usize = 64;

static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);

/// A counted look-up.
struct CountedLookUp {
    _held: Option<Held>,
}

impl CountedLookUp {
    fn take(held: Option<Held>) -> io::Result<Self> {
        let more = |now| (now < LOOK_UPS_MAX).then_some(now + 1);
        if LOOK_UPS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return Err(io::Error::other("too many host names are being looked up"));
        }
        Ok(Self { _held: held })
    }
}

impl Drop for CountedLookUp {
    fn drop(&mut self) {
        LOOK_UPS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The result of a look-up, shared with the requesting thread.
struct Outcome {
    found: Mutex<io::Result<Vec<SocketAddr>>>,
    over: Event,
}

/// The addresses of `host`, a name or a number, and `port`. `held` is the count among the account's
/// sockets.
///
/// # Errors
/// The C library's error; `Interrupted` if the running thread must stop; too many look-ups; no
/// kernel thread or descriptor available.
pub(super) fn look_up(
    m: &mut Mutator,
    host: &str,
    port: u16,
    held: Option<Held>,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(number) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(number, port)]);
    }
    let place = CountedLookUp::take(held)?;
    let none = Mutex::new(Err(ErrorKind::NotFound.into()));
    let outcome = Arc::new(Outcome { found: none, over: Event::new()? });
    let (theirs, host) = (Arc::clone(&outcome), host.to_owned());
    thread::Builder::new().name("host-names".to_owned()).spawn(move || {
        let found = find(&host, port);
        *theirs.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
        drop(place);
        // An event counter accepts every notification.
        let _ = theirs.over.notify();
    })?;
    loop {
        match waiting(m, |_| poll::wait([(outcome.over.as_fd(), Interest::Read)], None)) {
            Err(Errno::INTR) if !has_request(&m.context) => {}
            over => {
                over?;
                break;
            }
        }
    }
    let mut found = outcome.found.lock().unwrap_or_else(PoisonError::into_inner);
    core::mem::replace(&mut *found, Ok(Vec::new()))
}

fn find(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Some(before) = BEFORE.get() {
        before(host)?;
    }
    Ok((host, port).to_socket_addrs()?.collect())
}

/// A function that is called before a look-up. Its error becomes the result of the look-up.
type Before = fn(&str) -> io::Result<()>;

static BEFORE: OnceLock<Before> = OnceLock::new();

/// For tests: installs a function that is called with the name of each look-up, on the look-up's
/// own kernel thread. Only the first call has an effect.
pub fn call_before_look_ups(before: Before) {
    // If a function is installed already, it is that of the same tests.
    let _ = BEFORE.set(before);
}
