//! Fault injection itself. Wrappers under faults are tested in `tests/faults.rs`, a program of its
//! own.

use super::{Call, Kinds, check};
use crate::error::Errno;

#[test]
fn nothing_fails_without_an_injection() {
    // Other tests of this program never inject, as the module's documentation requires.
    assert_eq!(check(Call::Ring), Ok(()));
    assert_ne!(Kinds::Any, Kinds::Only(Call::Ring));
    assert_eq!(Errno::NOMEM.number(), libc::ENOMEM);
}
