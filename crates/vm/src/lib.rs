//! The compiler and the abstract machine of the Lisp Server: core forms to code, and what runs it.
//!
//! ```text
//!   machine     registers, stack, interpreter, continuations, backtraces, control procedures
//!      │
//!   compiler    core forms to instructions, and the verifier that all code passes
//!      │
//!   primitive   a procedure written in Rust
//! ```
//!
//! **Absent on purpose:** threads, sessions, ports, system calls, the primitives themselves. Who runs a machine gives it its procedures
//! ([`machine::control::install`]), and does what it stops for ([`machine::Exit`]). What the machine must ask of its thread it asks of
//! the heap's [`Host`](kyocho_heap::heap::context::Host).
//!
//! The functions of [`machine::access::Frame`] and the fields of [`compiler::code::Code`] are for control procedures and images alone: they
//! trust that a slot lies in the machine's stack, and that code has passed [`compiler::verify()`].

pub mod compiler;
pub mod machine;
pub mod primitive;
