//! Signals that are read from a descriptor (`signalfd`), for a thread that blocks them and also
//! waits for other descriptors.
#![expect(unsafe_code, reason = "a system call on a set of signals")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};
use crate::signal::Signal;

/// Reads some signals. The reading thread must have them blocked
/// ([`AllBlocked`](crate::signal::AllBlocked)).
#[derive(Debug)]
pub struct Arrivals {
    descriptor: OwnedFd,
}

impl Arrivals {
    /// A reader of `signals`. Programs that the process executes do not inherit its descriptor.
    ///
    /// # Errors
    /// `MFILE`: no more descriptors. Injected errors.
    pub fn of(signals: &[Signal]) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let set = signals.iter().fold(0_u64, |set, signal| set | 1 << (signal.number() - 1));
        let flags = (libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) as usize;
        let arguments = [usize::MAX, (&raw const set).addr(), size_of::<u64>(), flags];
        // SAFETY: the kernel reads one set of 64 signals.
        let descriptor = unsafe { call(libc::SYS_signalfd4, arguments) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        let descriptor = unsafe { owned(descriptor) };
        Ok(Self { descriptor })
    }

    /// The next pending signal, if there is one. It is consumed and not delivered. Never blocks.
    #[must_use]
    pub fn next(&self) -> Option<Signal> {
        /// Size of the structure that is read. The signal number is its first field.
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
    fn pending_signal_is_read_once_and_not_delivered() {
        let blocked = AllBlocked::new();
        let arrivals = Arrivals::of(&[Signal::USR2, Signal::WINCH]).unwrap();
        assert_eq!(arrivals.next(), None);
        // If the signal were delivered, it would end this process.
        send(ThreadId::current(), Signal::USR2).unwrap();
        send(ThreadId::current(), Signal::URG).unwrap();
        assert_eq!(wait([(arrivals.as_fd(), Interest::Read)], None), Ok(true));
        assert_eq!(arrivals.next(), Some(Signal::USR2));
        assert_eq!(arrivals.next(), None);
        drop(blocked);
    }
}
