//! Reader-writer locks: `kyocho_rwlock_*`.
#![expect(unsafe_code, reason = "the border to C")]

use core::ffi::c_int;

use kyocho_microprocess::RwLock;
use kyocho_microprocess::sync::TryLockError;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::answer::{answer, caller};
use crate::error::{Code, Result};
use crate::mutex::Patience;
use crate::object::{Kind, Object};

/// What `kyocho_rwlock_t` holds.
pub(crate) struct Raw {
    lock: RwLock<()>,
    /// The id of who is inside for writing, 0 for nobody. Written by the writer.
    writer: AtomicU64,
    /// How many are inside for reading and have not left.
    readers: AtomicU32,
}

// SAFETY: the size is that of `kyocho_rwlock_t`; zeros are a lock that nobody is inside.
unsafe impl Kind for Raw {
    const MAGIC: u32 = 0x6b79_7277;
    const C_BYTES: usize = 128;
}

type RwLockObject = Object<Raw>;

/// Forgets the guard that C cannot carry.
fn keep<G>(locked: core::result::Result<G, TryLockError<G>>, patience: Patience) -> Result<()> {
    match locked {
        Ok(guard) => core::mem::forget(guard),
        // Poison is Rust's: a panic, which does not come this far.
        Err(TryLockError::Poisoned(guard)) => core::mem::forget(guard.into_inner()),
        Err(TryLockError::WouldBlock) => return Err(patience.failure()),
    }
    Ok(())
}

impl RwLockObject {
    fn caller_outside(&self, patience: Patience) -> Result<u64> {
        let me = caller()?.id();
        if self.value.writer.load(Ordering::Relaxed) != me {
            return Ok(me);
        }
        Err(if matches!(patience, Patience::None) { Code::BUSY } else { Code::DEADLOCK })
    }

    fn read(&self, patience: Patience) -> Result<()> {
        self.caller_outside(patience)?;
        let lock = &self.value.lock;
        match patience {
            Patience::None => keep(lock.try_read(), patience)?,
            Patience::Endless => keep(lock.read().map_err(Into::into), patience)?,
            Patience::For(limit) => keep(lock.read_timeout(limit), patience)?,
        }
        self.value.readers.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, patience: Patience) -> Result<()> {
        let me = self.caller_outside(patience)?;
        let lock = &self.value.lock;
        match patience {
            Patience::None => keep(lock.try_write(), patience)?,
            Patience::Endless => keep(lock.write().map_err(Into::into), patience)?,
            Patience::For(limit) => keep(lock.write_timeout(limit), patience)?,
        }
        self.value.writer.store(me, Ordering::Relaxed);
        Ok(())
    }

    fn unlock(&self) -> Result<()> {
        if self.value.writer.load(Ordering::Relaxed) == caller()?.id() {
            self.value.writer.store(0, Ordering::Relaxed);
            // SAFETY: the caller is inside for writing, and its guard was forgotten.
            drop(unsafe { self.value.lock.make_write_guard() });
            return Ok(());
        }
        let one_less = |readers: u32| readers.checked_sub(1);
        self.value
            .readers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .map_err(|_| Code::NOT_PERMITTED)?;
        // SAFETY: somebody was inside for reading and no longer counts, so this entry's guard was forgotten.
        drop(unsafe { self.value.lock.make_read_guard() });
        Ok(())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_init(lock: *mut RwLockObject) -> c_int {
    let fresh =
        Raw { lock: RwLock::new(()), writer: AtomicU64::new(0), readers: AtomicU32::new(0) };
    // SAFETY: the caller's promise.
    answer(|| unsafe { RwLockObject::create(lock, 0, fresh) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_destroy(lock: *mut RwLockObject) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let lock = unsafe { RwLockObject::at(lock) }?;
        if lock.value.lock.try_write().is_err() {
            return Err(Code::BUSY);
        }
        lock.destroy();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_rdlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { RwLockObject::at(lock) }?.read(Patience::Endless))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_wrlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { RwLockObject::at(lock) }?.write(Patience::Endless))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_tryrdlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { RwLockObject::at(lock) }?.read(Patience::None))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_trywrlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { RwLockObject::at(lock) }?.write(Patience::None))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_timedrdlock(
    lock: *mut RwLockObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let patience = unsafe { Patience::until(deadline) }?;
        // SAFETY: the caller's promise.
        unsafe { RwLockObject::at(lock) }?.read(patience)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_timedwrlock(
    lock: *mut RwLockObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let patience = unsafe { Patience::until(deadline) }?;
        // SAFETY: the caller's promise.
        unsafe { RwLockObject::at(lock) }?.write(patience)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_unlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { RwLockObject::at(lock) }?.unlock())
}
