//! Data as the reader makes them: trees with source positions. Macros work on these trees.

mod show;

use crate::symbol::Symbol;
use core::fmt;
use core::hash::{Hash, Hasher};
use num_bigint::BigInt;
use num_rational::BigRational;
use std::sync::{Arc, LazyLock};

/// Items processed between two pauses: one or two milliseconds of work.
pub(super) const PART: usize = 1 << 14;

/// The position of a datum in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// Index into the table of source names (`source`).
    pub source: u32,
    /// Line, from 1; 0 if the position is unknown.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A datum and its position. Cloning costs one reference count.
#[derive(Clone, Debug)]
pub struct Datum {
    /// What it is.
    pub kind: Arc<DatumKind>,
    /// The position of its first character.
    pub span: Span,
}

/// The kinds of datum.
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
    /// An identifier that a macro inserted.
    Alias(Arc<Alias>),
    /// A number.
    Number(NumberLiteral),
    /// A pair. A proper list is a chain of pairs; the reader and the expander iterate along `cdr`.
    Pair(Datum, Datum),
    /// The empty list.
    Nil,
    /// `#( ... )`.
    Vector(Vec<Datum>),
    /// `#u8( ... )`.
    Bytevector(Vec<u8>),
    /// `#n=`: a labelled datum. Only for `read` and `quote` of cyclic structure.
    Label(u64, Datum),
    /// `#n#`: a reference to a label.
    Reference(u64),
}

/// A renamed identifier, which a macro template inserts. It keeps the meaning that the original
/// identifier has at the macro's definition. Two aliases are the same identifier only if they are
/// the same object.
#[derive(Debug)]
pub struct Alias {
    /// The identifier that was renamed: a symbol, or another alias.
    pub of: Identifier,
    /// Where `of` is looked up if nothing binds the alias itself: the scope of the macro's
    /// definition.
    pub home: Home,
    /// How many aliases lead from here to the symbol. Bounds the walk and the drop.
    pub generation: u32,
}

/// Where an identifier is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A top-level environment, by its number.
    Top(u64),
    /// A local scope of the expansion in progress.
    Scope(u32),
}

/// A name before it is resolved.
#[derive(Clone, Debug)]
pub enum Identifier {
    /// As the user wrote it.
    Symbol(Symbol),
    /// As a macro inserted it.
    Alias(Arc<Alias>),
}

/// Numbers as the reader represents them.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberLiteral {
    /// An exact integer of 64 bits.
    Integer(i64),
    /// Any other exact integer.
    Big(BigInt),
    /// An exact ratio, not an integer.
    Ratio(BigRational),
    /// An inexact real.
    Real(f64),
    /// A complex number: real part and imaginary part, both exact or both inexact. The imaginary
    /// part is not an exact zero.
    Complex(Box<[Self; 2]>),
}

static NIL: LazyLock<Arc<DatumKind>> = LazyLock::new(|| Arc::new(DatumKind::Nil));

impl Identifier {
    /// The symbol that the chain of aliases ends in: the name that the user sees.
    #[must_use]
    pub fn symbol(&self) -> Symbol {
        let mut identifier = self;
        loop {
            match identifier {
                Self::Symbol(symbol) => return *symbol,
                Self::Alias(alias) => identifier = &alias.of,
            }
        }
    }

    fn address(&self) -> usize {
        match self {
            Self::Symbol(symbol) => symbol.address(),
            Self::Alias(alias) => Arc::as_ptr(alias).addr(),
        }
    }
}

impl PartialEq for Identifier {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

impl Eq for Identifier {}

impl Hash for Identifier {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol().name())
    }
}

impl Datum {
    /// A datum at a position.
    #[must_use]
    pub fn new(kind: DatumKind, span: Span) -> Self {
        Self { kind: Arc::new(kind), span }
    }

    /// The empty list.
    #[must_use]
    pub fn nil(span: Span) -> Self {
        Self { kind: Arc::clone(&NIL), span }
    }

    /// A pair.
    #[must_use]
    pub fn pair(car: Self, cdr: Self, span: Span) -> Self {
        Self::new(DatumKind::Pair(car, cdr), span)
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(symbol: Symbol, span: Span) -> Self {
        Self::new(DatumKind::Symbol(symbol), span)
    }

    /// `#t` or `#f`.
    #[must_use]
    pub fn boolean(truth: bool, span: Span) -> Self {
        Self::new(DatumKind::Boolean(truth), span)
    }

    /// A small exact integer.
    #[must_use]
    pub fn integer(n: i64, span: Span) -> Self {
        Self::new(DatumKind::Number(NumberLiteral::Integer(n)), span)
    }

    /// An identifier.
    #[must_use]
    pub fn identifier(identifier: Identifier, span: Span) -> Self {
        match identifier {
            Identifier::Symbol(symbol) => Self::symbol(symbol, span),
            Identifier::Alias(alias) => Self::new(DatumKind::Alias(alias), span),
        }
    }

    /// The list of `items` ending in `tail`. Its first pair has position `span`, each later pair
    /// that of its item.
    #[must_use]
    pub fn list_with_tail(items: Vec<Self>, tail: Self, span: Span) -> Self {
        Self::list_in_parts(items, tail, span, || ())
    }

    /// As [`Datum::list_with_tail`]; calls `pause` after each [`PART`] items.
    pub(super) fn list_in_parts(
        mut items: Vec<Self>,
        tail: Self,
        span: Span,
        mut pause: impl FnMut(),
    ) -> Self {
        let mut list = tail;
        while let Some(item) = items.pop() {
            let at = if items.is_empty() { span } else { item.span };
            list = Self::pair(item, list, at);
            if items.len() % PART == PART - 1 {
                pause();
            }
        }
        list
    }

    /// The proper list of `items`.
    #[must_use]
    pub fn list(items: Vec<Self>, span: Span) -> Self {
        let mut nil = Self::nil(span);
        if let Some(last) = items.last() {
            nil.span = last.span;
        }
        Self::list_with_tail(items, nil, span)
    }

    /// The `car` and the `cdr` of a pair.
    #[must_use]
    pub fn as_pair(&self) -> Option<(&Self, &Self)> {
        match &*self.kind {
            DatumKind::Pair(car, cdr) => Some((car, cdr)),
            _ => None,
        }
    }

    /// Whether this is `()`.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        matches!(&*self.kind, DatumKind::Nil)
    }

    /// The identifier, if this is one.
    #[must_use]
    pub fn as_identifier(&self) -> Option<Identifier> {
        match &*self.kind {
            DatumKind::Symbol(symbol) => Some(Identifier::Symbol(*symbol)),
            DatumKind::Alias(alias) => Some(Identifier::Alias(Arc::clone(alias))),
            _ => None,
        }
    }

    /// Whether this is a symbol or an alias.
    #[must_use]
    pub fn is_identifier(&self) -> bool {
        matches!(&*self.kind, DatumKind::Symbol(_) | DatumKind::Alias(_))
    }

    /// The symbol, with any renaming undone.
    #[must_use]
    pub fn as_symbol(&self) -> Option<Symbol> {
        self.as_identifier().map(|identifier| identifier.symbol())
    }

    /// The string, if this is one.
    #[must_use]
    pub fn as_string(&self) -> Option<&str> {
        match &*self.kind {
            DatumKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list, in order. [`Elements::tail`] returns what follows the last pair.
    #[must_use]
    pub fn elements(&self) -> Elements<'_> {
        Elements { rest: self }
    }

    /// The end of the list: `()` for a proper list, this datum itself if it is no pair.
    #[must_use]
    pub fn elements_tail(&self) -> &Self {
        let mut elements = self.elements();
        while elements.next().is_some() {}
        elements.tail()
    }

    /// The elements of a proper list; `None` for anything else.
    #[must_use]
    pub fn proper_list(&self) -> Option<Vec<&Self>> {
        let mut elements = self.elements();
        let items: Vec<_> = elements.by_ref().collect();
        elements.tail().is_nil().then_some(items)
    }
}

/// Iterates over a list along its `cdr`s.
#[derive(Debug)]
pub struct Elements<'a> {
    rest: &'a Datum,
}

impl<'a> Elements<'a> {
    /// The part not iterated over yet; after the last element, the end of the list.
    #[must_use]
    pub fn tail(&self) -> &'a Datum {
        self.rest
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a Datum;

    fn next(&mut self) -> Option<&'a Datum> {
        let (car, cdr) = self.rest.as_pair()?;
        self.rest = cdr;
        Some(car)
    }
}

/// Dropping a long or deep tree must not recurse. Children that only the dropped datum refers to
/// move to a list, which is dropped in a loop.
impl Drop for Datum {
    fn drop(&mut self) {
        let mut dying = Vec::new();
        take_children(self, &mut dying);
        while let Some(mut datum) = dying.pop() {
            take_children(&mut datum, &mut dying);
        }
    }
}

fn take_children(datum: &mut Datum, dying: &mut Vec<Datum>) {
    if is_leaf(datum) {
        return;
    }
    let Some(kind) = Arc::get_mut(&mut datum.kind) else { return };
    match kind {
        DatumKind::Pair(car, cdr) => {
            for child in [car, cdr] {
                take(child, dying);
            }
        }
        DatumKind::Label(_, inner) => take(inner, dying),
        DatumKind::Vector(items) => dying.append(items),
        _ => {}
    }
}

fn take(child: &mut Datum, dying: &mut Vec<Datum>) {
    if !is_leaf(child) {
        let kind = core::mem::replace(&mut child.kind, Arc::clone(&NIL));
        dying.push(Datum { kind, span: child.span });
    }
}

fn is_leaf(datum: &Datum) -> bool {
    !matches!(&*datum.kind, DatumKind::Pair(..) | DatumKind::Label(..) | DatumKind::Vector(_))
}
