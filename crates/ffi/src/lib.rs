//! `libkyocho`: microprocesses for C and C++, shaped like pthreads. `include/kyocho.h` documents
//! each function.
//!
//! ```text
//!   C caller ──► extern "C" function: checks pointers and caller ──► kyocho-microprocess
//!                     └── every error becomes a number, a panic, too (`answer::answer`)
//! ```
//!
//! An object of C (`kyocho_mutex_t`) *is* the Rust object, after a word that marks its kind
//! (`object`). So nothing is allocated for it, and an object that was not initialised or was
//! destroyed is recognised. C names microprocesses by number; a table maps numbers to handles
//! (`run`).
//!
//! **Invariant:** no panic and no `errno` crosses the boundary to C.
//!
//! **Invariant:** exactly the functions that `kyocho.h` declares are exported, under the same names
//! (`tests/header.rs`).

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
