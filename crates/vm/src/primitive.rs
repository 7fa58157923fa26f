//! A procedure written in Rust that does not touch the machine.
//!
//! Its body takes the arguments as a slice, and returns a value or a
//! [`Raise`](kyocho_heap::raise::Raise). The machine has checked the number of arguments. The
//! world is stopped for a collection only while the body is in a
//! [pause](kyocho_heap::heap::pause) or outside Lisp. In between, the values in the body's Rust
//! variables stay valid. The collector never scans these variables.

use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

/// A primitive's body.
pub type Function = fn(&mut Mutator, &[Value]) -> Result;

/// A procedure written in Rust.
#[derive(Clone, Copy, Debug)]
pub struct Primitive {
    /// Its name.
    pub name: &'static str,
    /// The minimum number of arguments.
    pub min: u16,
    /// The maximum number of arguments; `None` for any number.
    pub max: Option<u16>,
    /// Its body.
    pub function: Function,
}

impl Primitive {
    /// A procedure of exactly `count` arguments.
    #[must_use]
    pub const fn exactly(name: &'static str, count: u16, function: Function) -> Self {
        Self { name, min: count, max: Some(count), function }
    }

    /// A procedure of `min` to `max` arguments.
    #[must_use]
    pub const fn between(name: &'static str, min: u16, max: u16, function: Function) -> Self {
        Self { name, min, max: Some(max), function }
    }

    /// A procedure of `min` arguments or more.
    #[must_use]
    pub const fn at_least(name: &'static str, min: u16, function: Function) -> Self {
        Self { name, min, max: None, function }
    }
}
