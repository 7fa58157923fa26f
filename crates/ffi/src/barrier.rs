//! Barriers: `kyocho_barrier_*`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{c_int, c_uint};

use kyocho_microprocess::Barrier;

use crate::answer::{answer, caller};
use crate::error::Code;
use crate::object::{Kind, Object};

/// Returned to one of the parties. Not an error number.
const SERIAL: c_int = -1;

// SAFETY: the size is that of `kyocho_barrier_t`; there is no static initialiser.
unsafe impl Kind for Barrier {
    const MAGIC: u32 = 0x6b79_6261;
    const C_BYTES: usize = 64;
}

type BarrierObject = Object<Barrier>;

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_barrier_init(barrier: *mut BarrierObject, parties: c_uint) -> c_int {
    answer(|| {
        if parties == 0 {
            return Err(Code::INVALID);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { BarrierObject::create(barrier, 0, Barrier::new(parties as usize)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_barrier_destroy(barrier: *mut BarrierObject) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { BarrierObject::at(barrier) }.map(BarrierObject::destroy))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_barrier_wait(barrier: *mut BarrierObject) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let barrier = unsafe { BarrierObject::at(barrier) }?;
        caller()?;
        if barrier.value.wait().is_leader() { Err(Code(SERIAL)) } else { Ok(()) }
    })
}
