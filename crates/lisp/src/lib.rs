//! The Lisp Server (paper 4): R7RS Scheme whose threads are microprocesses.

pub mod heap;
pub mod raise;
pub mod symbol;
pub mod syntax;
pub mod thread;
pub mod value;
