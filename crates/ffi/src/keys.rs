//! `kyocho_key_*`, `kyocho_getspecific`, `kyocho_setspecific`: values of each microprocess's own.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{c_int, c_void};
use core::ptr;

use kyocho_microprocess::Microprocess;

use crate::answer::{answer, caller};
use crate::error::Code;
use crate::specific::{self, Destructor};

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_key_create(key: *mut u32, destructor: Option<Destructor>) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller: null or memory for a key.
        let key = unsafe { key.as_mut() }.ok_or(Code::INVALID)?;
        *key = specific::create(destructor)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_key_delete(key: u32) -> c_int {
    answer(|| specific::delete(key))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_setspecific(key: u32, value: *const c_void) -> c_int {
    answer(|| {
        let generation = specific::generation(key)?;
        caller()?;
        specific::set(key, generation, value.cast_mut());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_getspecific(key: u32) -> *mut c_void {
    let Ok(generation) = specific::generation(key) else { return ptr::null_mut() };
    if Microprocess::try_current().is_none() {
        return ptr::null_mut();
    }
    specific::get(key, generation)
}
