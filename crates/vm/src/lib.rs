//! The compiler and the abstract machine of the Lisp Server: core forms to code, and the code's
//! interpreter.
//!
//! ```text
//!   machine     registers, stack, interpreter, continuations, backtraces, control procedures
//!      │
//!   compiler    core forms to instructions, and the verifier that all code passes
//!      │
//!   primitive   a procedure written in Rust
//! ```
//!
//! **Absent on purpose:** threads, sessions, ports, system calls, the primitives themselves. The
//! system that runs machines installs their procedures ([`machine::install`]). It serves
//! the requests for which a machine stops ([`machine::Exit`]). A machine queries its thread through
//! the heap's [`Host`](kyocho_heap::heap::context::Host).
//!
//! The functions of [`machine::access::Frame`] and the fields of [`compiler::code::Code`] are for
//! control procedures and images only. They do not check that a slot lies in the machine's stack,
//! nor that code has passed [`compiler::verify()`].

pub mod compiler;
pub mod machine;
pub mod primitive;
