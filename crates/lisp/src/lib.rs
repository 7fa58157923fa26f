//! The Lisp Server (paper 4): R7RS Scheme whose threads are microprocesses.
//!
//! ```text
//!   system                                 boot, sessions, evaluations
//!   image                                  worlds as bytes
//!   thread                                 the step of a Lisp thread; threads, mutexes, channels
//!   gate, shared                           calls to other programs; memory shared with other nodes
//!   kernel                                 what all threads share: sessions, services, waits
//!   ------------------------------------------------------------------------------------
//!   kyocho-library                         what programs call: primitives, ports, the prelude
//!   kyocho-vm                              core forms to code, and its interpreter
//!   kyocho-heap                            values, objects, the collector, numbers, text
//!   kyocho-syntax                          text to core forms
//! ```
//!
//! Code that needs neither a thread nor a session belongs in a crate below. The modules that
//! programs need are re-exported here. So a program that uses the Lisp Server names one crate.

mod backtrace;
#[doc(hidden)]
pub mod fuzz;
mod gate;
mod image;
mod kernel;
mod options;
mod report;
pub mod shared;
pub mod system;
pub mod thread;

pub use kyocho_deep as deep;
pub use kyocho_heap::{account, equality, hash_table, heap, number, raise, text, value};
pub use kyocho_library::{package, port, primitives, printer};
pub use kyocho_syntax as syntax;
pub use kyocho_syntax::symbol;
