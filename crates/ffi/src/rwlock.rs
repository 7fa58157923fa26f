//! Reader-writer locks: `kyocho_rwlock_*`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::c_int;

use kyocho_microprocess::RwLock;
use kyocho_microprocess::sync::TryLockError;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::answer::{answer, caller};
use crate::error::{Code, Result};
use crate::mutex::Timeout;
use crate::object::{Kind, Object};

/// The contents of `kyocho_rwlock_t`.
pub(crate) struct Raw {
    lock: RwLock<()>,
    /// Number of the writer inside, written by the writer; 0 if there is none.
    writer: AtomicU64,
    /// Number of readers inside.
    readers: AtomicU32,
}

// SAFETY: the size is that of `kyocho_rwlock_t`; zeros are a free lock.
unsafe impl Kind for Raw {
    const MAGIC: u32 = 0x6b79_7277;
    const C_BYTES: usize = 128;
}

type RwLockObject = Object<Raw>;

/// Forgets a guard, which C cannot hold.
fn forget_guard<G>(
    locked: core::result::Result<G, TryLockError<G>>,
    timeout: Timeout,
) -> Result<()> {
    match locked {
        Ok(guard) => core::mem::forget(guard),
        // Poison comes from a panic of Rust, which does not get this far.
        Err(TryLockError::Poisoned(guard)) => core::mem::forget(guard.into_inner()),
        Err(TryLockError::WouldBlock) => return Err(timeout.failure()),
    }
    Ok(())
}

impl RwLockObject {
    fn caller_outside(&self, timeout: Timeout) -> Result<u64> {
        let me = caller()?.id();
        if self.value.writer.load(Ordering::Relaxed) != me {
            return Ok(me);
        }
        Err(if matches!(timeout, Timeout::Immediate) { Code::BUSY } else { Code::DEADLOCK })
    }

    fn read(&self, timeout: Timeout) -> Result<()> {
        self.caller_outside(timeout)?;
        let lock = &self.value.lock;
        match timeout {
            Timeout::Immediate => forget_guard(lock.try_read(), timeout)?,
            Timeout::Never => forget_guard(lock.read().map_err(Into::into), timeout)?,
            Timeout::After(limit) => forget_guard(lock.read_timeout(limit), timeout)?,
        }
        self.value.readers.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, timeout: Timeout) -> Result<()> {
        let me = self.caller_outside(timeout)?;
        let lock = &self.value.lock;
        match timeout {
            Timeout::Immediate => forget_guard(lock.try_write(), timeout)?,
            Timeout::Never => forget_guard(lock.write().map_err(Into::into), timeout)?,
            Timeout::After(limit) => forget_guard(lock.write_timeout(limit), timeout)?,
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
        // SAFETY: a reader was inside and is no longer counted, so its guard was forgotten.
        drop(unsafe { self.value.lock.make_read_guard() });
        Ok(())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_init(lock: *mut RwLockObject) -> c_int {
    let fresh =
        Raw { lock: RwLock::new(()), writer: AtomicU64::new(0), readers: AtomicU32::new(0) };
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { RwLockObject::create(lock, 0, fresh) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_destroy(lock: *mut RwLockObject) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
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
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { RwLockObject::at(lock) }?.read(Timeout::Never))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_wrlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { RwLockObject::at(lock) }?.write(Timeout::Never))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_tryrdlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { RwLockObject::at(lock) }?.read(Timeout::Immediate))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_trywrlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { RwLockObject::at(lock) }?.write(Timeout::Immediate))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_timedrdlock(
    lock: *mut RwLockObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let timeout = unsafe { Timeout::until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { RwLockObject::at(lock) }?.read(timeout)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_timedwrlock(
    lock: *mut RwLockObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let timeout = unsafe { Timeout::until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { RwLockObject::at(lock) }?.write(timeout)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_rwlock_unlock(lock: *mut RwLockObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { RwLockObject::at(lock) }?.unlock())
}
