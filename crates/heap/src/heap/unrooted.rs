//! Values that are not rooted, bounded by a lifetime.
//!
//! ```text
//!  &Mutator ── unrooted ──► Unrooted<'m> ── kept ──► Kept
//!                                                      │ &mut Mutator: pause
//!                           Unrooted<'m> ◄── unrooted ── KeptValues
//! ```
//!
//! Allocation needs a `&Mutator` and never collects. Operations during which collections may run,
//! such as a pause or going outside, need a `&mut Mutator`. So no [`Unrooted`] exists across them.
//! A value that is needed afterwards is passed to the pause, which returns it.
//!
//! These types do not restrict a plain [`Value`], such as an argument of a primitive (kept by its
//! frame), or the result of [`Unrooted::value`].

use crate::heap::Mutator;
use crate::value::Value;
use core::marker::PhantomData;

/// A value that may not be rooted. It is valid during `'m`, the borrow of the mutator or machine
/// that returned it. The compiler rejects code that holds it while collections may run; see
/// [`Mutator::outside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrooted<'m>(Value, PhantomData<&'m ()>);

/// A value to be kept by a pause.
#[derive(Clone, Copy, Debug)]
pub struct Kept(Value);

/// Values that a pause has kept.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct KeptValues<const COUNT: usize>([Value; COUNT]);

impl<'m> Unrooted<'m> {
    /// A value that is valid while `owner` is borrowed.
    pub const fn new<T>(value: Value, _owner: &'m T) -> Self {
        Self(value, PhantomData)
    }

    /// The empty list, which is not an object and needs no root.
    pub const NIL: Self = Self(Value::NIL, PhantomData);

    /// The value without its bound. The caller uses it at once, or stores it where the collector
    /// finds it.
    #[must_use]
    #[inline]
    pub const fn value(self) -> Value {
        self.0
    }

    /// For passing to a pause.
    #[inline]
    pub const fn kept(self) -> Kept {
        Kept(self.0)
    }

    /// The car of a pair, as [`Value::car`].
    #[must_use]
    #[inline]
    pub fn car(self) -> Option<Self> {
        Some(Self(self.0.car()?, PhantomData))
    }

    /// The cdr of a pair, as [`Value::cdr`].
    #[must_use]
    #[inline]
    pub fn cdr(self) -> Option<Self> {
        Some(Self(self.0.cdr()?, PhantomData))
    }

    /// Car and cdr, as [`Value::uncons`].
    #[must_use]
    #[inline]
    pub fn uncons(self) -> Option<(Self, Self)> {
        let (car, cdr) = self.0.uncons()?;
        Some((Self(car, PhantomData), Self(cdr, PhantomData)))
    }
}

impl<const COUNT: usize> KeptValues<COUNT> {
    /// Only for a pause, which has kept the values.
    pub const fn new(values: [Value; COUNT]) -> Self {
        Self(values)
    }

    /// The values, valid again until the next pause.
    #[inline]
    pub fn unrooted(self, m: &Mutator) -> [Unrooted<'_>; COUNT] {
        self.0.map(|value| m.unrooted(value))
    }
}

impl Kept {
    /// Only for a pause.
    #[inline]
    pub const fn value(self) -> Value {
        self.0
    }
}
