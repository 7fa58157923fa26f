//! The values of top-level locations. The expander makes locations and has no heap; the word in a
//! location is interpreted as a value here.
//!
//! A location that an environment names is a root. A location that only code refers to is marked by
//! that code.

use crate::heap::barrier;
use crate::value::Value;
use kyocho_syntax::location::{Global, Globals, UNBOUND};

const _: () = assert!(UNBOUND == Value::UNBOUND.to_word(), "a new location is unbound");

/// The value of a location; `Value::UNBOUND` before the first write.
#[inline(always)]
pub fn value(global: &Global) -> Value {
    Value::from_word(global.word())
}

/// Writes a location.
#[inline(always)]
pub fn set(global: &Global, new: Value) {
    barrier::overwrite(|| value(global));
    global.set_word(new.to_word());
}

/// Calls `visit` with the value of each named location, and forgets the others, which only code
/// refers to now.
pub fn for_each_root(globals: &Globals, mut visit: impl FnMut(Value)) {
    globals.retain_named(|global| visit(value(global)));
}

/// Clears all values of a session that has ended. No code that could read them is running.
pub fn clear(globals: &Globals) {
    globals.for_each_own(|global| set(global, Value::UNBOUND));
}
