//! A text that arrives line by line, and the decision whether it is complete yet.
//!
//! ```text
//!  line ──► scan: continues from the previous line         surely open ──► more
//!                └──► the reader, from the beginning       complete, or wrong ──► to be evaluated
//! ```
//!
//! Running the reader after each line would take time quadratic in the length of the text. That
//! time would be charged to no account. So a scan first checks whether anything is surely open: a
//! parenthesis, a quotation, a comment, or a prefix without a datum. The reader runs if nothing is
//! open. If something is open, the reader may still find an error that no further text can mend. So
//! it also runs on short texts, and each time that the length has doubled.

use super::error::SyntaxError;
use super::reader::{ReadError, Reader};
use super::source;

/// The reader runs after each line on texts shorter than this.
const SHORT_BYTES: usize = 1024;

/// Whether a text consists of whole forms.
#[derive(Debug)]
pub enum Completeness {
    /// It does.
    Complete,
    /// More text may complete it.
    Incomplete,
    /// No further text can make it correct.
    Wrong(SyntaxError),
}

/// Whether a text can be evaluated as it is.
#[must_use]
pub fn completeness(text: &str) -> Completeness {
    let mut reader = Reader::of_text(text, source::register("prompt"));
    loop {
        match reader.read() {
            Ok(Some(_)) => {}
            Ok(None) => return Completeness::Complete,
            Err(ReadError::Incomplete(_)) => return Completeness::Incomplete,
            Err(ReadError::Wrong(error)) => return Completeness::Wrong(error),
        }
    }
}

/// The lexical state of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LexicalState {
    Between,
    /// In a symbol, number or character name, up to a delimiter.
    Atom,
    /// After a comma.
    Comma,
    /// After `#` and this many further characters of a possible `#u8(`.
    Hash(usize),
    /// In the number after `#`.
    Label,
    /// After `#\`.
    Character,
    /// In a directive such as `#!fold-case`.
    Directive,
    /// In a line comment.
    Line,
    /// In quotes that this character closes; whether the next character is escaped.
    Quoted(char, bool),
    /// In block comments nested this deep; the last character, which may be half of `#|` or `|#`.
    Block(u32, char),
}

/// A prefix that requires a datum after it, outside all parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    /// A prefix such as `'`, which forms a datum together with the one that follows.
    Quote,
    /// `#;`, which removes the datum that follows.
    Comment,
}

/// The state of the text at its end: what is still open.
#[derive(Debug)]
struct Scan {
    state: LexicalState,
    depth: usize,
    prefixes: Vec<Prefix>,
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';' | '|')
}

impl Scan {
    const fn new() -> Self {
        Self { state: LexicalState::Between, depth: 0, prefixes: Vec::new() }
    }

    fn is_open(&self) -> bool {
        let in_token = matches!(
            self.state,
            LexicalState::Hash(0)
                | LexicalState::Character
                | LexicalState::Quoted(..)
                | LexicalState::Block(..)
        );
        in_token || self.depth > 0 || self.waiting() > 0
    }

    /// Number of prefixes that still require a datum if the text ends here.
    fn waiting(&self) -> usize {
        if self.state != LexicalState::Atom {
            return self.prefixes.len();
        }
        let comment = self.prefixes.iter().rposition(|&prefix| prefix == Prefix::Comment);
        comment.unwrap_or(0)
    }

    fn take(&mut self, c: char) {
        match self.state {
            LexicalState::Between => self.begin(c),
            LexicalState::Comma if c == '@' => self.state = LexicalState::Between,
            LexicalState::Comma => {
                self.state = LexicalState::Between;
                self.begin(c);
            }
            LexicalState::Atom if is_delimiter(c) => self.end_atom(c),
            LexicalState::Hash(count) => self.hash(count, c),
            LexicalState::Label if c.is_ascii_digit() => {}
            LexicalState::Label if c == '=' => self.prefix(Prefix::Quote),
            LexicalState::Label if c == '#' => self.end_datum(),
            LexicalState::Label => {
                self.state = LexicalState::Atom;
                self.take(c);
            }
            LexicalState::Directive if is_delimiter(c) => {
                self.state = LexicalState::Between;
                self.begin(c);
            }
            LexicalState::Character => self.state = LexicalState::Atom,
            LexicalState::Line if matches!(c, '\n' | '\r') => self.state = LexicalState::Between,
            LexicalState::Quoted(quote, true) => self.state = LexicalState::Quoted(quote, false),
            LexicalState::Quoted(quote, false) if c == '\\' => {
                self.state = LexicalState::Quoted(quote, true);
            }
            LexicalState::Quoted(quote, false) if c == quote => self.end_datum(),
            LexicalState::Block(depth, last) => self.block(depth, last, c),
            LexicalState::Atom
            | LexicalState::Directive
            | LexicalState::Line
            | LexicalState::Quoted(..) => {}
        }
    }

    fn begin(&mut self, c: char) {
        match c {
            '(' => self.depth += 1,
            ')' => {
                self.depth = self.depth.saturating_sub(1);
                self.end_datum();
            }
            '\'' | '`' => self.prefix(Prefix::Quote),
            ',' => {
                self.prefix(Prefix::Quote);
                self.state = LexicalState::Comma;
            }
            '"' | '|' => self.state = LexicalState::Quoted(c, false),
            ';' => self.state = LexicalState::Line,
            '#' => self.state = LexicalState::Hash(0),
            _ if c.is_whitespace() || c == '\u{feff}' => {}
            _ => self.state = LexicalState::Atom,
        }
    }

    fn hash(&mut self, count: usize, c: char) {
        match (count, c) {
            (0, '|') => self.state = LexicalState::Block(1, ' '),
            (0, ';') => self.prefix(Prefix::Comment),
            (0, '\\') => self.state = LexicalState::Character,
            (0, '!') => self.state = LexicalState::Directive,
            (0, '0'..='9') => self.state = LexicalState::Label,
            (0, 'u' | 'U') => self.state = LexicalState::Hash(1),
            (1, '8') => self.state = LexicalState::Hash(2),
            (0 | 2, '(') => {
                self.state = LexicalState::Between;
                self.depth += 1;
            }
            _ => {
                self.state = LexicalState::Atom;
                self.take(c);
            }
        }
    }

    fn block(&mut self, depth: u32, last: char, c: char) {
        self.state = match (last, c) {
            ('#', '|') => LexicalState::Block(depth.saturating_add(1), ' '),
            ('|', '#') if depth == 1 => LexicalState::Between,
            ('|', '#') => LexicalState::Block(depth - 1, ' '),
            _ => LexicalState::Block(depth, c),
        };
    }

    fn prefix(&mut self, prefix: Prefix) {
        self.state = LexicalState::Between;
        if self.depth == 0 {
            self.prefixes.push(prefix);
        }
    }

    fn end_atom(&mut self, delimiter: char) {
        self.end_datum();
        self.begin(delimiter);
    }

    fn end_datum(&mut self) {
        self.state = LexicalState::Between;
        while self.depth == 0 && self.prefixes.pop() == Some(Prefix::Quote) {}
    }
}

/// The lines of a text that is not complete yet.
#[derive(Debug)]
pub struct GrowingText {
    text: String,
    scan: Scan,
    /// Length of the text when the reader last ran.
    read_bytes: usize,
    #[cfg(test)]
    scanned_bytes: usize,
}

impl Default for GrowingText {
    fn default() -> Self {
        Self {
            text: String::new(),
            scan: Scan::new(),
            read_bytes: 0,
            #[cfg(test)]
            scanned_bytes: 0,
        }
    }
}

impl GrowingText {
    /// Adds a line, passed without its line end. An error in the line may be found only after
    /// further lines.
    ///
    /// Cost: proportional to the line's length, amortised over all lines.
    pub fn push_line(&mut self, line: &str) -> Completeness {
        self.text.push_str(line);
        self.text.push('\n');
        line.chars().chain(['\n']).for_each(|c| self.scan.take(c));
        self.note(line.len() + 1);
        let is_due = self.text.len() < SHORT_BYTES || self.text.len() >= 2 * self.read_bytes;
        if self.scan.is_open() && !is_due {
            return Completeness::Incomplete;
        }
        self.read_bytes = self.text.len();
        self.note(self.text.len());
        completeness(&self.text)
    }

    /// Returns the text so far and starts an empty one.
    pub fn take(&mut self) -> String {
        core::mem::take(self).text
    }

    /// Bytes of text so far.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.text.len()
    }

    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests count"))]
    fn note(&mut self, _bytes: usize) {
        #[cfg(test)]
        {
            self.scanned_bytes += _bytes;
        }
    }
}

#[cfg(test)]
mod tests;
