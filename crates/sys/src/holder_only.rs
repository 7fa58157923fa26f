//! A value that one thread at a time may touch, which shows by a token that it is the one.
//!
//! Whatever excludes others (a mask, a claim, a lock of some kind) makes tokens; the value asks for one at each access. So code that has
//! excluded nobody does not compile:
//!
//! ```compile_fail
//! use kyocho_sys::holder_only::HolderOnly;
//!
//! let queue = HolderOnly::new(vec![1, 2]);
//! assert_eq!(queue.get().len(), 2);
//! ```
//!
//! A token that anybody could make up is none:
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
//! With one it costs nothing: a token is a type, and the access an address.
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

/// A token: while a value of this type is used, nobody else touches what it is shown to.
///
/// # Safety
/// Values are made only where that is so, and where values for different things exist, each is shown to its own.
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

    /// The value, for who shows a token.
    #[inline(always)]
    pub const fn get<P: Proof>(&self, _proof: &P) -> &T {
        &self.0
    }

    /// The value, for who has none.
    ///
    /// # Safety
    /// The caller touches only such parts of it as many threads may touch at once.
    #[inline(always)]
    pub const unsafe fn get_shared(&self) -> &T {
        &self.0
    }
}
