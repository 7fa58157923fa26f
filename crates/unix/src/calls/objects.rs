//! Calls on objects of System V.
//!
//! A call that uses an object names it by a number in a register. The server checks that the
//! instance has this object. The host does the rest, so that waiting for a semaphore is interrupted
//! as outside of an instance.

use crate::program::launcher::GUARD;
use crate::server::{Answer, DONE, Request};
use crate::state::objects::harmless;
use kyocho_sys::error::Errno;
use kyocho_sys::sysv::Kind;

impl Request<'_> {
    /// `shmget`, `semget`, `msgget`.
    pub(crate) fn get_object(&self, kind: Kind) -> Result<Answer, Errno> {
        let (size, flags) = match kind {
            Kind::Memory => (self.word(1), self.int(2)),
            Kind::Semaphores => (u64::from(self.word(1) as u32), self.int(2)),
            Kind::Messages => (0, self.int(1)),
        };
        let creator = self.client.process()?;
        let number = self.server.objects.get(kind, self.int(0), size, flags, creator)?;
        Ok(Answer::Value(i64::from(number)))
    }

    /// A call whose first argument is the number of an object of the instance.
    pub(crate) fn use_object(&self, kind: Kind) -> Result<Answer, Errno> {
        self.server.objects.must_have(kind, self.int(0))?;
        Ok(Answer::LetThrough)
    }

    /// `shmat`. Refused at the launcher's addresses.
    pub(crate) fn attach(&self) -> Result<Answer, Errno> {
        let address = self.word(1);
        if address != 0 && address < u64::from(GUARD) {
            return Err(Errno::INVAL);
        }
        self.use_object(Kind::Memory)
    }

    /// `shmctl`, `semctl`, `msgctl`.
    pub(crate) fn control_object(&self, kind: Kind) -> Result<Answer, Errno> {
        let (number, command, place) = match kind {
            Kind::Semaphores => (self.int(0), self.int(2), self.word(3)),
            Kind::Memory | Kind::Messages => (self.int(0), self.int(1), self.word(2)),
        };
        match command {
            libc::IPC_RMID => self.server.objects.remove(kind, number).and(DONE),
            libc::IPC_STAT => {
                let bytes = self.server.objects.status(kind, number)?;
                self.client.write(place, &bytes[..kind.status_bytes()])?;
                DONE
            }
            _ if harmless(kind).contains(&command) => self.use_object(kind),
            _ => Err(Errno::INVAL),
        }
    }
}
