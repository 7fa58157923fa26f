//! Condition variables of PARMACS programs: a number, and the lock of the waiting processes, which
//! a signalling process has held since they began to wait.
#![expect(unsafe_code, reason = "exports symbols and touches objects of C")]

use core::ffi::c_int;

use kyocho_dsm::{ConditionId, Waiters};

use crate::node::{Failure, or_end, with};
use crate::objects::{Lock, read, write};
use crate::program::{is_shared, new_lock};

/// `kyocho_dsm_condition_t`; number 0: not initialised.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Condition {
    number: u32,
    /// 0: no process has waited.
    lock: Lock,
}

impl Condition {
    fn id(self) -> Result<ConditionId, Failure> {
        let missing = "the condition variable was not initialised: use CONDVARINIT first";
        let id = (self.number != 0).then_some(ConditionId(self.number));
        id.ok_or_else(|| Failure::Invalid(missing.to_owned()))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_condition_init(place: *mut Condition) {
    // SAFETY: C's promise.
    or_end(|| unsafe { write(place, Condition { number: new_lock()?, lock: Lock::NONE }) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_condition_wait(place: *mut Condition, lock: *const Lock) {
    or_end(|| {
        // SAFETY: C's promise.
        let (condition, lock) = (unsafe { read(place) }?, unsafe { read(lock) }?);
        let (id, lock_id) = (condition.id()?, lock.id()?);
        if !is_shared()? {
            let alone =
                "a process waits for a signal, but no other process exists yet that could send it";
            return Err(Failure::Invalid(alone.to_owned()));
        }
        if condition.lock != lock {
            // SAFETY: C's promise; the lock is held, so a signalling process sees the write.
            unsafe { write(place, Condition { lock, ..condition }) }?;
        }
        lock.publish()?;
        with(|dsm| Ok(dsm.wait(lock_id, id)?))
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_condition_signal(place: *const Condition, all: c_int) {
    or_end(|| {
        // SAFETY: C's promise.
        let condition = unsafe { read(place) }?;
        let (id, who) = (condition.id()?, if all == 0 { Waiters::One } else { Waiters::All });
        if condition.lock == Lock::NONE || !is_shared()? {
            return Ok(());
        }
        let lock = condition.lock.id()?;
        with(|dsm| Ok(dsm.signal(lock, id, who)?))
    });
}
