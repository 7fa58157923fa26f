//! The library of the Lisp Server: what programs call.
//!
//! ```text
//!   prelude      what is written in Scheme, as texts: procedures that call procedures, libraries
//!   primitives   what is written in Rust, one table a file
//!      │
//!   port         ports: files, sockets, TLS, strings       printer     values as text
//!      │
//!   session      what a session has around it              package     archives of libraries
//! ```
//!
//! **Absent on purpose:** the compiler, the machine's loop, threads, sessions and their ends. A primitive never calls a Lisp procedure: what does
//! belongs into the prelude. What a procedure must know of its thread it asks of the heap's
//! [`Host`](kyocho_heap::heap::context::Host).

pub mod datum_of;
pub mod package;
pub mod port;
pub mod prelude;
pub mod primitives;
pub mod printer;
pub mod session;
