//! Locks and semaphores of `kyocho-tst` for C. `include/tst.h` documents the functions.
//!
//! **Invariant:** an object in C is one word with the layout of its Rust type, and the header's
//! initialisers are the words of new objects. Assertions below check both.
#![expect(unsafe_code, reason = "exports symbols and follows C's pointers")]
#![expect(
    clippy::missing_safety_doc,
    reason = "pointers are null or as the header says; the header documents the functions"
)]
#![expect(missing_docs, reason = "the header documents the functions")]

use core::ffi::c_int;

use kyocho_tst::PerCpuCounter;
use kyocho_tst::blocking::mutex::RawMutex;
use kyocho_tst::blocking::rwlock::RawRwLock;
use kyocho_tst::blocking::semaphore::{Semaphore, VALUE_MAX};
use libc::{EBUSY, EINVAL, EOVERFLOW, EPERM, ETIMEDOUT, timespec};

/// The word of a new object.
macro_rules! word_of {
    ($object:ty, $new:expr) => {{
        // SAFETY: a `repr(C)` wrapper of one word; the conversion checks its size.
        unsafe { core::mem::transmute::<$object, u64>($new) }
    }};
}

const _: () = assert!(word_of!(RawMutex, RawMutex::new()) == 1, "TST_MUTEX_INITIALIZER");
const _: () = assert!(word_of!(Semaphore, Semaphore::new(7)) == 7, "TST_SEM_INITIALIZER");
const _: () = assert!(word_of!(RawRwLock, RawRwLock::new()) == 0, "TST_RWLOCK_INITIALIZER");
const _: () = assert!(align_of::<RawMutex>() == align_of::<u64>());

/// Returns 0 if `holds`, else `error`.
fn ok_or(holds: bool, error: c_int) -> c_int {
    if holds { 0 } else { error }
}

/// Runs `body` with the object that a pointer of C points to, unless it is null.
fn with<T>(object: Option<&T>, body: impl FnOnce(&T) -> c_int) -> c_int {
    object.map_or(EINVAL, body)
}

/// The same with a deadline, in nanoseconds.
fn with_deadline<T>(
    object: Option<&T>,
    deadline: Option<&timespec>,
    body: impl FnOnce(&T, u64) -> bool,
) -> c_int {
    let ns = |time: &timespec| {
        let (seconds, ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
        (ns < 1_000_000_000).then(|| seconds.saturating_mul(1_000_000_000).saturating_add(ns))
    };
    match (object, deadline.and_then(ns)) {
        (Some(object), Some(deadline_ns)) => ok_or(body(object, deadline_ns), ETIMEDOUT),
        _ => EINVAL,
    }
}

/// Writes a new object to memory of C.
///
/// # Safety
/// `place` is null or writable.
unsafe fn write<T>(place: *mut T, value: T) -> c_int {
    if place.is_null() {
        return EINVAL;
    }
    // SAFETY: the caller guarantees it.
    unsafe { place.write(value) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tst_mutex_init(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the header requires it of the caller.
    unsafe { write(mutex, RawMutex::new()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_mutex_lock(mutex: Option<&RawMutex>) -> c_int {
    with(mutex, |mutex| {
        mutex.lock();
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_mutex_trylock(mutex: Option<&RawMutex>) -> c_int {
    with(mutex, |mutex| ok_or(mutex.try_lock(), EBUSY))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_mutex_timedlock(
    mutex: Option<&RawMutex>,
    deadline: Option<&timespec>,
) -> c_int {
    with_deadline(mutex, deadline, RawMutex::lock_until)
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_mutex_unlock(mutex: Option<&RawMutex>) -> c_int {
    with(mutex, |mutex| {
        if !mutex.is_locked() {
            return EPERM;
        }
        mutex.unlock();
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tst_sem_init(semaphore: *mut Semaphore, value: u32) -> c_int {
    if value > VALUE_MAX {
        return EINVAL;
    }
    // SAFETY: the header requires it of the caller.
    unsafe { write(semaphore, Semaphore::new(value)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_sem_wait(semaphore: Option<&Semaphore>) -> c_int {
    with(semaphore, |semaphore| {
        semaphore.acquire();
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_sem_trywait(semaphore: Option<&Semaphore>) -> c_int {
    with(semaphore, |semaphore| ok_or(semaphore.try_acquire(), EBUSY))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_sem_timedwait(
    semaphore: Option<&Semaphore>,
    deadline: Option<&timespec>,
) -> c_int {
    with_deadline(semaphore, deadline, Semaphore::acquire_until)
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_sem_post(semaphore: Option<&Semaphore>) -> c_int {
    with(semaphore, |semaphore| ok_or(semaphore.release().is_ok(), EOVERFLOW))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tst_sem_getvalue(semaphore: Option<&Semaphore>, value: *mut u32) -> c_int {
    // SAFETY: the header requires it of the caller.
    with(semaphore, |semaphore| unsafe { write(value, semaphore.value()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tst_rwlock_init(lock: *mut RawRwLock) -> c_int {
    // SAFETY: the header requires it of the caller.
    unsafe { write(lock, RawRwLock::new()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_rwlock_rdlock(lock: Option<&RawRwLock>) -> c_int {
    with(lock, |lock| ok_or(lock.read_until(None), ETIMEDOUT))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_rwlock_tryrdlock(lock: Option<&RawRwLock>) -> c_int {
    with(lock, |lock| ok_or(lock.try_read(), EBUSY))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_rwlock_timedrdlock(
    lock: Option<&RawRwLock>,
    deadline: Option<&timespec>,
) -> c_int {
    with_deadline(lock, deadline, |lock, ns| lock.read_until(Some(ns)))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_rwlock_wrlock(lock: Option<&RawRwLock>) -> c_int {
    with(lock, |lock| ok_or(lock.write_until(None), ETIMEDOUT))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_rwlock_trywrlock(lock: Option<&RawRwLock>) -> c_int {
    with(lock, |lock| ok_or(lock.try_write(), EBUSY))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_rwlock_timedwrlock(
    lock: Option<&RawRwLock>,
    deadline: Option<&timespec>,
) -> c_int {
    with_deadline(lock, deadline, |lock, ns| lock.write_until(Some(ns)))
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_rwlock_unlock(lock: Option<&RawRwLock>) -> c_int {
    with(lock, |lock| ok_or(lock.leave(), EPERM))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tst_counter_create(counter: *mut *mut PerCpuCounter) -> c_int {
    if counter.is_null() {
        return EINVAL;
    }
    // SAFETY: the header requires it of the caller.
    unsafe { write(counter, Box::into_raw(Box::new(PerCpuCounter::new()))) }
}

#[unsafe(no_mangle)]
pub extern "C" fn tst_counter_add(counter: Option<&PerCpuCounter>, addend: usize) -> c_int {
    with(counter, |counter| {
        counter.add(addend);
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tst_counter_sum(
    counter: Option<&PerCpuCounter>,
    sum: *mut usize,
) -> c_int {
    // SAFETY: the header requires it of the caller.
    with(counter, |counter| unsafe { write(sum, counter.sum()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn tst_counter_destroy(counter: *mut PerCpuCounter) -> c_int {
    if counter.is_null() {
        return EINVAL;
    }
    // SAFETY: made by `tst_counter_create`; the header requires that it is not used any more.
    drop(unsafe { Box::from_raw(counter) });
    0
}
