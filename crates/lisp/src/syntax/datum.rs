//! What the reader makes: a tree of data with source positions. Macros work on this tree.

use crate::symbol::Symbol;
use num_bigint::BigInt;
use num_rational::BigRational;
use std::sync::Arc;

/// Where a datum stands in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// Index into the table of source names (`SourceMap`).
    pub source: u32,
    /// Line, from 1; 0 where nothing is known.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A datum and its position. Cloning costs one reference count.
#[derive(Clone, Debug)]
pub struct Datum {
    /// What it is.
    pub kind: Arc<DatumKind>,
    /// Where it began.
    pub span: Span,
}

/// The shapes a datum takes.
#[derive(Debug)]
pub enum DatumKind {
    /// `#t`, `#f`.
    Boolean(bool),
    /// A character.
    Character(char),
    /// A string literal.
    String(String),
    /// A symbol, or an identifier before expansion.
    Symbol(Symbol),
    /// An identifier that a macro inserted: the name, and the expansion that inserted it.
    Alias(Arc<Alias>),
    /// A number.
    Number(NumberLiteral),
    /// A proper list of two or more pairs is nested pairs; the reader and expander iterate on `cdr`.
    Pair(Datum, Datum),
    /// The empty list.
    Nil,
    /// `#( ... )`.
    Vector(Vec<Datum>),
    /// `#u8( ... )`.
    Bytevector(Vec<u8>),
    /// `#n=` : a labelled datum (data only, for `read` and `quote` of cyclic structure).
    Label(u64, Datum),
    /// `#n#` : a reference to a label.
    Reference(u64),
}

/// A renamed identifier: what a macro template inserts, so that it means what it meant where the
/// macro was defined. The expander owns the meaning of `environment`.
#[derive(Debug)]
pub struct Alias {
    /// The identifier it stands for (a symbol, or an alias again).
    pub of: Datum,
    /// Which macro-definition environment resolves it when nothing binds the alias itself.
    pub environment: u64,
    /// Which expansion made it; two aliases are the same identifier only if they are the same object.
    pub serial: u64,
}

/// Numbers as the reader knows them.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberLiteral {
    /// Fits a machine word.
    Integer(i64),
    /// Any other exact integer.
    Big(BigInt),
    /// An exact ratio, not an integer.
    Ratio(BigRational),
    /// An inexact real.
    Real(f64),
}
