//! The Lisp Server (paper 4): R7RS Scheme whose threads are microprocesses.
//!
//! ```text
//!   system, service, thread, gate, shared     sessions, services, Lisp threads, calls between processes
//!   image, report                             worlds as bytes; what nobody handled, as text
//!   ------------------------------------------------------------------------------------
//!   kyocho-library                            what programs call: primitives, ports, the prelude
//!   kyocho-vm                                 core forms to code, and what runs it
//!   kyocho-heap                               values, objects, the collector, numbers, text
//!   kyocho-syntax                             text to core forms
//! ```
//!
//! What needs neither a thread nor a session belongs into a crate below. Their modules are re-exported here, so that a program that uses the
//! Lisp Server names one crate.

#[doc(hidden)]
pub mod fuzz;
mod gate;
mod image;
mod report;
mod service;
pub mod shared;
pub mod system;
pub mod thread;

pub use kyocho_deep as deep;
pub use kyocho_heap::{account, equality, hash_table, heap, number, raise, text, value};
pub use kyocho_library::{package, port, primitives, printer};
pub use kyocho_syntax as syntax;
pub use kyocho_syntax::symbol;
