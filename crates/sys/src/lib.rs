//! Thin, safe Linux calls. What belongs here: one wrapper a kernel mechanism, no policy.

pub mod mapping;
pub mod prim;
pub mod skip;
