//! What the reader makes: a tree of data with source positions. Macros work on this tree.

mod show;

use crate::symbol::Symbol;
use core::fmt;
use core::hash::{Hash, Hasher};
use num_bigint::BigInt;
use num_rational::BigRational;
use std::sync::{Arc, LazyLock};

/// Items between two pauses: what takes a millisecond or two.
pub(super) const PART: usize = 1 << 14;

/// Where a datum stands in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// Index into the table of source names (`source`).
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
    /// An identifier that a macro inserted.
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
/// macro was defined. Two aliases are the same identifier only if they are the same object.
#[derive(Debug)]
pub struct Alias {
    /// The identifier it stands for (a symbol, or an alias again).
    pub of: Identifier,
    /// Where `of` is looked up when nothing binds the alias itself: the macro's definition.
    pub home: Home,
    /// How many aliases deep `of` is; bounds the walk and the drop.
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
    /// No real number: its real part and its imaginary part, both exact or both inexact, the latter no exact zero.
    Complex(Box<[Self; 2]>),
}

static NIL: LazyLock<Arc<DatumKind>> = LazyLock::new(|| Arc::new(DatumKind::Nil));

impl Identifier {
    /// The name at the bottom: what the user sees.
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
    /// A datum at a place.
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

    /// The list of `items` ending in `tail`; its first pair stands at `span`, each later pair where
    /// its item stands.
    #[must_use]
    pub fn list_with_tail(items: Vec<Self>, tail: Self, span: Span) -> Self {
        Self::list_in_parts(items, tail, span, || ())
    }

    /// The same; `pause` is called after each [`PART`] items.
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

    /// Both halves of a pair.
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

    /// The identifier, where this is one.
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

    /// The string, where this is one.
    #[must_use]
    pub fn as_string(&self) -> Option<&str> {
        match &*self.kind {
            DatumKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list, in order; [`Elements::tail`] tells how it ends.
    #[must_use]
    pub fn elements(&self) -> Elements<'_> {
        Elements { rest: self }
    }

    /// What ends the list: `()` for a proper one, this datum itself where it is no pair.
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

/// Walks a list by its `cdr`s.
#[derive(Debug)]
pub struct Elements<'a> {
    rest: &'a Datum,
}

impl<'a> Elements<'a> {
    /// What is not walked yet; after the last element, what ends the list.
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

/// Dropping a long or deep tree must not recurse: what a dying datum alone holds moves to a list.
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
