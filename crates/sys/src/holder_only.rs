//! A value that only one thread at a time may access, as a token proves.
//!
//! Whatever provides exclusion (a mask, a claim, a lock) makes tokens; each access to the value
//! requires one. So code without exclusion does not compile:
//!
//! ```compile_fail
//! use kyocho_sys::holder_only::HolderOnly;
//!
//! let queue = HolderOnly::new(vec![1, 2]);
//! assert_eq!(queue.get().len(), 2);
//! ```
//!
//! A type that does not guarantee exclusion cannot serve as a token:
//!
//! ```compile_fail
//! use kyocho_sys::holder_only::HolderOnly;
//!
//! struct MadeUp;
//!
//! let queue = HolderOnly::new(vec![1, 2]);
//! assert_eq!(queue.get(&MadeUp).len(), 2);
//! ```
//!
//! A token costs nothing at run time: it is a type, and the access an address.
//!
//! ```
//! use kyocho_sys::holder_only::{HolderOnly, Proof};
//!
//! /// There is one thread.
//! struct Alone;
//!
//! // SAFETY: see above.
//! unsafe impl Proof for Alone {}
//!
//! let queue = HolderOnly::new(vec![1, 2]);
//! assert_eq!(queue.get(&Alone).len(), 2);
//! ```
#![expect(unsafe_code, reason = "a trait that promises exclusion")]

/// A token. While a value of this type is in use, no other thread accesses the data it is used for.
///
/// # Safety
/// Values are made only while that holds. If there are values for different data, each is used for
/// its own data only.
pub unsafe trait Proof {}

/// A value behind a token.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct HolderOnly<T>(T);

impl<T> HolderOnly<T> {
    /// Puts `value` behind a token.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for a caller with a token.
    #[inline(always)]
    pub const fn get<P: Proof>(&self, _proof: &P) -> &T {
        &self.0
    }

    /// The value, for a caller without a token.
    ///
    /// # Safety
    /// The caller accesses only parts that several threads may access concurrently.
    #[inline(always)]
    pub const unsafe fn get_shared(&self) -> &T {
        &self.0
    }
}
