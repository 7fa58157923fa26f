//! The library of the Lisp Server: what programs call.
//!
//! ```text
//!   prelude      Scheme texts: procedures that call procedures, libraries
//!   primitives   procedures written in Rust, one table a file
//!      │
//!   port         ports: files, sockets, TLS, strings       printer     values as text
//!      │
//!   session      variables and permissions of a session    package     archives of libraries
//! ```
//!
//! **Absent on purpose:** the compiler, the machine's loop, threads, the start and end of sessions.
//! A primitive never calls a Lisp procedure. A procedure that does so belongs in the prelude. A
//! primitive queries its thread through the heap's [`Host`](kyocho_heap::heap::context::Host).

pub mod datum_of;
pub mod package;
pub mod port;
pub mod prelude;
pub mod primitives;
pub mod printer;
pub mod session;
