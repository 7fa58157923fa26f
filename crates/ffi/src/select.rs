//! Waiting for the first of several channel operations: `kyocho_select`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{c_int, c_void};
use core::slice;

use kyocho_microprocess::channel::{RecvArm, SendArm};
use kyocho_microprocess::select::{self, Select};

use crate::answer::{answer, caller};
use crate::channel::{Channel, Item, at};
use crate::error::{Code, Result};
use crate::mutex::Timeout;

/// `KYOCHO_ARMS_MAX`.
const ARMS_MAX: usize = 64;
/// `KYOCHO_ARM_SEND`.
const SEND: c_int = 1;
/// `KYOCHO_ARM_RECV`.
const RECEIVE: c_int = 2;

/// `kyocho_arm_t`.
#[repr(C)]
struct ArmOfC {
    channel: *const Channel,
    item: *mut c_void,
    operation: c_int,
}

/// An operation that waits to be selected.
enum Arm<'a> {
    Send(SendArm<'a, Item>),
    Receive(RecvArm<'a, Item>, &'a Channel, *mut c_void),
}

impl<'a> Arm<'a> {
    /// # Safety
    /// The channel is null or alive. The item is null, or an item of the channel, or memory for
    /// one, as the operation needs.
    unsafe fn new(arm: &ArmOfC) -> Result<Self> {
        // SAFETY: guaranteed by the caller.
        let channel = unsafe { at(arm.channel) }?;
        if arm.item.is_null() {
            return Err(Code::INVALID);
        }
        match arm.operation {
            SEND => {
                // SAFETY: guaranteed by the caller: an item of the channel.
                let block = unsafe { channel.read(arm.item) };
                Ok(Self::Send(select::send(channel.sender(), block)))
            }
            RECEIVE => Ok(Self::Receive(select::recv(channel.receiver()), channel, arm.item)),
            _ => Err(Code::INVALID),
        }
    }

    fn as_dyn(&self) -> &dyn select::Arm {
        match self {
            Self::Send(arm) => arm,
            Self::Receive(arm, ..) => arm,
        }
    }

    /// Finishes the operation, which was selected: copies a received item to its destination.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    unsafe fn finish(self) -> Result<()> {
        match self {
            Self::Send(arm) => {
                arm.finish().map_or(Err(Code::INVALID), |sent| sent.map_err(|_| Code::CLOSED))
            }
            Self::Receive(arm, channel, item) => {
                let block = arm.finish().ok_or(Code::INVALID)?.map_err(|_| Code::CLOSED)?;
                // SAFETY: guaranteed by the caller: memory for an item of the channel.
                unsafe { channel.write(&block, item) };
                Ok(())
            }
        }
    }
}

/// # Safety
/// `arms` is null or points to `count` arms, each as for [`Arm::new`]. `selected` is null or memory
/// for a number.
unsafe fn select(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
    timeout: Timeout,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let place = unsafe { selected.as_mut() }.ok_or(Code::INVALID)?;
    if arms.is_null() || !matches!(count, 1..=ARMS_MAX) {
        return Err(Code::INVALID);
    }
    // SAFETY: guaranteed by the caller: that many arms.
    let given = unsafe { slice::from_raw_parts(arms, count) };
    // SAFETY: guaranteed by the caller for each arm.
    let made = given.iter().map(|arm| unsafe { Arm::new(arm) });
    let mut arms = made.collect::<Result<Vec<_>>>()?;
    let list: Vec<_> = arms.iter().map(Arm::as_dyn).collect();
    let select = Select::new(&list);
    let index = match timeout {
        Timeout::Immediate => select.try_now().ok_or(Code::AGAIN),
        Timeout::Never => caller().map(|_| select.wait()),
        Timeout::After(limit) => {
            caller().and_then(|_| select.wait_timeout(limit).ok_or(Code::TIMED_OUT))
        }
    }?;
    drop(list);
    *place = index;
    // SAFETY: guaranteed by the caller.
    unsafe { arms.swap_remove(index).finish() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_select(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { select(arms, count, selected, Timeout::Never) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_tryselect(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { select(arms, count, selected, Timeout::Immediate) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_timedselect(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let timeout = unsafe { Timeout::until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { select(arms, count, selected, timeout) }
    })
}
