//! Mutexes: `kyocho_mutex_*`.
#![expect(unsafe_code, reason = "the border to C")]

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

/// What `kyocho_mutex_t` holds; `detail` is its kind.
pub(crate) struct Raw {
    lock: Mutex<()>,
    /// The id of its holder, 0 for nobody. Written by the holder.
    holder: AtomicU64,
    /// How often its holder has locked it beyond the first time.
    again: AtomicU32,
}

// SAFETY: the size is that of `kyocho_mutex_t`; zeros are an unlocked mutex that nobody holds.
unsafe impl Kind for Raw {
    const MAGIC: u32 = 0x6b79_6d75;
    const C_BYTES: usize = 120;
}

pub(crate) type MutexObject = Object<Raw>;

/// How long to wait for a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Not at all.
    None,
    /// As long as it takes.
    Endless,
    /// This long.
    For(Duration),
}

impl Patience {
    /// Until `deadline`.
    ///
    /// # Safety
    /// `deadline` is null or points to a time.
    pub(crate) unsafe fn until(deadline: *const libc::timespec) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { until(deadline) }.map(Self::For)
    }

    /// What it means that the lock was not got.
    pub(crate) const fn failure(self) -> Code {
        match self {
            Self::None | Self::Endless => Code::BUSY,
            Self::For(_) => Code::TIMED_OUT,
        }
    }
}

/// Keeps a guard that C cannot carry; [`MutexObject::unlock`] makes it again.
fn keep<G, E>(
    locked: core::result::Result<G, TryLockError<G>>,
    otherwise: E,
) -> core::result::Result<(), E> {
    match locked {
        Ok(guard) => mem::forget(guard),
        // Poison is Rust's: a panic, which does not come this far.
        Err(TryLockError::Poisoned(guard)) => mem::forget(guard.into_inner()),
        Err(TryLockError::WouldBlock) => return Err(otherwise),
    }
    Ok(())
}

impl MutexObject {
    /// Locks for the caller.
    fn lock(&self, patience: Patience) -> Result<()> {
        let me = caller()?.id();
        if self.value.holder.load(Ordering::Relaxed) == me && self.detail != NORMAL {
            return self.lock_again(patience);
        }
        let lock = &self.value.lock;
        match patience {
            Patience::None => keep(lock.try_lock(), patience.failure())?,
            Patience::Endless => keep(lock.lock().map_err(Into::into), patience.failure())?,
            Patience::For(limit) => keep(lock.lock_timeout(limit), patience.failure())?,
        }
        self.value.holder.store(me, Ordering::Relaxed);
        Ok(())
    }

    fn lock_again(&self, patience: Patience) -> Result<()> {
        if self.detail == RECURSIVE {
            let again = self.value.again.load(Ordering::Relaxed);
            let more = again.checked_add(1).ok_or(Code::AGAIN)?;
            self.value.again.store(more, Ordering::Relaxed);
            return Ok(());
        }
        Err(if matches!(patience, Patience::None) { Code::BUSY } else { Code::DEADLOCK })
    }

    fn unlock(&self) -> Result<()> {
        self.check_held()?;
        let again = self.value.again.load(Ordering::Relaxed);
        if again > 0 {
            self.value.again.store(again - 1, Ordering::Relaxed);
        } else {
            drop(self.give_up());
        }
        Ok(())
    }

    /// The caller holds it.
    pub(crate) fn check_held(&self) -> Result<()> {
        let held = self.value.holder.load(Ordering::Relaxed) == caller()?.id();
        if held { Ok(()) } else { Err(Code::NOT_PERMITTED) }
    }

    /// The guard of the caller, which holds the mutex, for good or to wait for a condition.
    fn give_up(&self) -> MutexGuard<'_, ()> {
        self.value.holder.store(0, Ordering::Relaxed);
        // SAFETY: the caller is the holder, whose guard `keep` has forgotten.
        unsafe { self.value.lock.make_guard() }
    }

    /// Passes the guard of the caller, which holds the mutex, to `wait`, and takes what it returns as the caller's.
    pub(crate) fn lend<'a>(
        &'a self,
        wait: impl FnOnce(MutexGuard<'a, ()>) -> (MutexGuard<'a, ()>, Result<()>),
    ) -> Result<()> {
        let me = self.value.holder.load(Ordering::Relaxed);
        let again = self.value.again.swap(0, Ordering::Relaxed);
        let (guard, result) = wait(self.give_up());
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
        // SAFETY: the caller's promise.
        unsafe { MutexObject::create(mutex, kind, fresh) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_destroy(mutex: *mut MutexObject) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
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
    // SAFETY: the caller's promise.
    answer(|| unsafe { MutexObject::at(mutex) }?.lock(Patience::Endless))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_trylock(mutex: *mut MutexObject) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { MutexObject::at(mutex) }?.lock(Patience::None))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_timedlock(
    mutex: *mut MutexObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let patience = unsafe { Patience::until(deadline) }?;
        // SAFETY: the caller's promise.
        unsafe { MutexObject::at(mutex) }?.lock(patience)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_mutex_unlock(mutex: *mut MutexObject) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { MutexObject::at(mutex) }?.unlock())
}
