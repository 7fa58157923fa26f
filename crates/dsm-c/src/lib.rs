//! `libkyocho-dsm`: memory shared across nodes, for C. What each function promises is said once, in `include/kyocho-dsm.h`.
//!
//! ```text
//!   C caller ──► calls: every error a number, its words kept ──────────────┐
//!   C program in PARMACS macros (include/parmacs.m4)                       ├──► node: this thread's `Dsm` ──► kyocho-dsm
//!            ──► program, objects, conditions: an error ends it by words ──┘
//! ```
//!
//! A PARMACS program allocates and initialises on one process and then creates others like it. Here every node runs the whole
//! initialisation, with equal addresses; at the first `CREATE` all cross a barrier where only what node 0 wrote counts. From then on
//! node K runs what the K-th `CREATE` was given, and node 0 goes on as the program's first process.
//!
//! **Invariant:** no panic crosses the border.
//!
//! **Invariant:** only what `kyocho-dsm.h` declares is exported, under the same name (`tests/header.rs`).

mod calls;
mod conditions;
mod node;
mod objects;
mod output;
mod program;
