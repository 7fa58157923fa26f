//! Waiting for sockets, by a thread that calls and by one that serves.
//!
//! ```text
//!             ┌─ 1. caller's epoll:  wakes its waiter, and then nobody else
//!   socket ───┤      (exclusive, and registered first)
//!             └─ 2. service's epoll: reached where no caller waits
//! ```
//!
//! So an answer wakes the thread that waits for it, without a hand-over, and the serving thread sleeps on. The order is that of a socket's
//! wait queue; were it another, both would still wake, one of them for nothing.
//!
//! **Invariant:** the caller's epoll is told of everything, the service's of what found no caller waiting.

use core::mem::MaybeUninit;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kyocho_sys::event::Event;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::transport::Waiter;

/// Sockets told of by one wait; the next one tells of the others.
const EVENTS_MAX: usize = 64;
/// In the place of a socket's number: somebody roused who waits.
const ROUSED: u64 = u64::MAX;

#[derive(Debug)]
struct Side {
    epoll: OwnedFd,
    roused: Event,
}

impl Side {
    fn new() -> io::Result<Self> {
        let side = Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, roused: Event::new()? };
        epoll::add(
            &side.epoll,
            &side.roused,
            EventData::new_u64(ROUSED),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(side)
    }
}

/// Sockets, by number.
#[derive(Debug)]
pub(super) struct Readiness {
    caller: Side,
    service: Side,
}

impl Readiness {
    /// No socket yet.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { caller: Side::new()?, service: Side::new()? })
    }

    /// Waits for this one as well from now on.
    pub(super) fn add(&self, number: usize, socket: &impl AsFd) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET | EventFlags::EXCLUSIVE;
        for side in [&self.caller, &self.service] {
            epoll::add(&side.epoll, socket, EventData::new_u64(number as u64), flags)?;
        }
        Ok(())
    }

    fn side(&self, waiter: Waiter) -> &Side {
        match waiter {
            Waiter::Caller => &self.caller,
            Waiter::Service => &self.service,
        }
    }

    /// Ends the wait of such a thread, or its next one.
    pub(super) fn rouse(&self, waiter: Waiter) {
        // A counter that is full has roused already.
        let _roused = self.side(waiter).roused.notify();
    }

    /// Waits, and calls `each` with the number of every socket at which something happened since it was told of last. May return for nothing.
    pub(super) fn wait(&self, waiter: Waiter, timeout: Duration, mut each: impl FnMut(usize)) {
        let mut events = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let timeout = Timespec::try_from(timeout).ok();
        let side = self.side(waiter);
        // Interrupted by a signal: as if nothing had happened.
        let Ok((events, _)) = epoll::wait(&side.epoll, &mut events, timeout.as_ref()) else {
            return;
        };
        for event in events {
            let data = event.data;
            if data.u64() != ROUSED {
                each(data.u64() as usize);
            }
        }
    }
}
