//! Nobody watches a model but loom.

pub(crate) fn release<T: ?Sized>(_at: &T) {}

pub(crate) fn acquire<T: ?Sized>(_at: &T) {}
