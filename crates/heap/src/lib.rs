//! The values of the Lisp Server and the heap that they live in.
//!
//! ```text
//!   text, number, equality, hash_table      operations on values that allocate, hash or take long
//!              │
//!   heap: objects, allocation, collector ── account: who pays
//!              │
//!   value: the tagged word                  raise: why an operation failed
//! ```
//!
//! **Absent on purpose:** the compiler, the machine, threads, sessions, ports, system calls but for memory. What the heap must ask of the
//! thread that allocates, it asks of a [`heap::context::Host`], which the Lisp Server implements.
//!
//! Functions that take an address or a word ([`value::Value::from_word`], [`heap::object::Header::at`], [`text::bytes`]) are for the machine and
//! the primitives alone: they trust that the heap gave it. So are the parts that a collection is made of ([`heap::Cycle`], [`heap::Orders`]).

pub mod account;
pub mod equality;
pub mod hash_table;
pub mod heap;
pub mod number;
pub mod places;
pub mod raise;
pub mod text;
pub mod value;
