//! The real inheritance.

#[path = "../../src/inherit/chain.rs"]
mod chain;
#[path = "../../src/inherit/donation.rs"]
mod donation;
#[path = "../../src/inherit/given.rs"]
mod given;
#[path = "../../src/inherit/join.rs"]
mod join;

pub(crate) use chain::{PassedOn, Ranked, Ranking, Source, Wait, propagate, take_over};
pub(crate) use donation::Donation;
pub(crate) use given::Inheritance;
pub(crate) use join::Join;
