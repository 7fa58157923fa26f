//! The lexer: characters to tokens, as in R7RS §2 and §7.1.1.
//!
//! It looks one character ahead and has no buffer of its own. So `read` on a port consumes no
//! character after the datum.

mod quoted;

use super::datum::{DatumKind, Span};
use super::error::SyntaxError;
use super::number;
use crate::symbol::Symbol;
use core::iter::Peekable;
use core::str::Chars;

/// A source of characters: a text or a port. A source that fails returns the end of its characters,
/// and reports the failure itself.
pub trait Characters {
    /// The next character, without consuming it; `None` at the end.
    fn peek(&mut self) -> Option<char>;
    /// Consumes the character that `peek` returned.
    fn advance(&mut self);
    /// Called between slices of long work that consumes no characters.
    fn pause(&mut self) {}
}

/// Characters of a text in memory.
#[derive(Debug)]
pub struct Text<'a>(pub(super) Peekable<Chars<'a>>);

impl<'a> Text<'a> {
    /// A source for all characters of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self(text.chars().peekable())
    }
}

impl Characters for Text<'_> {
    fn peek(&mut self) -> Option<char> {
        self.0.peek().copied()
    }

    fn advance(&mut self) {
        self.0.next();
    }
}

/// Why no datum could be read.
#[derive(Clone, Debug)]
pub enum ReadError {
    /// The text ends inside a datum: more text may complete it.
    Incomplete(SyntaxError),
    /// No further text can make this right.
    Wrong(SyntaxError),
}

impl From<ReadError> for SyntaxError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Incomplete(error) | ReadError::Wrong(error) => error,
        }
    }
}

/// The tokens of a text.
#[derive(Debug)]
pub(super) enum Token {
    Open,
    OpenVector,
    OpenBytes,
    Close,
    Dot,
    /// `'`, `` ` ``, `,`, `,@`: the keyword that each abbreviates.
    Prefix(&'static str),
    DatumComment,
    Label(u64),
    Reference(u64),
    Atom(DatumKind),
    End,
}

const CHARACTER_NAMES: &[(&str, char)] = &[
    ("alarm", '\u{7}'),
    ("altmode", '\u{1b}'),
    ("backspace", '\u{8}'),
    ("delete", '\u{7f}'),
    ("escape", '\u{1b}'),
    ("linefeed", '\n'),
    ("newline", '\n'),
    ("nul", '\0'),
    ("null", '\0'),
    ("page", '\u{c}'),
    ("return", '\r'),
    ("rubout", '\u{7f}'),
    ("space", ' '),
    ("tab", '\t'),
];

/// Splits characters into tokens and counts lines and columns.
#[derive(Debug)]
pub(super) struct Lexer<C> {
    characters: C,
    span: Span,
    fold_case: bool,
    atom: String,
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';' | '|')
}

fn wrong(span: Span, message: impl Into<String>) -> ReadError {
    ReadError::Wrong(SyntaxError::new(span, message))
}

fn wrong_expected(span: Span, message: String, expected: &str) -> ReadError {
    ReadError::Wrong(SyntaxError::new(span, message).expected(expected))
}

impl<C: Characters> Lexer<C> {
    pub(super) fn new(characters: C, source: u32) -> Self {
        let span = Span { source, line: 1, column: 1 };
        Self { characters, span, fold_case: false, atom: String::new() }
    }

    pub(super) fn at(mut self, line: u32, column: u32) -> Self {
        (self.span.line, self.span.column) = (line, column);
        self
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    pub(super) fn fold_case(&mut self, fold_case: bool) {
        self.fold_case = fold_case;
    }

    /// Called between slices of long work on what was read.
    pub(super) fn pause(&mut self) {
        self.characters.pause();
    }

    pub(super) fn into_characters(self) -> C {
        self.characters
    }

    fn peek(&mut self) -> Option<char> {
        self.characters.peek()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.characters.peek()?;
        self.characters.advance();
        if c == '\n' {
            self.span.line = self.span.line.saturating_add(1);
            self.span.column = 1;
        } else {
            self.span.column = self.span.column.saturating_add(1);
        }
        Some(c)
    }

    /// The next token and its position.
    pub(super) fn token(&mut self) -> Result<(Token, Span), ReadError> {
        loop {
            self.skip_blank();
            let span = self.span;
            let Some(c) = self.next() else { return Ok((Token::End, span)) };
            let token = match c {
                '(' => Token::Open,
                ')' => Token::Close,
                '\'' => Token::Prefix("quote"),
                '`' => Token::Prefix("quasiquote"),
                ',' if self.peek() == Some('@') => {
                    self.next();
                    Token::Prefix("unquote-splicing")
                }
                ',' => Token::Prefix("unquote"),
                '"' => Token::Atom(DatumKind::String(self.quoted('"', span)?)),
                '|' => Token::Atom(DatumKind::Symbol(Symbol::intern(&self.quoted('|', span)?))),
                '#' => match self.hash(span)? {
                    Some(token) => token,
                    None => continue,
                },
                '[' | ']' | '{' | '}' => {
                    return Err(wrong_expected(
                        span,
                        format!("`{c}` is reserved"),
                        "a datum; lists are written with ( and )",
                    ));
                }
                _ => self.symbol_or_number(c, span)?,
            };
            return Ok((token, span));
        }
    }

    fn skip_blank(&mut self) {
        while let Some(c) = self.peek() {
            if c == ';' {
                self.skip_line();
            } else if c.is_whitespace() || c == '\u{feff}' {
                self.next();
            } else {
                return;
            }
        }
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|c| !matches!(c, '\n' | '\r')) {
            self.next();
        }
    }

    fn skip_block(&mut self, span: Span) -> Result<(), ReadError> {
        let mut depth = 1u64;
        while depth > 0 {
            match (self.next(), self.peek()) {
                (Some('#'), Some('|')) => {
                    self.next();
                    depth += 1;
                }
                (Some('|'), Some('#')) => {
                    self.next();
                    depth -= 1;
                }
                (Some(_), _) => {}
                (None, _) => {
                    let error = SyntaxError::new(span, "this comment is not closed");
                    return Err(ReadError::Incomplete(error.expected("|#")));
                }
            }
        }
        Ok(())
    }

    /// The token after `#`; `None` if it was a comment or a directive.
    fn hash(&mut self, span: Span) -> Result<Option<Token>, ReadError> {
        let Some(c) = self.peek() else {
            return Err(ReadError::Incomplete(SyntaxError::new(span, "the text ends after #")));
        };
        match c {
            '(' => {
                self.next();
                Ok(Some(Token::OpenVector))
            }
            ';' => {
                self.next();
                Ok(Some(Token::DatumComment))
            }
            '|' => {
                self.next();
                self.skip_block(span)?;
                Ok(None)
            }
            '\\' => {
                self.next();
                self.character(span).map(Some)
            }
            '!' => {
                self.next();
                self.directive(span)?;
                Ok(None)
            }
            '0'..='9' => self.label(span).map(Some),
            _ => self.hash_atom(span).map(Some),
        }
    }

    fn directive(&mut self, span: Span) -> Result<(), ReadError> {
        // `#!/usr/bin/env kyocho` on the first line of a script.
        if (span.line, span.column) == (1, 1) && matches!(self.peek(), Some('/' | ' ')) {
            self.skip_line();
            return Ok(());
        }
        self.collect("");
        match self.atom.as_str() {
            "fold-case" => self.fold_case = true,
            "no-fold-case" => self.fold_case = false,
            name => {
                return Err(wrong_expected(
                    span,
                    format!("unknown directive #!{name}"),
                    "#!fold-case or #!no-fold-case",
                ));
            }
        }
        Ok(())
    }

    fn label(&mut self, span: Span) -> Result<Token, ReadError> {
        let mut label = 0u64;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.next();
            label = label
                .checked_mul(10)
                .and_then(|label| label.checked_add(u64::from(digit)))
                .ok_or_else(|| wrong(span, "this label's number is too large"))?;
        }
        match self.peek() {
            Some('=') => {
                self.next();
                Ok(Token::Label(label))
            }
            Some('#') => {
                self.next();
                Ok(Token::Reference(label))
            }
            None => {
                Err(ReadError::Incomplete(SyntaxError::new(span, "this label is not complete")))
            }
            Some(_) => Err(wrong_expected(
                span,
                format!("#{label} is not complete"),
                &format!("#{label}= before a datum or #{label}# for it"),
            )),
        }
    }

    /// `#t`, `#u8(`, `#e1.5`, ...
    fn hash_atom(&mut self, span: Span) -> Result<Token, ReadError> {
        self.collect("#");
        let lower = self.atom.to_lowercase();
        match lower.as_str() {
            "#t" | "#true" => return Ok(Token::Atom(DatumKind::Boolean(true))),
            "#f" | "#false" => return Ok(Token::Atom(DatumKind::Boolean(false))),
            "#u8" if self.peek() == Some('(') => {
                self.next();
                return Ok(Token::OpenBytes);
            }
            _ => {}
        }
        if let Some(number) = number::parse(&self.atom, 10) {
            return Ok(Token::Atom(DatumKind::Number(number)));
        }
        let expected = match lower.chars().nth(1) {
            Some('e' | 'i' | 'b' | 'o' | 'd' | 'x') => "a number",
            Some('u') => "#u8( and bytes",
            _ => "#t, #f, #( , #u8( , #\\ , #| , #; or a number prefix",
        };
        Err(wrong_expected(span, format!("`{}` means nothing", shorten(&self.atom)), expected))
    }

    /// The rest of a character after `#\`: one character of any kind, then further ones up to a
    /// delimiter.
    fn character(&mut self, span: Span) -> Result<Token, ReadError> {
        let Some(first) = self.next() else {
            let error = SyntaxError::new(span, "the text ends after #\\");
            return Err(ReadError::Incomplete(error.expected("a character")));
        };
        let mut prefix = [0; 4];
        self.collect(first.encode_utf8(&mut prefix));
        let c = if self.atom.len() == first.len_utf8() {
            Some(first)
        } else {
            character_named(&self.atom, self.fold_case)
        };
        match c {
            Some(c) => Ok(Token::Atom(DatumKind::Character(c))),
            None => Err(wrong_expected(
                span,
                format!("no character is called #\\{}", shorten(&self.atom)),
                "one character, #\\x and its code in hexadecimal, or one of #\\alarm #\\backspace \
                 #\\delete #\\escape #\\newline #\\null #\\return #\\space #\\tab",
            )),
        }
    }

    /// Fills `atom` with `prefix` and all characters up to the next delimiter.
    fn collect(&mut self, prefix: &str) {
        let mut atom = core::mem::take(&mut self.atom);
        atom.clear();
        atom.push_str(prefix);
        while let Some(c) = self.peek().filter(|&c| !is_delimiter(c)) {
            self.next();
            atom.push(c);
        }
        self.atom = atom;
    }

    fn symbol_or_number(&mut self, first: char, span: Span) -> Result<Token, ReadError> {
        let mut prefix = [0; 4];
        self.collect(first.encode_utf8(&mut prefix));
        if self.atom == "." {
            return Ok(Token::Dot);
        }
        if matches!(first, '0'..='9' | '+' | '-' | '.') {
            if let Some(number) = number::parse(&self.atom, 10) {
                return Ok(Token::Atom(DatumKind::Number(number)));
            }
            if let Some(reason) = number::explain(&self.atom) {
                return Err(wrong(span, format!("`{}` is {reason}", shorten(&self.atom))));
            }
        }
        if let Some(bad) =
            self.atom.chars().find(|c| c.is_control() || matches!(c, '[' | ']' | '{' | '}'))
        {
            return Err(wrong(span, format!("{bad:?} cannot be part of a symbol without | |")));
        }
        let symbol = if self.fold_case {
            Symbol::intern(&self.atom.to_lowercase())
        } else {
            Symbol::intern(&self.atom)
        };
        Ok(Token::Atom(DatumKind::Symbol(symbol)))
    }
}

fn character_named(name: &str, fold_case: bool) -> Option<char> {
    if let Some(hex) = name.strip_prefix(['x', 'X'])
        && hex.chars().all(|c| c.is_ascii_hexdigit())
    {
        return char::from_u32(u32::from_str_radix(hex, 16).ok()?);
    }
    let folded;
    let name = if fold_case {
        folded = name.to_lowercase();
        &folded
    } else {
        name
    };
    CHARACTER_NAMES.iter().find(|(known, _)| *known == name).map(|&(_, c)| c)
}

fn shorten(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_MAX).chain("...".chars()).collect()
}
