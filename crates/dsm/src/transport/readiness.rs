//! Waiting for sockets, by a calling thread and by the service thread.
//!
//! ```text
//!             ┌─ 1. caller's epoll:  wakes its waiter, and no other
//!   socket ───┤      (exclusive, and registered first)
//!             └─ 2. service's epoll: reached if no caller waits
//! ```
//!
//! So an answer wakes the thread that waits for it, and the service thread sleeps on. The order is
//! that of a socket's wait queue. In any other order both threads would wake, one of them in vain.
//!
//! **Invariant:** the caller's epoll reports everything, the service's what arrived while no caller
//! waited.

use core::mem::MaybeUninit;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kyocho_sys::event::Event;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::transport::Waiter;

/// Sockets reported by one wait; the next one reports the others.
const EVENTS_MAX: usize = 64;
/// Stands for a wake-up, in place of a socket's number.
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

/// A set of sockets, by number.
#[derive(Debug)]
pub(super) struct Readiness {
    caller: Side,
    service: Side,
}

impl Readiness {
    /// An empty set.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { caller: Side::new()?, service: Side::new()? })
    }

    /// Adds a socket.
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
        // If the counter is full, the thread has been woken already.
        let _roused = self.side(waiter).roused.notify();
    }

    /// Waits, and calls `each` with the number of every socket at which something happened since
    /// the last report. May return without a reason.
    pub(super) fn wait(&self, waiter: Waiter, timeout: Duration, mut each: impl FnMut(usize)) {
        let mut events = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let timeout = Timespec::try_from(timeout).ok();
        let side = self.side(waiter);
        // A signal interrupted the wait: nothing is reported.
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
