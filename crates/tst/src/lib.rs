//! Test-and-set.
