//! The reader: tokens to data. It does not recurse: unfinished data are on an explicit stack, at
//! most [`NESTING_MAX`] deep. Only memory bounds the length of a list.

use super::datum::{Datum, DatumKind, NumberLiteral, PART, Span};
use super::error::SyntaxError;
pub use super::lexer::{Characters, ReadError, Text};
use super::lexer::{Lexer, Token};
use crate::symbol::Symbol;
use std::collections::HashSet;

/// Maximum number of levels of nested data in a text.
pub const NESTING_MAX: usize = 100_000;

/// Reads one datum after another.
#[derive(Debug)]
pub struct Reader<C> {
    lexer: Lexer<C>,
    open: Vec<Open>,
    /// The labels defined in the outermost datum so far.
    labels: HashSet<u64>,
}

/// A datum that has begun and not ended.
#[derive(Debug)]
struct Open {
    span: Span,
    shape: Shape,
    items: Vec<Datum>,
}

#[derive(Debug)]
enum Shape {
    List,
    /// A list after its dot.
    DottedList,
    /// A list after its dot and the following datum.
    EndedList(Datum),
    Vector,
    Bytes,
    Prefix(&'static str),
    Comment,
    Label(u64),
}

fn wrong(span: Span, message: impl Into<String>, expected: &str) -> ReadError {
    ReadError::Wrong(SyntaxError::new(span, message).expected(expected))
}

impl<'a> Reader<Text<'a>> {
    /// A reader of a text in memory. `source` is a number returned by `source::register`.
    #[must_use]
    pub fn of_text(text: &'a str, source: u32) -> Self {
        Self::new(Text::new(text), source)
    }
}

impl<C: Characters> Reader<C> {
    /// A reader of characters, from line 1, column 1.
    #[must_use]
    pub fn new(characters: C, source: u32) -> Self {
        Self { lexer: Lexer::new(characters, source), open: Vec::new(), labels: HashSet::new() }
    }

    /// The reader, counting from another line and column: for a port that has been read from
    /// before.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32) -> Self {
        self.lexer = self.lexer.at(line, column);
        self
    }

    /// Whether symbols and character names are folded to lower case, as after `#!fold-case`.
    pub fn fold_case(&mut self, fold_case: bool) {
        self.lexer.fold_case(fold_case);
    }

    /// The position of the next character.
    #[must_use]
    pub fn span(&self) -> Span {
        self.lexer.span()
    }

    /// The remaining characters.
    #[must_use]
    pub fn into_characters(self) -> C {
        self.lexer.into_characters()
    }

    /// The next datum; `None` at the end of the text. After an error, the next call starts after
    /// the wrong token.
    ///
    /// # Errors
    /// [`ReadError::Incomplete`] if the text ends inside a datum, [`ReadError::Wrong`] for other
    /// errors.
    pub fn read(&mut self) -> Result<Option<Datum>, ReadError> {
        self.labels.clear();
        let result = self.read_outermost();
        self.open.clear();
        result
    }

    fn read_outermost(&mut self) -> Result<Option<Datum>, ReadError> {
        loop {
            let (token, span) = self.lexer.token()?;
            let datum = match token {
                Token::End if self.open.is_empty() => return Ok(None),
                Token::End => return Err(self.ends_early(span)),
                Token::Open => self.push(span, Shape::List)?,
                Token::OpenVector => self.push(span, Shape::Vector)?,
                Token::OpenBytes => self.push(span, Shape::Bytes)?,
                Token::Prefix(keyword) => self.push(span, Shape::Prefix(keyword))?,
                Token::DatumComment => self.push(span, Shape::Comment)?,
                Token::Label(label) => self.label(label, span)?,
                Token::Reference(label) => Some(self.reference(label, span)?),
                Token::Dot => self.dot(span)?,
                Token::Close => Some(self.close(span)?),
                Token::Atom(kind) => Some(Datum::new(kind, span)),
            };
            if let Some(datum) = datum
                && let Some(datum) = self.complete(datum)?
            {
                return Ok(Some(datum));
            }
        }
    }

    fn push(&mut self, span: Span, shape: Shape) -> Result<Option<Datum>, ReadError> {
        if self.open.len() >= NESTING_MAX {
            let message = format!("data are nested deeper than {NESTING_MAX} levels");
            return Err(ReadError::Wrong(SyntaxError::new(span, message)));
        }
        self.open.push(Open { span, shape, items: Vec::new() });
        Ok(None)
    }

    fn ends_early(&self, span: Span) -> ReadError {
        // The innermost open datum is the one that the user forgot to close.
        let Some(open) = self.open.last() else {
            return ReadError::Incomplete(SyntaxError::new(span, "the text ends early"));
        };
        let (message, expected) = match &open.shape {
            Shape::Prefix(_) | Shape::Comment | Shape::Label(_) => {
                ("nothing follows this prefix".to_owned(), "a datum")
            }
            _ => (format!("this ( is not closed; the text ends at line {}", span.line), ")"),
        };
        ReadError::Incomplete(SyntaxError::new(open.span, message).expected(expected))
    }

    fn dot(&mut self, span: Span) -> Result<Option<Datum>, ReadError> {
        match self.open.last_mut() {
            Some(open) if matches!(open.shape, Shape::List) && !open.items.is_empty() => {
                open.shape = Shape::DottedList;
                Ok(None)
            }
            Some(Open { shape: Shape::List, .. }) => {
                Err(wrong(span, "nothing stands before this dot", "a datum before it"))
            }
            _ => Err(wrong(span, "a dot cannot stand here", "a datum")),
        }
    }

    fn label(&mut self, label: u64, span: Span) -> Result<Option<Datum>, ReadError> {
        if !self.labels.insert(label) {
            let message = format!("label #{label}= stands twice in one datum");
            return Err(ReadError::Wrong(SyntaxError::new(span, message)));
        }
        self.push(span, Shape::Label(label))
    }

    fn reference(&self, label: u64, span: Span) -> Result<Datum, ReadError> {
        let points_to_itself = matches!(
            self.open.last(),
            Some(Open { shape: Shape::Label(outer), .. }) if *outer == label
        );
        if points_to_itself || !self.labels.contains(&label) {
            let message = format!("#{label}# refers to nothing");
            return Err(wrong(span, message, &format!("#{label}= and a datum before it")));
        }
        Ok(Datum::new(DatumKind::Reference(label), span))
    }

    fn close(&mut self, span: Span) -> Result<Datum, ReadError> {
        let Some(open) = self.open.pop() else {
            return Err(wrong(span, "this ) closes nothing", "a datum"));
        };
        let opened = open.span;
        match open.shape {
            Shape::List => Ok(self.list(open.items, Datum::nil(span), opened)),
            Shape::EndedList(tail) => Ok(self.list(open.items, tail, opened)),
            Shape::Vector => Ok(Datum::new(DatumKind::Vector(open.items), opened)),
            Shape::Bytes => {
                let bytes = self.bytes(open.items)?;
                Ok(Datum::new(DatumKind::Bytevector(bytes), opened))
            }
            Shape::DottedList => Err(wrong(span, "nothing follows the dot", "a datum before )")),
            Shape::Prefix(_) | Shape::Comment | Shape::Label(_) => {
                Err(wrong(opened, "nothing follows this prefix", "a datum before )"))
            }
        }
    }

    fn list(&mut self, items: Vec<Datum>, tail: Datum, opened: Span) -> Datum {
        if items.is_empty() {
            return Datum::nil(opened);
        }
        Datum::list_in_parts(items, tail, opened, || self.lexer.pause())
    }

    fn bytes(&mut self, items: Vec<Datum>) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            bytes.push(byte(&item)?);
            if bytes.len() % PART == 0 {
                self.lexer.pause();
            }
        }
        Ok(bytes)
    }

    /// Adds a finished datum to the one that contains it, or returns it if it is the outermost.
    fn complete(&mut self, datum: Datum) -> Result<Option<Datum>, ReadError> {
        let mut datum = datum;
        loop {
            let Some(open) = self.open.last_mut() else { return Ok(Some(datum)) };
            match &mut open.shape {
                Shape::List | Shape::Vector | Shape::Bytes => {
                    open.items.push(datum);
                    return Ok(None);
                }
                Shape::DottedList => {
                    open.shape = Shape::EndedList(datum);
                    return Ok(None);
                }
                Shape::EndedList(_) => {
                    let error = SyntaxError::new(datum.span, "a second datum after the dot")
                        .expected(")")
                        .note(open.span, "the list began here");
                    return Err(ReadError::Wrong(error));
                }
                Shape::Comment => {
                    self.open.pop();
                    return Ok(None);
                }
                Shape::Prefix(keyword) => {
                    let head = Datum::symbol(Symbol::intern(keyword), open.span);
                    datum = Datum::list(vec![head, datum], open.span);
                }
                Shape::Label(label) => {
                    datum = Datum::new(DatumKind::Label(*label, datum), open.span);
                }
            }
            self.open.pop();
        }
    }
}

fn byte(item: &Datum) -> Result<u8, ReadError> {
    match &*item.kind {
        DatumKind::Number(NumberLiteral::Integer(n)) if (0..=255).contains(n) => Ok(*n as u8),
        _ => Err(wrong(
            item.span,
            format!("{item} cannot stand in a bytevector"),
            "an exact integer from 0 to 255",
        )),
    }
}

/// All data of a text. `name` is the path of the file, or the name of the text in messages.
///
/// # Errors
/// The first error in the text, or what is missing at its end.
pub fn read_all(text: &str, name: &str) -> Result<Vec<Datum>, SyntaxError> {
    let mut reader = Reader::of_text(text, super::source::register(name));
    let mut data = Vec::new();
    while let Some(datum) = reader.read()? {
        data.push(datum);
    }
    Ok(data)
}

#[cfg(test)]
mod tests;
