//! Objects of PARMACS programs, in memory of C, which is mostly shared. A lock is a number; the
//! other objects contain one.
#![expect(unsafe_code, reason = "exports symbols and touches objects of C")]

use core::ffi::c_long;
use core::ptr;

use kyocho_dsm::{ConditionId, LockId, Mode, Waiters};

use crate::node::{Failure, Result, or_end, with};
use crate::program::{barrier, is_shared, new_lock};

/// `kyocho_dsm_lock_t`; number 0: not initialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Lock {
    number: u32,
}

/// `kyocho_dsm_flag_t`
#[derive(Debug)]
#[repr(C)]
struct Flag {
    lock: Lock,
    set: u32,
}

/// `kyocho_dsm_counter_t`
#[derive(Debug)]
#[repr(C)]
struct Counter {
    lock: Lock,
    unused: u32,
    next: c_long,
}

/// The condition on which processes wait for a flag.
const CHANGED: ConditionId = ConditionId(0);

impl Lock {
    pub(crate) const NONE: Self = Self { number: 0 };

    fn new() -> Result<Self> {
        Ok(Self { number: new_lock()? })
    }

    pub(crate) fn id(self) -> Result<LockId> {
        if self.number == 0 {
            return Err(Failure::Invalid(
                "the lock was not initialised: use LOCKINIT first".to_owned(),
            ));
        }
        Ok(LockId(self.number))
    }

    /// Before the first `CREATE` there is one process: nothing is locked.
    fn acquire(self) -> Result<()> {
        let id = self.id()?;
        if is_shared()? { with(|dsm| Ok(dsm.acquire(id, Mode::Exclusive)?)) } else { Ok(()) }
    }

    fn release(self) -> Result<()> {
        let id = self.id()?;
        if is_shared()? { with(|dsm| Ok(dsm.release(id)?)) } else { Ok(()) }
    }

    /// Publishes all known writes with the lock.
    pub(crate) fn publish(self) -> Result<()> {
        let id = self.id()?;
        if is_shared()? { with(|dsm| Ok(dsm.publish(id)?)) } else { Ok(()) }
    }

    /// Calls a function under the lock.
    fn under<T>(self, body: impl FnOnce() -> T) -> Result<T> {
        self.acquire()?;
        let done = body();
        self.release()?;
        Ok(done)
    }
}

/// A null pointer was passed.
fn null() -> Failure {
    Failure::Invalid("the pointer to the object is null".to_owned())
}

/// Reads the value at `place`.
///
/// # Safety
/// `place` is null or points to a value.
pub(crate) unsafe fn read<T: Copy>(place: *const T) -> Result<T> {
    if place.is_null() {
        return Err(null());
    }
    // SAFETY: the caller's promise. Other nodes change their copies, not this one.
    Ok(unsafe { place.read_volatile() })
}

/// Writes an object to `place`.
///
/// # Safety
/// `place` is null or has room for a value.
pub(crate) unsafe fn write<T>(place: *mut T, value: T) -> Result<()> {
    if place.is_null() {
        return Err(null());
    }
    // SAFETY: the caller's promise.
    unsafe { place.write_volatile(value) };
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_lock_init(place: *mut Lock) {
    // SAFETY: C's promise.
    or_end(|| unsafe { write(place, Lock::new()?) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_lock(place: *const Lock) {
    // SAFETY: C's promise.
    or_end(|| unsafe { read(place) }?.acquire());
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_unlock(place: *const Lock) {
    // SAFETY: C's promise.
    or_end(|| unsafe { read(place) }?.release());
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_unlock_all(place: *const Lock) {
    or_end(|| {
        // SAFETY: C's promise.
        let lock = unsafe { read(place) }?;
        lock.publish()?;
        lock.release()
    });
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_barrier_of(processes: c_long) {
    or_end(|| barrier(processes));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_flag_init(place: *mut Flag) {
    // SAFETY: C's promise.
    or_end(|| unsafe { write(place, Flag { lock: Lock::new()?, set: 0 }) });
}

/// The lock and the word of a flag.
///
/// # Safety
/// `place` is null or points to a flag.
unsafe fn parts_of(place: *mut Flag) -> Result<(Lock, *mut u32)> {
    if place.is_null() {
        return Err(null());
    }
    // SAFETY: the caller's promise.
    let lock = unsafe { &raw const (*place).lock };
    // SAFETY: the caller's promise.
    let set = unsafe { &raw mut (*place).set };
    // SAFETY: the caller's promise.
    Ok((unsafe { read(lock) }?, set))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_flag_set(place: *mut Flag, value: u32) {
    or_end(|| {
        // SAFETY: C's promise.
        let (lock, set) = unsafe { parts_of(place) }?;
        lock.acquire()?;
        // SAFETY: a word of the flag.
        unsafe { ptr::write_volatile(set, value) };
        if value != 0 {
            // A process that has waited for a flag expects to see all earlier writes.
            lock.publish()?;
        }
        if is_shared()? {
            with(|dsm| Ok(dsm.signal(lock.id()?, CHANGED, Waiters::All)?))?;
        }
        lock.release()
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_flag_wait(place: *mut Flag, value: u32) {
    or_end(|| {
        // SAFETY: C's promise.
        let (lock, set) = unsafe { parts_of(place) }?;
        lock.acquire()?;
        // SAFETY: a word of the flag.
        while unsafe { ptr::read_volatile(set) } != value {
            if !is_shared()? {
                let alone =
                    "a process waits for a flag, but no other process exists yet that could set it";
                return Err(Failure::Invalid(alone.to_owned()));
            }
            with(|dsm| Ok(dsm.wait(lock.id()?, CHANGED)?))?;
        }
        lock.release()
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_counter_init(place: *mut Counter) {
    // SAFETY: C's promise.
    or_end(|| unsafe { write(place, Counter { lock: Lock::new()?, unused: 0, next: 0 }) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_counter_next(
    place: *mut Counter,
    last: c_long,
    processes: c_long,
) -> c_long {
    or_end(|| {
        if place.is_null() {
            return Err(null());
        }
        // SAFETY: C's promise.
        let lock = unsafe { (*place).lock };
        // SAFETY: C's promise.
        let next = unsafe { &raw mut (*place).next };
        let taken = lock.under(|| {
            // SAFETY: a word of the counter.
            let taken = unsafe { ptr::read_volatile(next) };
            // SAFETY: as above.
            unsafe { ptr::write_volatile(next, taken.saturating_add(1)) };
            taken
        })?;
        if taken <= last {
            return Ok(taken);
        }
        // All processes have asked for more: the next round begins.
        barrier(processes)?;
        lock.under(|| {
            // SAFETY: as above.
            unsafe { ptr::write_volatile(next, 0) };
        })?;
        barrier(processes)?;
        Ok(-1)
    })
}
