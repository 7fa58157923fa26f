//! The Lisp Server (paper 4): R7RS Scheme whose threads are microprocesses.

mod compiler;
pub mod deep;
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

pub use kyocho_heap::{account, equality, hash_table, heap, number, raise, text, value};
pub use kyocho_syntax as syntax;
pub use kyocho_syntax::symbol;
