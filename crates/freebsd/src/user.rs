//! The program's memory, copied in and out. An address that is not mapped is an error, not a fault.
#![expect(unsafe_code, reason = "memory that no reference leads to")]

use crate::errno::Errno;
use crate::host::{address, address_of};
use kyocho_arch::emulation;

/// Types of which any bytes are a value.
///
/// # Safety
/// Every pattern of its bytes is a value. Padding carries no secrets, because a program's own
/// process has none.
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

/// Declares a structure whose fields are plain.
macro_rules! plain {
    ($($name:ty),* $(,)?) => { $(
        // SAFETY: each field is a number or an array of numbers.
        #[expect(unsafe_code, reason = "a promise about numbers")]
        unsafe impl $crate::user::Plain for $name {}
    )* };
}
pub(crate) use plain;

/// Reads a value at `from`.
///
/// # Errors
/// `FAULT`: it cannot be read.
pub(crate) fn read<T: Plain>(from: u64) -> Result<T, Errno> {
    let mut value = core::mem::MaybeUninit::<T>::zeroed();
    copy(address(&mut value), from, size_of::<T>())?;
    // SAFETY: all bytes have been written, and any bytes are a value.
    Ok(unsafe { value.assume_init() })
}

/// Writes `value` to address `to`.
///
/// # Errors
/// `FAULT`: it cannot be written.
pub(crate) fn write<T: Plain>(to: u64, value: &T) -> Result<(), Errno> {
    copy(to, address_of(value), size_of::<T>())
}

/// Writes `value` to address `to`, unless that is 0.
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

/// Writes `bytes` to address `to`.
///
/// # Errors
/// `FAULT`: not all can be written.
pub(crate) fn write_bytes(to: u64, bytes: &[u8]) -> Result<(), Errno> {
    copy(to, bytes.as_ptr().expose_provenance() as u64, bytes.len())
}

/// Copies. One side is a variable of the caller's, of that many bytes; the other is an address of
/// the program's.
fn copy(to: u64, from: u64, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the caller has borrowed its side for this call, and the library keeps nothing in the
    // program's memory.
    let all = unsafe { emulation::copy(to, from, bytes as u64) };
    if all { Ok(()) } else { Err(Errno::FAULT) }
}
