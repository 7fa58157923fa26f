//! From text to core forms: reader, expander, `syntax-rules`, libraries.
//!
//! ```text
//! text --Reader--> Datum --World::expand--> TopLevel::Form(Core) --(compiler)--> code
//!                            |      ^
//!                            v      | macros (rules), scopes (expander/scope)
//!                        Environment, Library
//! ```
//!
//! **Invariant:** every name in a [`core_form::Core`] is resolved: a [`core_form::Variable`] or a
//! [`location::Location`]. Nothing after the expander looks a name up.
//! **Invariant:** no text makes a panic or overflows the stack. Nesting, expansion steps and the
//! depth of core forms are bounded ([`reader::NESTING_MAX`], [`expander::STEPS_MAX`],
//! [`expander::DEPTH_MAX`]). Exceeding a bound is a [`error::SyntaxError`].
//! **Absent on purpose:** values and the heap, threads, accounts, the network, unsafe code. A
//! top-level [`location`] has a word for its value, which this crate does not interpret. A
//! [`world::World`] asks its [`world::User`] which files it may read.
//!
//! [`symbol`] is in this crate because the reader makes symbols; the heap has a tag for them. The
//! modules `environment`, `library`, `rules` and `special` have public items for one reason: the
//! images of the Lisp Server read and write them.

pub mod core_form;
pub mod datum;
pub mod environment;
pub mod error;
mod expand;
pub mod expander;
pub mod growing;
pub mod lexer;
pub mod library;
pub mod location;
pub mod number;
pub mod package;
pub mod reader;
pub mod rules;
pub mod source;
pub mod special;
pub mod symbol;
pub mod world;
