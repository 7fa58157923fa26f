//! From text to core forms: reader, expander, libraries. Pure Rust data; never touches the heap, but for the values of locations.
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
//! **Invariant:** no text makes a panic or overflows the stack: nesting, expansion steps and the
//! depth of core forms are bounded ([`reader::NESTING_MAX`], [`expander::STEPS_MAX`],
//! [`expander::DEPTH_MAX`]), and past a bound there is a [`error::SyntaxError`].

pub mod core_form;
pub mod datum;
pub mod environment;
pub mod error;
pub mod expander;
pub mod growing;
pub mod lexer;
pub mod library;
pub mod location;
pub mod number;
pub mod reader;
pub(crate) mod rules;
pub mod source;
pub(crate) mod special;
pub mod world;
