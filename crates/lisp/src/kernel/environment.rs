//! Environments as objects of Lisp.

use kyocho_heap::heap::ForeignObject;
use kyocho_syntax::environment::Environment;
use std::sync::Arc;

/// An environment as Lisp refers to it.
#[derive(Debug)]
pub(crate) struct EnvironmentObject(pub(crate) Arc<Environment>);

impl ForeignObject for EnvironmentObject {}
