//! Waiting for the first of several channel operations: `kyocho_select`.
#![expect(unsafe_code, reason = "the border to C")]

use core::ffi::{c_int, c_void};
use core::slice;

use kyocho_microprocess::channel::{RecvArm, SendArm};
use kyocho_microprocess::select::{self, Select};

use crate::answer::{answer, caller};
use crate::channel::{Channel, Item, at};
use crate::error::{Code, Result};
use crate::mutex::Patience;

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

/// An operation that waits for its turn.
enum Arm<'a> {
    Send(SendArm<'a, Item>),
    Receive(RecvArm<'a, Item>, &'a Channel, *mut c_void),
}

impl<'a> Arm<'a> {
    /// # Safety
    /// The channel is null or alive; the item is null or, for the operation, one of the channel's.
    unsafe fn new(arm: &ArmOfC) -> Result<Self> {
        // SAFETY: the caller's promise.
        let channel = unsafe { at(arm.channel) }?;
        if arm.item.is_null() {
            return Err(Code::INVALID);
        }
        match arm.operation {
            SEND => {
                // SAFETY: an item of the channel, says the caller.
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

    /// What came of the operation, which was selected; what it received goes to its place.
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
                // SAFETY: a place for an item of the channel, says the caller.
                unsafe { channel.write(&block, item) };
                Ok(())
            }
        }
    }
}

/// # Safety
/// `arms` is null or points to `count` arms, each as for [`Arm::new`]; `selected` is null or a place for a number.
unsafe fn select(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
    patience: Patience,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let place = unsafe { selected.as_mut() }.ok_or(Code::INVALID)?;
    if arms.is_null() || !matches!(count, 1..=ARMS_MAX) {
        return Err(Code::INVALID);
    }
    // SAFETY: so many, says the caller.
    let given = unsafe { slice::from_raw_parts(arms, count) };
    // SAFETY: the caller's promise, for each.
    let made = given.iter().map(|arm| unsafe { Arm::new(arm) });
    let mut arms = made.collect::<Result<Vec<_>>>()?;
    let list: Vec<_> = arms.iter().map(Arm::as_dyn).collect();
    let select = Select::new(&list);
    let index = match patience {
        Patience::None => select.try_now().ok_or(Code::AGAIN),
        Patience::Endless => caller().map(|_| select.wait()),
        Patience::For(limit) => {
            caller().and_then(|_| select.wait_timeout(limit).ok_or(Code::TIMED_OUT))
        }
    }?;
    drop(list);
    *place = index;
    // SAFETY: the caller's promise.
    unsafe { arms.swap_remove(index).finish() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_select(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { select(arms, count, selected, Patience::Endless) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_tryselect(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { select(arms, count, selected, Patience::None) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_timedselect(
    arms: *const ArmOfC,
    count: usize,
    selected: *mut usize,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let patience = unsafe { Patience::until(deadline) }?;
        // SAFETY: the caller's promise.
        unsafe { select(arms, count, selected, patience) }
    })
}
