//! One-time initialisation: `kyocho_once`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::c_int;

use kyocho_microprocess::sync::PoisonError;
use kyocho_microprocess::{Mutex, instruments};
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};

use crate::answer::{answer, caller};
use crate::error::Code;
use crate::object::{Kind, Object};

/// The contents of `kyocho_once_t`.
pub(crate) struct Raw {
    lock: Mutex<()>,
    done: AtomicBool,
}

// SAFETY: the size is that of `kyocho_once_t`; zeros mean that it has not run.
unsafe impl Kind for Raw {
    const MAGIC: u32 = 0x6b79_6f6e;
    const C_BYTES: usize = 120;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_once(
    once: *mut Object<Raw>,
    initialise: Option<unsafe extern "C" fn()>,
) -> c_int {
    answer(|| {
        let initialise = initialise.ok_or(Code::INVALID)?;
        // SAFETY: guaranteed by the caller.
        let once = &unsafe { Object::at(once) }?.value;
        if once.done.load(Ordering::Acquire) {
            instruments::acquire(&once.done);
            return Ok(());
        }
        caller()?;
        let _lock = once.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !once.done.load(Ordering::Acquire) {
            // SAFETY: C passed a function to be called once.
            unsafe { initialise() };
            instruments::release(&once.done);
            once.done.store(true, Ordering::Release);
        }
        Ok(())
    })
}
