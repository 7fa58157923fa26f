//! Objects of System V: segments of memory, sets of semaphores, queues of messages. Their keys are
//! the instance's own.
//!
//! The host makes the objects, without keys. The table here says which key means which object.
//!
//! **Invariant:** a segment is marked for removal as soon as it is made, and exists as long as the
//! server has it mapped. So it goes with the server, however that ends. Semaphores and queues
//! cannot be marked: their numbers are written to [`PersistentObjects`], from which the last
//! process of the instance removes them.

use kyocho_microprocess::sync::{Mutex, MutexGuard};
use kyocho_sys::error::Errno;
use kyocho_sys::sysv::{self, Attached, Kind, STATUS_BYTES_MAX};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};

/// Most objects of an instance.
const OBJECTS_MAX: usize = 512;
const RECORD_BYTES: usize = 8;

/// The numbers of the objects that would outlive an instance. Front, server and warden share this
/// memory.
#[derive(Debug)]
pub(crate) struct PersistentObjects {
    memory: OwnedFd,
}

impl PersistentObjects {
    /// # Errors
    /// No descriptor, no memory.
    pub(crate) fn new() -> rustix::io::Result<Self> {
        memfd_create("kyocho-ipc", MemfdFlags::CLOEXEC).map(|memory| Self { memory })
    }

    /// Writes a record at `place`; a record of zeroes is empty.
    fn write(&self, place: usize, record: [u8; RECORD_BYTES]) -> Result<(), Errno> {
        let offset = (place * RECORD_BYTES) as u64;
        rustix::io::pwrite(&self.memory, &record, offset).map_err(crate::errors::host).map(drop)
    }

    fn note(&self, place: usize, kind: Kind, number: i32) -> Result<(), Errno> {
        let word = u64::from(number as u32) << 2 | if kind == Kind::Messages { 2 } else { 1 };
        self.write(place, word.to_ne_bytes())
    }

    fn forget(&self, place: usize) {
        // A record was written here before, so there is memory for it.
        let _ = self.write(place, [0; RECORD_BYTES]);
    }

    /// Removes all objects that are recorded.
    pub(crate) fn remove(&self) {
        for place in 0..OBJECTS_MAX {
            let mut record = [0; RECORD_BYTES];
            let read = rustix::io::pread(&self.memory, &mut record, (place * RECORD_BYTES) as u64);
            if read != Ok(RECORD_BYTES) {
                return;
            }
            let word = u64::from_ne_bytes(record);
            let kind = match word & 3 {
                1 => Kind::Semaphores,
                2 => Kind::Messages,
                _ => continue,
            };
            self.forget(place);
            // An error means that it has been removed.
            let _ = sysv::remove(kind, (word >> 2) as i32);
        }
    }
}

/// One object.
#[derive(Debug)]
struct Object {
    kind: Kind,
    number: i32,
    key: i32,
    /// The size it was made with: bytes of a segment, or number of semaphores.
    size: u64,
    creator: u32,
    /// The mapping that keeps a segment.
    _kept: Option<Attached>,
    /// It was removed, and goes as soon as no client has it mapped.
    doomed: bool,
}

/// The objects of an instance.
#[derive(Debug)]
pub(crate) struct Objects {
    left: Arc<PersistentObjects>,
    /// Most bytes of all segments together.
    segments_max_bytes: Option<u64>,
    /// By their places in [`PersistentObjects`].
    table: Mutex<HashMap<usize, Object>>,
}

/// Commands about one object, which the host carries out. The others describe all objects of the
/// host.
pub(crate) fn harmless(kind: Kind) -> &'static [i32] {
    match kind {
        Kind::Memory => &[libc::IPC_SET, libc::SHM_LOCK, libc::SHM_UNLOCK],
        Kind::Semaphores => &[
            libc::IPC_SET,
            libc::GETPID,
            libc::GETVAL,
            libc::GETALL,
            libc::GETNCNT,
            libc::GETZCNT,
            libc::SETVAL,
            libc::SETALL,
        ],
        Kind::Messages => &[libc::IPC_SET],
    }
}

const NOT_THERE: Errno = Errno::INVAL;
/// A status begins with the key. A segment's status has its permissions, the number of its creator,
/// and how often it is mapped.
const MODE: usize =
    core::mem::offset_of!(libc::shmid_ds, shm_perm) + core::mem::offset_of!(libc::ipc_perm, mode);
const CREATOR: usize = core::mem::offset_of!(libc::shmid_ds, shm_cpid);
const MAPPINGS: usize = core::mem::offset_of!(libc::shmid_ds, shm_nattch);

impl Objects {
    pub(crate) fn new(left: Arc<PersistentObjects>, segments_max_bytes: Option<u64>) -> Self {
        Self { left, segments_max_bytes, table: Mutex::new(HashMap::new()) }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<usize, Object>> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropping the object removes the last mapping of its segment.
        table.retain(|_, object| !object.doomed || mappings(object.number) > 1);
        table
    }

    /// The number of the object with this key. It is made if there is none and `flags` ask for it.
    pub(crate) fn get(
        &self,
        kind: Kind,
        key: i32,
        size: u64,
        flags: i32,
        creator: u32,
    ) -> Result<i32, Errno> {
        let mut table = self.table();
        let has_key = |object: &&Object| object.kind == kind && object.key == key && !object.doomed;
        let known = table.values().find(has_key).filter(|_| key != libc::IPC_PRIVATE);
        match known {
            Some(_) if flags & libc::IPC_CREAT != 0 && flags & libc::IPC_EXCL != 0 => {
                return Err(Errno::new(libc::EEXIST));
            }
            Some(object) if size > object.size => return Err(Errno::INVAL),
            Some(object) => return Ok(object.number),
            None if key != libc::IPC_PRIVATE && flags & libc::IPC_CREAT == 0 => {
                return Err(crate::errors::NOT_FOUND);
            }
            None => {}
        }
        let free = (0..OBJECTS_MAX).find(|place| !table.contains_key(place));
        let place = free.ok_or(Errno::new(libc::ENOSPC))?;
        if kind == Kind::Memory {
            self.must_have_room(&table, size)?;
        }
        let flags = flags & !(libc::IPC_CREAT | libc::IPC_EXCL);
        let number = sysv::make(kind, size as usize, flags)?;
        let kept = self.keep(kind, number, place).inspect_err(|_| {
            // It was just made, so it exists and belongs to the instance.
            let _ = sysv::remove(kind, number);
        })?;
        table
            .insert(place, Object { kind, number, key, size, creator, _kept: kept, doomed: false });
        Ok(number)
    }

    /// # Errors
    /// `NOMEM`: with `size` more bytes, the segments would exceed the instance's memory.
    fn must_have_room(&self, table: &HashMap<usize, Object>, size: u64) -> Result<(), Errno> {
        let segments = table.values().filter(|object| object.kind == Kind::Memory);
        let all = segments.map(|object| object.size).fold(size, u64::saturating_add);
        match self.segments_max_bytes {
            Some(most) if all > most => Err(Errno::NOMEM),
            _ => Ok(()),
        }
    }

    /// Makes sure that a new object does not outlive the instance.
    fn keep(&self, kind: Kind, number: i32, place: usize) -> Result<Option<Attached>, Errno> {
        if kind == Kind::Memory {
            let kept = sysv::attach(number)?;
            sysv::remove(kind, number)?;
            return Ok(Some(kept));
        }
        self.left.note(place, kind, number).map(|()| None)
    }

    /// # Errors
    /// `INVAL`: the instance has no such object.
    pub(crate) fn must_have(&self, kind: Kind, number: i32) -> Result<(), Errno> {
        let table = self.table();
        let is_it = |object: &Object| object.kind == kind && object.number == number;
        if table.values().any(is_it) { Ok(()) } else { Err(NOT_THERE) }
    }

    pub(crate) fn remove(&self, kind: Kind, number: i32) -> Result<(), Errno> {
        let mut table = self.table();
        let is_it = |object: &Object| object.kind == kind && object.number == number;
        let place = table.iter().find_map(|(place, object)| is_it(object).then_some(*place));
        let place = place.ok_or(NOT_THERE)?;
        if kind == Kind::Memory {
            table.entry(place).and_modify(|object| object.doomed = true);
            return Ok(());
        }
        sysv::remove(kind, number)?;
        table.remove(&place);
        self.left.forget(place);
        Ok(())
    }

    /// The host's description of an object, with what differs inside.
    pub(crate) fn status(&self, kind: Kind, number: i32) -> Result<[u8; STATUS_BYTES_MAX], Errno> {
        let table = self.table();
        let is_it = |object: &&Object| object.kind == kind && object.number == number;
        let object = table.values().find(is_it).ok_or(NOT_THERE)?;
        let mut bytes = sysv::status(kind, number)?;
        if kind == Kind::Memory {
            bytes[CREATOR..][..4].copy_from_slice(&object.creator.to_ne_bytes());
            let others = mappings(number).saturating_sub(1);
            bytes[MAPPINGS..][..8].copy_from_slice(&others.to_ne_bytes());
            if !object.doomed {
                // `SHM_DEST`
                bytes[MODE + 1] &= !0o2;
            }
        }
        let key = if object.doomed { libc::IPC_PRIVATE } else { object.key };
        bytes[..4].copy_from_slice(&key.to_ne_bytes());
        Ok(bytes)
    }
}

/// How often a segment is mapped. The server's own mapping counts.
fn mappings(number: i32) -> u64 {
    let status = sysv::status(Kind::Memory, number).ok();
    let word = status.and_then(|bytes| bytes[MAPPINGS..].first_chunk().copied());
    word.map_or(0, u64::from_ne_bytes)
}
