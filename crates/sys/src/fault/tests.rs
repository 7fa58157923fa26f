//! The plane itself; wrappers under faults are in `tests/faults.rs`, a program of its own.

use super::{Call, Kinds, check};
use crate::error::Errno;

#[test]
fn nothing_injected_nothing_fails() {
    // Other tests of this program never inject: see the module's documentation.
    assert_eq!(check(Call::Ring), Ok(()));
    assert_ne!(Kinds::Any, Kinds::Only(Call::Ring));
    assert_eq!(Errno::NOMEM.number(), libc::ENOMEM);
}
