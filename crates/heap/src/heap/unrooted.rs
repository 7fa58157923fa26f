//! Values that nothing keeps, bounded by a lifetime.
//!
//! ```text
//!  &Mutator ── unrooted ──► Unrooted<'m> ── kept ──► Kept ── &mut Mutator: pause ──► Spared ── back ──► Unrooted<'m>
//! ```
//!
//! Who has a `&Mutator` allocates, which never collects. What lets collections go by, a pause or going outside, takes a `&mut Mutator`: no
//! [`Unrooted`] is left then. What is needed afterwards is named to the pause, and comes back from it.
//!
//! These types say nothing of a plain [`Value`]: an argument of a primitive, which its frame keeps, or what [`Unrooted::value`] has given.

use crate::heap::Mutator;
use crate::value::Value;
use core::marker::PhantomData;

/// A value that nothing is known to keep: good as long as `'m`, the borrow of the mutator or machine that gave it. The compiler refuses one that
/// is held while collections go by; see [`Mutator::outside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrooted<'m>(Value, PhantomData<&'m ()>);

/// A value that a pause shall keep.
#[derive(Clone, Copy, Debug)]
pub struct Kept(Value);

/// Values that a pause has kept.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Spared<const COUNT: usize>([Value; COUNT]);

impl<'m> Unrooted<'m> {
    /// What `owner` gives out.
    pub const fn new<T>(value: Value, _owner: &'m T) -> Self {
        Self(value, PhantomData)
    }

    /// No object: it needs no keeping.
    pub const NIL: Self = Self(Value::NIL, PhantomData);

    /// The value without its bound: for what uses it at once, or puts it where the collector finds it.
    #[must_use]
    #[inline]
    pub const fn value(self) -> Value {
        self.0
    }

    /// For a pause.
    #[inline]
    pub const fn kept(self) -> Kept {
        Kept(self.0)
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

impl<const COUNT: usize> Spared<COUNT> {
    /// For the pause alone, which has kept them.
    pub const fn new(values: [Value; COUNT]) -> Self {
        Self(values)
    }

    /// They are good again, until the next pause.
    #[inline]
    pub fn back(self, m: &Mutator) -> [Unrooted<'_>; COUNT] {
        self.0.map(|value| m.unrooted(value))
    }
}

impl Kept {
    /// For the pause alone.
    #[inline]
    pub const fn value(self) -> Value {
        self.0
    }
}
