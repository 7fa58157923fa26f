//! What a parked microprocess waits for.

use core::fmt;

/// The kind of object or event for which a parked microprocess waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// Nothing: it was never parked.
    Nothing,
    /// An `unpark`.
    Park,
    /// A point in time.
    Sleep,
    /// The end of another microprocess.
    Join,
    /// The end of a scope's microprocesses.
    Scope,
    /// A mutex.
    Mutex,
    /// A spin lock whose holder does not run.
    SpinMutex,
    /// A reader-writer lock.
    RwLock,
    /// A condition variable.
    Condvar,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// Room in a channel, or a receiver.
    Send,
    /// A message.
    Receive,
    /// One of several channel operations.
    Select,
    /// The completion of input or output.
    Io,
    /// A word that another process changes.
    Bell,
}

/// What a parked microprocess waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// The kind of object.
    pub kind: Kind,
    /// Which object: its address, or the id of a microprocess for [`Kind::Join`]; 0 if there is
    /// none.
    pub object: usize,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::Nothing => return f.write_str("nothing"),
            Kind::Park => return f.write_str("an unpark"),
            Kind::Sleep => return f.write_str("a point in time"),
            Kind::Join => return write!(f, "the end of microprocess {}", self.object),
            Kind::Scope => "the microprocesses of scope",
            Kind::Mutex => "mutex",
            Kind::SpinMutex => "spin lock",
            Kind::RwLock => "reader-writer lock",
            Kind::Condvar => "condition variable",
            Kind::Semaphore => "semaphore",
            Kind::Barrier => "barrier",
            Kind::Send => "sending on channel",
            Kind::Receive => "receiving from channel",
            Kind::Select => "a select on channel",
            Kind::Io => "input or output on",
            Kind::Bell => "another process, at",
        };
        write!(f, "{what} {:#x}", self.object)
    }
}

/// The names of the [`Kind`]s, in order, for debuggers.
pub(crate) const KINDS: &str = "nothing,an unpark,time,the end of,scope,mutex,spin mutex,reader-writer lock,\
    condition variable,semaphore,barrier,send on,receive from,select,input or output on,another process at";
