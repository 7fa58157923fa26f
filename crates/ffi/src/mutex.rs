//! Mutexes: `kyocho_mutex_*`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::c_int;
use core::mem;
use core::time::Duration;

use kyocho_microprocess::sync::TryLockError;
use kyocho_microprocess::{Mutex, MutexGuard};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::answer::{answer, caller};
use crate::error::{Code, Result};
use crate::object::{Kind, Object};
use crate::time::until;

const NORMAL: u32 = 0;
const RECURSIVE: u32 = 1;
const ERRORCHECK: u32 = 2;

/// The contents of `kyocho_mutex_t`; the object's `detail` is its kind.
pub(crate) struct Raw {
    lock: Mutex<()>,
    /// Number of the holder, written by the holder; 0 if the mutex is free.
    holder: AtomicU64,
    /// How often the holder has locked it beyond the first time.
    again: AtomicU32,
}

// SAFETY: the size is that of `kyocho_mutex_t`; zeros are an unlocked mutex.
unsafe impl Kind for Raw {
    const MAGIC: u32 = 0x6b79_6d75;
    const C_BYTES: usize = 120;
}

pub(crate) type MutexObject = Object<Raw>;

/// How long to wait for a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Timeout {
    /// Does not wait.
    Immediate,
    /// Waits without limit.
    Never,
    /// Waits at most this long.
    After(Duration),
}

impl Timeout {
    /// Waits until `deadline`.
    ///
    /// # Safety
    /// `deadline` is null or points to a time.
    pub(crate) unsafe fn until(deadline: *const libc::timespec) -> Result<Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { until(deadline) }.map(Self::After)
    }

    /// The error if the lock was not obtained.
    pub(crate) const fn failure(self) -> Code {
        match self {
            Self::Immediate | Self::Never => Code::BUSY,
            Self::After(_) => Code::TIMED_OUT,
        }
    }
}

/// Forgets a guard, which C cannot hold. [`MutexObject::unlock`] makes it again.
fn forget_guard<G, E>(
    locked: core::result::Result<G, TryLockError<G>>,
    otherwise: E,
) -> core::result::Result<(), E> {
    match locked {
        Ok(guard) => mem::forget(guard),
        // Poison comes from a panic of Rust, which does not get this far.
        Err(TryLockError::Poisoned(guard)) => mem::forget(guard.into_inner()),
        Err(TryLockError::WouldBlock) => return Err(otherwise),
    }
    Ok(())
}

impl MutexObject {
    /// Locks the mutex for the caller.
    fn lock(&self, timeout: Timeout) -> Result<()> {
        let me = caller()?.id();
        if self.value.holder.load(Ordering::Relaxed) == me && self.detail != NORMAL {
            return self.lock_again(timeout);
        }
        let lock = &self.value.lock;
        match timeout {
            Timeout::Immediate => forget_guard(lock.try_lock(), timeout.failure())?,
            Timeout::Never => forget_guard(lock.lock().map_err(Into::into), timeout.failure())?,
            Timeout::After(limit) => forget_guard(lock.lock_timeout(limit), timeout.failure())?,
        }
        self.value.holder.store(me, Ordering::Relaxed);
        Ok(())
    }

    fn lock_again(&self, timeout: Timeout) -> Result<()> {
        if self.detail == RECURSIVE {
            let again = self.value.again.load(Ordering::Relaxed);
            let more = again.checked_add(1).ok_or(Code::AGAIN)?;
            self.value.again.store(more, Ordering::Relaxed);
            return Ok(());
        }
        Err(if matches!(timeout, Timeout::Immediate) { Code::BUSY } else { Code::DEADLOCK })
    }

    fn unlock(&self) -> Result<()> {
        self.check_held()?;
        let again = self.value.again.load(Ordering::Relaxed);
        if again > 0 {
            self.value.again.store(again - 1, Ordering::Relaxed);
        } else {
            drop(self.take_guard());
        }
        Ok(())
    }

    /// Checks that the caller holds the mutex.
    pub(crate) fn check_held(&self) -> Result<()> {
        let held = self.value.holder.load(Ordering::Relaxed) == caller()?.id();
        if held { Ok(()) } else { Err(Code::NOT_PERMITTED) }
    }

    /// Makes the guard of the caller again, which must hold the mutex.
    fn take_guard(&self) -> MutexGuard<'_, ()> {
        self.value.holder.store(0, Ordering::Relaxed);
        // SAFETY: the caller is the holder, and its guard was forgotten.
        unsafe { self.value.lock.make_guard() }
    }

    /// Passes the guard of the caller, which must hold the mutex, to `wait`. The caller holds the
    /// guard that `wait` returns.
    pub(crate) fn with_guard<'a>(
        &'a self,
        wait: impl FnOnce(MutexGuard<'a, ()>) -> (MutexGuard<'a, ()>, Result<()>),
    ) -> Result<()> {
        let me = self.value.holder.load(Ordering::Relaxed);
        let again = self.value.again.swap(0, Ordering::Relaxed);
        let (guard, result) = wait(self.take_guard());
        mem::forget(guard);
        self.value.again.store(again, Ordering::Relaxed);
        self.value.holder.store(me, Ordering::Relaxed);
        result
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_init(mutex: *mut MutexObject, kind: c_int) -> c_int {
    answer(|| {
        let kind = u32::try_from(kind).map_err(|_| Code::INVALID)?;
        if !matches!(kind, NORMAL | RECURSIVE | ERRORCHECK) {
            return Err(Code::INVALID);
        }
        let fresh =
            Raw { lock: Mutex::new(()), holder: AtomicU64::new(0), again: AtomicU32::new(0) };
        // SAFETY: guaranteed by the caller.
        unsafe { MutexObject::create(mutex, kind, fresh) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_destroy(mutex: *mut MutexObject) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let mutex = unsafe { MutexObject::at(mutex) }?;
        if mutex.value.lock.try_lock().is_err() {
            return Err(Code::BUSY);
        }
        mutex.destroy();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_lock(mutex: *mut MutexObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { MutexObject::at(mutex) }?.lock(Timeout::Never))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_trylock(mutex: *mut MutexObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { MutexObject::at(mutex) }?.lock(Timeout::Immediate))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_timedlock(
    mutex: *mut MutexObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let timeout = unsafe { Timeout::until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { MutexObject::at(mutex) }?.lock(timeout)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_unlock(mutex: *mut MutexObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { MutexObject::at(mutex) }?.unlock())
}
