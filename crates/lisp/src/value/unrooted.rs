//! Values that nothing keeps, bounded by a lifetime.
//!
//! ```text
//!  &Mutator, &Machine ── unrooted, outcome ──► Unrooted<'m>          &mut: outside, leave: no Unrooted is left
//! ```
//!
//! The type says nothing of a plain [`Value`]: an argument of a primitive, which its frame keeps, or what [`Unrooted::value`] has given.

use super::Value;
use core::marker::PhantomData;

/// A value that nothing is known to keep: good as long as `'m`, the borrow of the mutator or machine that gave it. The compiler refuses one that
/// is held while collections go by; see [`Mutator::outside`](crate::heap::Mutator::outside).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrooted<'m>(Value, PhantomData<&'m ()>);

impl<'m> Unrooted<'m> {
    /// What `owner` gives out.
    pub(crate) const fn new<T>(value: Value, _owner: &'m T) -> Self {
        Self(value, PhantomData)
    }

    /// The value without its bound: for what uses it at once, or puts it where the collector finds it.
    #[must_use]
    #[inline]
    pub const fn value(self) -> Value {
        self.0
    }

    /// The first of a pair, as [`Value::car`].
    #[must_use]
    #[inline]
    pub fn car(self) -> Option<Self> {
        Some(Self(self.0.car()?, PhantomData))
    }

    /// The rest of a pair, as [`Value::cdr`].
    #[must_use]
    #[inline]
    pub fn cdr(self) -> Option<Self> {
        Some(Self(self.0.cdr()?, PhantomData))
    }

    /// Both, as [`Value::uncons`].
    #[must_use]
    #[inline]
    pub fn uncons(self) -> Option<(Self, Self)> {
        let (car, cdr) = self.0.uncons()?;
        Some((Self(car, PhantomData), Self(cdr, PhantomData)))
    }
}
