//! Strings and `|symbols|`: their characters and escapes.

use super::{Characters, Lexer, ReadError, wrong, wrong_expected};
use crate::datum::Span;
use crate::error::SyntaxError;

impl<C: Characters> Lexer<C> {
    /// The rest of a string or of a `|symbol|`, up to `quote`.
    pub(super) fn quoted(&mut self, quote: char, span: Span) -> Result<String, ReadError> {
        let what = if quote == '"' { "string" } else { "symbol" };
        let unclosed = || {
            let error = SyntaxError::new(span, format!("this {what} is not closed"));
            ReadError::Incomplete(error.expected(quote.to_string()))
        };
        let mut text = String::new();
        loop {
            let at = self.span;
            match self.next().ok_or_else(unclosed)? {
                c if c == quote => return Ok(text),
                '\\' => text.extend(self.escape(at, unclosed)?),
                // Each line end is read as one newline (R7RS, 6.7).
                '\r' if self.peek() == Some('\n') => {}
                '\r' => text.push('\n'),
                c => text.push(c),
            }
        }
    }

    /// The character of an escape after its backslash; `None` for a line continuation.
    fn escape(
        &mut self,
        at: Span,
        unclosed: impl Fn() -> ReadError,
    ) -> Result<Option<char>, ReadError> {
        let c = self.next().ok_or_else(&unclosed)?;
        let c = match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            '"' | '\\' | '|' => c,
            'x' | 'X' => return self.hex_escape(at, unclosed).map(Some),
            c if c.is_whitespace() => return self.continuation(c, at, unclosed),
            c => {
                return Err(wrong_expected(
                    at,
                    format!("unknown escape \\{c}"),
                    "\\a \\b \\t \\n \\r \\\" \\\\ \\| \\xHEX; or a line end",
                ));
            }
        };
        Ok(Some(c))
    }

    fn hex_escape(
        &mut self,
        at: Span,
        unclosed: impl Fn() -> ReadError,
    ) -> Result<char, ReadError> {
        let mut code = 0u32;
        let mut digits = 0;
        loop {
            let c = self.peek().ok_or_else(&unclosed)?;
            let Some(digit) = c.to_digit(16) else { break };
            self.next();
            code = code.saturating_mul(16).saturating_add(digit);
            digits += 1;
        }
        if digits == 0 || self.peek() != Some(';') {
            return Err(wrong_expected(
                at,
                "this \\x escape is not complete".to_owned(),
                "hexadecimal digits and ;",
            ));
        }
        self.next();
        char::from_u32(code)
            .ok_or_else(|| wrong(at, format!("\\x{code:x}; is no Unicode character")))
    }

    /// The rest of a line continuation: blanks, a line end, blanks. It adds nothing to the text.
    fn continuation(
        &mut self,
        first: char,
        at: Span,
        unclosed: impl Fn() -> ReadError,
    ) -> Result<Option<char>, ReadError> {
        let mut c = first;
        while c != '\n' && !(c == '\r' && self.peek() != Some('\n')) {
            if !c.is_whitespace() {
                return Err(wrong_expected(
                    at,
                    "only blanks may stand between \\ and the line end".to_owned(),
                    "a line end",
                ));
            }
            c = self.next().ok_or_else(&unclosed)?;
        }
        while self.peek().is_some_and(|c| c.is_whitespace() && !matches!(c, '\n' | '\r')) {
            self.next();
        }
        Ok(None)
    }
}
