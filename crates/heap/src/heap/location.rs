//! The values of top-level locations. The expander makes locations and has no heap; each holds a word, which is a value here.
//!
//! A location that an environment names is a root. One that only code refers to is marked by that code.

use crate::heap::barrier;
use crate::value::Value;
use kyocho_syntax::location::{Global, Globals, UNBOUND};

const _: () = assert!(UNBOUND == Value::UNBOUND.to_word(), "a new location is unbound");

/// What a location holds; `Value::UNBOUND` before anything is written.
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

/// Calls `visit` with the value of each location that is named. The others are the code's alone from now on.
pub fn for_each_root(globals: &Globals, mut visit: impl FnMut(Value)) {
    globals.retain_named(|global| visit(value(global)));
}

/// Forgets every value of a session that has ended: nobody runs code any more that may look.
pub fn clear(globals: &Globals) {
    globals.for_each_own(|global| set(global, Value::UNBOUND));
}
