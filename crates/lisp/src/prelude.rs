//! The part of the system that is written in Scheme, compiled when it boots.
//!
//! Procedures that call procedures live here, so that a continuation, a kill or the collector finds
//! nothing of theirs on a Rust stack. What needs no call back is a primitive.

#[cfg(test)]
mod tests;

/// Names and texts, in the order they are loaded; later ones use earlier ones.
pub(crate) const SOURCES: &[(&str, &str)] = &[
    ("prelude/control.scm", include_str!("prelude/control.scm")),
    ("prelude/numbers.scm", include_str!("prelude/numbers.scm")),
    ("prelude/lists.scm", include_str!("prelude/lists.scm")),
    ("prelude/sort.scm", include_str!("prelude/sort.scm")),
    ("prelude/vectors.scm", include_str!("prelude/vectors.scm")),
    ("prelude/strings.scm", include_str!("prelude/strings.scm")),
    ("prelude/ports.scm", include_str!("prelude/ports.scm")),
    ("prelude/hash_tables.scm", include_str!("prelude/hash_tables.scm")),
];
