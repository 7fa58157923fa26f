//! The real code of inheritance.

#[path = "../../src/processor/inherit/chain.rs"]
mod chain;
#[path = "../../src/processor/inherit/donation.rs"]
mod donation;
#[path = "../../src/processor/inherit/join.rs"]
mod join;
#[path = "../../src/processor/inherit/state.rs"]
mod state;

pub(crate) use chain::{PassedOn, Ranked, Ranking, Source, Wait, propagate, take_over};
pub(crate) use donation::Donation;
pub(crate) use join::Join;
pub(crate) use state::Inheritance;
