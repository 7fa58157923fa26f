//! Condition variables: `kyocho_cond_*`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::c_int;

use kyocho_microprocess::Condvar;
use kyocho_microprocess::sync::PoisonError;

use crate::answer::answer;
use crate::error::Code;
use crate::mutex::MutexObject;
use crate::object::{Kind, Object};
use crate::time::until;

// SAFETY: the size is that of `kyocho_cond_t`; zeros are a condition variable without waiters.
unsafe impl Kind for Condvar {
    const MAGIC: u32 = 0x6b79_636f;
    const C_BYTES: usize = 64;
}

type Condition = Object<Condvar>;

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_cond_init(condition: *mut Condition) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { Condition::create(condition, 0, Condvar::new()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_cond_destroy(condition: *mut Condition) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { Condition::at(condition) }.map(Condition::destroy))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_cond_wait(condition: *mut Condition, mutex: *mut MutexObject) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let condition = unsafe { Condition::at(condition) }?;
        // SAFETY: guaranteed by the caller.
        let mutex = unsafe { MutexObject::at(mutex) }?;
        mutex.check_held()?;
        let wait = |guard| condition.value.wait(guard).unwrap_or_else(PoisonError::into_inner);
        mutex.with_guard(|guard| (wait(guard), Ok(())))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_cond_timedwait(
    condition: *mut Condition,
    mutex: *mut MutexObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let limit = unsafe { until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        let condition = unsafe { Condition::at(condition) }?;
        // SAFETY: guaranteed by the caller.
        let mutex = unsafe { MutexObject::at(mutex) }?;
        mutex.check_held()?;
        mutex.with_guard(|guard| {
            let waited = condition.value.wait_timeout(guard, limit);
            let (guard, result) = waited.unwrap_or_else(PoisonError::into_inner);
            (guard, if result.timed_out() { Err(Code::TIMED_OUT) } else { Ok(()) })
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_cond_signal(condition: *mut Condition) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { Condition::at(condition) }.map(|condition| condition.value.notify_one()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_cond_broadcast(condition: *mut Condition) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { Condition::at(condition) }.map(|condition| condition.value.notify_all()))
}
