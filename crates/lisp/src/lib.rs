//! The Lisp Server (paper 4): R7RS Scheme whose threads are microprocesses.

pub mod account;
mod compiler;
pub mod deep;
pub mod equality;
#[doc(hidden)]
pub mod fuzz;
mod gate;
pub mod hash_table;
pub mod heap;
mod image;
mod machine;
pub mod number;
pub mod package;
pub(crate) mod places;
pub mod port;
mod prelude;
pub mod primitives;
pub mod printer;
pub mod raise;
mod report;
mod service;
pub mod shared;
pub mod system;
pub mod text;
pub mod thread;
pub mod value;

pub use kyocho_syntax as syntax;
pub use kyocho_syntax::symbol;
