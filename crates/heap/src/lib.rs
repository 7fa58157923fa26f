//! The values of the Lisp Server and the heap that they are in.
//!
//! ```text
//!   text, number, equality, hash_table      operations on values that allocate, hash or take long
//!              │
//!   heap: objects, allocation, collector ── account: which user pays
//!              │
//!   value: the tagged word                  raise: why an operation failed
//! ```
//!
//! **Absent on purpose:** the compiler, the machine, threads, sessions, ports, system calls except
//! for memory. The heap queries the allocating thread through a [`heap::context::Host`], which the
//! Lisp Server implements.
//!
//! Functions that take an address or a word ([`value::Value::from_word`],
//! [`heap::object::Header::at`], [`text::bytes`]) trust that it came from the heap. Only the
//! machine and the primitives may call them. The same holds for the steps of a collection
//! ([`heap::Cycle`], [`heap::Orders`]).

pub mod account;
pub mod equality;
pub mod hash_table;
pub mod heap;
pub mod number;
pub mod places;
pub mod raise;
pub mod text;
pub mod value;
