//! The procedures written in Rust, one table per file.
//!
//! A primitive gets its arguments as a slice and returns a value or a
//! [`Raise`](kyocho_heap::raise::Raise). No collection runs meanwhile, so values in its local
//! variables need no rooting. The machine has checked the number of arguments. Names that begin
//! with `%` are for the prelude and for macro expansions; no library exports them.
//!
//! A new primitive belongs in the file of its first argument's type.

mod arithmetic;
mod bits;
mod bytevectors;
pub(crate) mod call;
mod characters;
mod complex;
mod descriptors;
mod ephemerons;
mod equality;
mod files;
mod flame_graph;
mod guardians;
mod hash_tables;
pub mod host_names;
mod integers;
mod list_length;
mod list_parts;
mod list_search;
mod lists;
mod numbers;
mod ports;
mod process;
mod programs;
mod reading;
mod sockets;
mod string_case;
mod string_search;
mod strings;
mod symbols;
#[cfg(test)]
mod tests;
mod tls;
mod users;
pub(crate) mod vectors;
mod writing;

pub use process::set_command_line;

use kyocho_vm::primitive::Primitive;

const TABLES: &[&[Primitive]] = &[
    arithmetic::TABLE,
    bits::TABLE,
    bytevectors::TABLE,
    characters::TABLE,
    complex::TABLE,
    descriptors::TABLE,
    ephemerons::TABLE,
    equality::TABLE,
    files::TABLE,
    flame_graph::TABLE,
    guardians::TABLE,
    hash_tables::TABLE,
    integers::TABLE,
    list_parts::TABLE,
    list_search::TABLE,
    lists::TABLE,
    numbers::TABLE,
    ports::TABLE,
    process::TABLE,
    programs::TABLE,
    reading::TABLE,
    sockets::TABLE,
    string_case::TABLE,
    string_search::TABLE,
    strings::TABLE,
    symbols::TABLE,
    tls::TABLE,
    users::TABLE,
    vectors::TABLE,
    writing::TABLE,
];

/// All primitives, always in the same order. An index into the order identifies one.
pub fn all() -> impl Iterator<Item = &'static Primitive> {
    TABLES.iter().copied().flatten()
}
