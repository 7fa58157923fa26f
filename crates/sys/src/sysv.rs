//! System V objects: memory segments, semaphore sets, message queues.
//!
//! They belong to no process and outlive all processes, so their creator must remove them. A
//! segment can be marked as removed: it is freed when it is mapped nowhere any more, and until then
//! Linux still lets processes map it by its number.
#![expect(unsafe_code, reason = "system calls on structures")]

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A segment of memory.
    Memory,
    /// A set of semaphores.
    Semaphores,
    /// A queue of messages.
    Messages,
}

/// Room for the status of any object.
pub const STATUS_BYTES_MAX: usize = 128;

impl Kind {
    /// Size of the status of an object.
    #[must_use]
    pub const fn status_bytes(self) -> usize {
        match self {
            Self::Memory => size_of::<libc::shmid_ds>(),
            Self::Semaphores => size_of::<libc::semid_ds>(),
            Self::Messages => size_of::<libc::msqid_ds>(),
        }
    }
}

/// Creates an object without a key. Returns its number. `size` is the length of a segment in bytes,
/// or the number of semaphores. `flags` are permissions, and `SHM_...` for segments.
///
/// # Errors
/// `INVAL`: bad size. `NOSPC`, `NOMEM`: there are too many objects. `NOSYS`: the host was built
/// without them. Injected errors.
pub fn make(kind: Kind, size: usize, flags: i32) -> Result<i32, Errno> {
    fault::check(Call::Open)?;
    let (key, flags) = (libc::IPC_PRIVATE as usize, flags as usize);
    let made = match kind {
        // SAFETY: takes numbers.
        Kind::Memory => unsafe { call(libc::SYS_shmget, [key, size, flags]) },
        // SAFETY: takes numbers.
        Kind::Semaphores => unsafe { call(libc::SYS_semget, [key, size, flags]) },
        // SAFETY: takes numbers.
        Kind::Messages => unsafe { call(libc::SYS_msgget, [key, flags]) },
    };
    made.map(|number| number as i32)
}

/// Removes an object. A segment is freed once it is mapped nowhere.
///
/// # Errors
/// `INVAL`: there is no such object. `PERM`: it belongs to another user.
pub fn remove(kind: Kind, number: i32) -> Result<(), Errno> {
    control(kind, number, libc::IPC_RMID, 0).map(drop)
}

/// The status of an object, as the bytes of the kernel's structure.
///
/// # Errors
/// `INVAL`: there is no such object. `ACCES`: it may not be read.
pub fn status(kind: Kind, number: i32) -> Result<[u8; STATUS_BYTES_MAX], Errno> {
    let mut bytes = [0; STATUS_BYTES_MAX];
    control(kind, number, libc::IPC_STAT, bytes.as_mut_ptr().addr())?;
    Ok(bytes)
}

/// `command` takes no argument, or the address of the kind's structure.
fn control(kind: Kind, number: i32, command: i32, argument: usize) -> Result<usize, Errno> {
    const {
        assert!(Kind::Memory.status_bytes() <= STATUS_BYTES_MAX);
        assert!(Kind::Semaphores.status_bytes() <= STATUS_BYTES_MAX);
        assert!(Kind::Messages.status_bytes() <= STATUS_BYTES_MAX);
    }
    let (number, command) = (number as usize, command as usize);
    match kind {
        // SAFETY: the kernel writes at most one structure, for which the callers have room.
        Kind::Memory => unsafe { call(libc::SYS_shmctl, [number, command, argument]) },
        // SAFETY: as above.
        Kind::Semaphores => unsafe { call(libc::SYS_semctl, [number, 0, command, argument]) },
        // SAFETY: as above.
        Kind::Messages => unsafe { call(libc::SYS_msgctl, [number, command, argument]) },
    }
}

/// A segment that is kept mapped, without being accessed, until this is dropped.
#[derive(Debug)]
pub struct Attached {
    address: usize,
}

/// Maps segment `number`.
///
/// # Errors
/// `INVAL`: there is no such segment. `ACCES`: it may not be read. `NOMEM`.
pub fn attach(number: i32) -> Result<Attached, Errno> {
    fault::check(Call::Mmap)?;
    let flags = libc::SHM_RDONLY as usize;
    // SAFETY: at an address that the kernel chooses, where nothing is mapped.
    let address = unsafe { call(libc::SYS_shmat, [number as usize, 0, flags]) }?;
    Ok(Attached { address })
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the address.
        let _ = unsafe { call(libc::SYS_shmdt, [self.address]) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, attach, make, remove, status};
    use crate::error::Errno;

    #[test]
    fn status_is_available_until_removal() {
        for (kind, size) in [(Kind::Memory, 5000), (Kind::Semaphores, 3), (Kind::Messages, 0)] {
            let number = match make(kind, size, 0o600) {
                Err(Errno::NOSYS) => return crate::skip::skip("sysv", "the host has no System V"),
                other => other.unwrap(),
            };
            assert!(status(kind, number).is_ok(), "{kind:?}");
            remove(kind, number).unwrap();
            assert!(status(kind, number).is_err(), "{kind:?}");
        }
    }

    #[test]
    fn a_removed_segment_ends_with_its_last_mapping() {
        let Ok(number) = make(Kind::Memory, 4096, 0o600) else {
            return crate::skip::skip("sysv segments", "the host has no System V");
        };
        let (first, removed) = (attach(number).unwrap(), remove(Kind::Memory, number));
        assert_eq!(removed, Ok(()));
        let second = attach(number).unwrap();
        drop(first);
        assert!(status(Kind::Memory, number).is_ok());
        drop(second);
        assert!(attach(number).is_err());
    }
}
