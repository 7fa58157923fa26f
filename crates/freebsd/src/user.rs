//! The program's memory: copied in and out, with an error instead of a fault where there is none.
#![expect(unsafe_code, reason = "memory that no reference leads to")]

use crate::errno::Errno;
use crate::host::{address, address_of};
use kyocho_arch::emulation;

/// Types that any bytes are a value of.
///
/// # Safety
/// Every pattern of its bytes is a value; it has no padding that would carry secrets (there are none in a program's own process).
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers.
unsafe impl Plain for i32 {}
// SAFETY: numbers.
unsafe impl Plain for u32 {}
// SAFETY: numbers.
unsafe impl Plain for i64 {}
// SAFETY: numbers.
unsafe impl Plain for u64 {}
// SAFETY: its elements are plain.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: numbers.
unsafe impl Plain for u8 {}

/// Says of a structure that its fields are plain.
macro_rules! plain {
    ($($name:ty),* $(,)?) => { $(
        // SAFETY: each field is a number, or an array of such.
        #[expect(unsafe_code, reason = "a promise about numbers")]
        unsafe impl $crate::user::Plain for $name {}
    )* };
}
pub(crate) use plain;

/// What stands at `from`.
///
/// # Errors
/// `FAULT`: it cannot be read.
pub(crate) fn read<T: Plain>(from: u64) -> Result<T, Errno> {
    let mut value = core::mem::MaybeUninit::<T>::zeroed();
    copy(address(&mut value), from, size_of::<T>())?;
    // SAFETY: all bytes are there, and any are a value.
    Ok(unsafe { value.assume_init() })
}

/// Puts `value` to address `to`.
///
/// # Errors
/// `FAULT`: it cannot be written.
pub(crate) fn write<T: Plain>(to: u64, value: &T) -> Result<(), Errno> {
    copy(to, address_of(value), size_of::<T>())
}

/// Puts `value` to address `to`, unless that is 0: nobody wants it.
///
/// # Errors
/// `FAULT`: it cannot be written.
pub(crate) fn write_if_wanted<T: Plain>(to: u64, value: &T) -> Result<(), Errno> {
    if to == 0 { Ok(()) } else { write(to, value) }
}

/// Fills `into` from address `from`.
///
/// # Errors
/// `FAULT`: not all can be read.
pub(crate) fn read_bytes(from: u64, into: &mut [u8]) -> Result<(), Errno> {
    copy(into.as_mut_ptr().expose_provenance() as u64, from, into.len())
}

/// Puts `bytes` to address `to`.
///
/// # Errors
/// `FAULT`: not all can be written.
pub(crate) fn write_bytes(to: u64, bytes: &[u8]) -> Result<(), Errno> {
    copy(to, bytes.as_ptr().expose_provenance() as u64, bytes.len())
}

/// One side is a variable of the caller's, of that many bytes; the other an address of the program's.
fn copy(to: u64, from: u64, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the caller's side is borrowed by it for this call; the program's memory holds nothing that is ours.
    let all = unsafe { emulation::copy(to, from, bytes as u64) };
    if all { Ok(()) } else { Err(Errno::FAULT) }
}
