//! The closure of a microprocess in its slot, and later its result.
#![expect(unsafe_code, reason = "moves closures and results into stack slots")]

use core::ptr;
use std::thread;

use kyocho_arch::{Context, prepare};

use super::entry;
use crate::processor::instruments;
use crate::processor::record::Record;
use crate::processor::slot::{PAYLOAD_BYTES_MAX, payload};

/// The result of a microprocess: its value, or its panic payload.
pub(super) type Outcome<T> = thread::Result<T>;

/// Whether a value of type `P` fits into the slot itself.
pub(super) const fn fits<P>() -> bool {
    size_of::<P>() <= PAYLOAD_BYTES_MAX && align_of::<P>() <= 64
}

/// Moves `body` into a free slot and prepares its stack.
///
/// # Safety
/// The slot is free and owned by the caller. The microprocess ends before what `body` and `T`
/// borrow.
pub(crate) unsafe fn furnish<F, T>(record: &'static Record, body: F) -> Context
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    // SAFETY: the place directly below the record of a free slot is large enough for the payload.
    unsafe { payload::<F>(record).write(body) };
    let top = payload::<F>(record).addr().min(result_top::<T>(record));
    let top = ptr::from_ref(record).cast_mut().cast::<u8>().with_addr(top & !15);
    instruments::spawn(record);
    // SAFETY: the free stack is below the payload.
    unsafe { prepare(top, entry::<F, T>, ptr::from_ref(record).expose_provenance()) }
}

/// Where a result of type `T` begins in the slot: the result itself, or its box if it does not fit.
fn result_top<T>(record: &'static Record) -> usize {
    if const { fits::<Outcome<T>>() } {
        payload::<Outcome<T>>(record).addr()
    } else {
        payload::<Box<Outcome<T>>>(record).addr()
    }
}

/// Stores the result in the slot.
///
/// # Safety
/// The caller is the microprocess of the slot, and its closure was moved out.
pub(super) unsafe fn put_result<T>(record: &'static Record, outcome: Outcome<T>) {
    if const { fits::<Outcome<T>>() } {
        // SAFETY: the place below the record is large enough, and the stack ends below it.
        unsafe { payload::<Outcome<T>>(record).write(outcome) };
    } else {
        // SAFETY: as above.
        unsafe { payload::<Box<Outcome<T>>>(record).write(Box::new(outcome)) };
    }
}

/// Takes the result from the slot. Its box must be freed after the section is left.
///
/// # Safety
/// The microprocess has stored it there, and it was not taken yet.
pub(super) unsafe fn take_result<T>(record: &'static Record) -> Taken<T> {
    if const { fits::<Outcome<T>>() } {
        // SAFETY: the caller's promise.
        Taken::Here(unsafe { payload::<Outcome<T>>(record).read() })
    } else {
        // SAFETY: the caller's promise.
        Taken::Boxed(unsafe { payload::<Box<Outcome<T>>>(record).read() })
    }
}

/// A result taken from the slot. Unboxing it frees memory, so that is done after events are
/// unmasked.
pub(super) enum Taken<T> {
    Here(Outcome<T>),
    Boxed(Box<Outcome<T>>),
}

impl<T> Taken<T> {
    pub(super) fn into_outcome(self) -> Outcome<T> {
        match self {
            Self::Here(outcome) => outcome,
            Self::Boxed(outcome) => *outcome,
        }
    }
}

/// Drops the result in a slot.
pub(super) fn drop_result<T>(record: &'static Record) {
    // SAFETY: called once, for a finished microprocess whose result is not taken by a handle.
    drop(unsafe { take_result::<T>(record) });
}
