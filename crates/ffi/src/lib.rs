//! `libkyocho`: microprocesses for C and C++, in the shape of pthreads. What each function promises is said once, in
//! `include/kyocho.h`.
//!
//! ```text
//!   C caller ──► extern "C" function: checks pointers and caller ──► kyocho-microprocess
//!                     └── every error a number; a panic is one too (`answer::answer`)
//! ```
//!
//! An object of C (`kyocho_mutex_t`) *is* the Rust object, behind a word that tells its kind (`object`): nothing is
//! allocated for it, and what was not initialised, or was destroyed, is told from what was. Microprocesses are known to C by
//! number; a table keeps the handles (`threads`).
//!
//! **Invariant:** no panic and no `errno` crosses the border.
//!
//! **Invariant:** only what `kyocho.h` declares is exported, under the same name (`tests/header.rs`).

mod answer;
mod attributes;
mod barrier;
mod channel;
mod condvar;
mod error;
mod gate;
mod io;
mod keys;
mod mutex;
mod object;
mod once;
mod run;
mod rwlock;
mod select;
mod semaphore;
mod specific;
mod threads;
mod time;
