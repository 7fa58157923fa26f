//! `libkyocho-dsm`: memory shared across nodes, for C. `include/kyocho-dsm.h` documents each
//! function.
//!
//! ```text
//!   C caller ──► calls: returns error numbers, keeps the message ────────┐
//!                                                                        ├──► node: this thread's
//!   C program in PARMACS macros (include/parmacs.m4)                     │    `Dsm` ─► kyocho-dsm
//!            ──► program, objects, conditions: an error ends the program ┘
//! ```
//!
//! A PARMACS program allocates and initialises in one process and then creates copies of it. Here
//! every node runs the whole initialisation, with equal addresses. At the first `CREATE` all nodes
//! cross a barrier, where only the writes of node 0 count. From then on node K runs the function of
//! the K-th `CREATE`, and node 0 continues as the program's first process.
//!
//! **Invariant:** no panic unwinds into C.
//!
//! **Invariant:** the library exports exactly what `kyocho-dsm.h` declares (`tests/header.rs`).

mod calls;
mod conditions;
mod node;
mod objects;
mod output;
mod program;
