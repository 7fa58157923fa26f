//! The real code of inheritance.

#[path = "../../src/processor/inherit/chain.rs"]
mod chain;
#[path = "../../src/processor/inherit/donation.rs"]
mod donation;
#[path = "../../src/processor/inherit/given.rs"]
mod given;
#[path = "../../src/processor/inherit/join.rs"]
mod join;

pub(crate) use chain::{PassedOn, Ranked, Ranking, Source, Wait, propagate, take_over};
pub(crate) use donation::Donation;
pub(crate) use given::Inheritance;
pub(crate) use join::Join;
