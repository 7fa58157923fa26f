//! Signals as something to read (`signalfd`): for a thread that holds them back and waits for other things, too.
#![expect(unsafe_code, reason = "a system call on a set of signals")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};
use crate::signal::Signal;

/// The arrivals of some signals, readable as long as the reader holds these back ([`AllBlocked`](crate::signal::AllBlocked)).
#[derive(Debug)]
pub struct Arrivals {
    descriptor: OwnedFd,
}

impl Arrivals {
    /// Those of `signals`. Its descriptor is not inherited by programs that are executed.
    ///
    /// # Errors
    /// `MFILE`: no more descriptors. Injected ones.
    pub fn of(signals: &[Signal]) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let set = signals.iter().fold(0_u64, |set, signal| set | 1 << (signal.number() - 1));
        let flags = (libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) as usize;
        let arguments = [usize::MAX, (&raw const set).addr(), size_of::<u64>(), flags];
        // SAFETY: the kernel reads one set of 64 signals.
        let descriptor = unsafe { call(libc::SYS_signalfd4, arguments) }?;
        // SAFETY: the kernel has just made it, for us.
        let descriptor = unsafe { owned(descriptor) };
        Ok(Self { descriptor })
    }

    /// The next one that has arrived, if one has: it is taken and will not be delivered. Never blocks.
    #[must_use]
    pub fn next(&self) -> Option<Signal> {
        /// Of the structure that is read; the number stands first.
        const BYTES: usize = size_of::<libc::signalfd_siginfo>();
        let mut bytes = [0; BYTES];
        let read = crate::descriptor::read(self.as_fd(), &mut bytes);
        let number = bytes.first_chunk().map(|word| i32::from_ne_bytes(*word))?;
        Signal::new(number).filter(|_| read == Ok(BYTES))
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::Arrivals;
    use crate::poll::{Interest, wait};
    use crate::signal::{AllBlocked, Signal, send};
    use crate::thread_id::ThreadId;
    use std::os::fd::AsFd;

    #[test]
    fn what_arrives_is_read_once_and_not_delivered() {
        let blocked = AllBlocked::new();
        let arrivals = Arrivals::of(&[Signal::USR2, Signal::WINCH]).unwrap();
        assert_eq!(arrivals.next(), None);
        // Delivered, it would end this process.
        send(ThreadId::current(), Signal::USR2).unwrap();
        send(ThreadId::current(), Signal::URG).unwrap();
        assert_eq!(wait([(arrivals.as_fd(), Interest::Read)], None), Ok(true));
        assert_eq!(arrivals.next(), Some(Signal::USR2));
        assert_eq!(arrivals.next(), None);
        drop(blocked);
    }
}
