//! The Lisp Server (paper 4): R7RS Scheme whose threads are microprocesses.
//!
//! ```text
//!   system, service, thread, gate, shared     sessions, services, Lisp threads, calls between processes
//!   primitives, port, report, package         what programs call, the prelude beside it
//!   compiler, machine, image, printer         core forms to code, and what runs it
//!   ------------------------------------------------------------------------------------
//!   kyocho-heap                               values, objects, the collector, numbers, text
//!   kyocho-syntax                             text to core forms
//! ```
//!
//! What needs neither a machine nor a thread belongs into a crate below. Their modules are re-exported here, so that a program that uses the
//! Lisp Server names one crate.

mod compiler;
#[doc(hidden)]
pub mod fuzz;
mod gate;
mod image;
mod machine;
pub mod package;
pub mod port;
mod prelude;
pub mod primitives;
pub mod printer;
mod report;
mod service;
pub mod shared;
pub mod system;
pub mod thread;

pub use kyocho_deep as deep;
pub use kyocho_heap::{account, equality, hash_table, heap, number, raise, text, value};
pub use kyocho_syntax as syntax;
pub use kyocho_syntax::symbol;
