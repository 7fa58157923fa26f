//! Semaphores: `kyocho_sem_*`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{c_int, c_uint};

use kyocho_microprocess::Semaphore;

use crate::answer::{answer, caller};
use crate::error::Code;
use crate::object::{Kind, Object};
use crate::time::until;

/// Largest number of permits: what `kyocho_sem_getvalue` can return.
const PERMITS_MAX: usize = c_int::MAX as usize;

// SAFETY: the size is that of `kyocho_sem_t`; there is no static initialiser.
unsafe impl Kind for Semaphore {
    const MAGIC: u32 = 0x6b79_7365;
    const C_BYTES: usize = 64;
}

type SemaphoreObject = Object<Semaphore>;

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_sem_init(semaphore: *mut SemaphoreObject, permits: c_uint) -> c_int {
    answer(|| {
        let permits = permits as usize;
        if permits > PERMITS_MAX {
            return Err(Code::INVALID);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { SemaphoreObject::create(semaphore, 0, Semaphore::new(permits)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_sem_destroy(semaphore: *mut SemaphoreObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { SemaphoreObject::at(semaphore) }.map(SemaphoreObject::destroy))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_sem_wait(semaphore: *mut SemaphoreObject) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let semaphore = unsafe { SemaphoreObject::at(semaphore) }?;
        caller()?;
        semaphore.value.acquire();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_sem_trywait(semaphore: *mut SemaphoreObject) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let semaphore = unsafe { SemaphoreObject::at(semaphore) }?;
        if semaphore.value.try_acquire() { Ok(()) } else { Err(Code::AGAIN) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_sem_timedwait(
    semaphore: *mut SemaphoreObject,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let limit = unsafe { until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        let semaphore = unsafe { SemaphoreObject::at(semaphore) }?;
        caller()?;
        if semaphore.value.acquire_timeout(limit) { Ok(()) } else { Err(Code::TIMED_OUT) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_sem_post(semaphore: *mut SemaphoreObject) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let semaphore = unsafe { SemaphoreObject::at(semaphore) }?;
        if semaphore.value.permits() >= PERMITS_MAX {
            return Err(Code::OVERFLOW);
        }
        semaphore.value.release();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_sem_getvalue(
    semaphore: *mut SemaphoreObject,
    permits: *mut c_int,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let semaphore = unsafe { SemaphoreObject::at(semaphore) }?;
        // SAFETY: guaranteed by the caller: null or memory for a number.
        let place = unsafe { permits.as_mut() }.ok_or(Code::INVALID)?;
        *place = semaphore.value.permits().min(PERMITS_MAX) as c_int;
        Ok(())
    })
}
