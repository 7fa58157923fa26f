//! Protocols of a few atomic words. `tests/models` checks these files in every order of memory
//! accesses.

pub(crate) mod attention;
pub(crate) mod bias;
pub(crate) mod claim;
pub(crate) mod inbox;
pub(crate) mod pause;
pub(crate) mod tenure;
pub(crate) mod wait_word;
