//! Lays out values for a terminal: a value that does not fit on a line is broken between its parts.
//!
//! ```text
//! (alpha beta     parts that are not lists share a line
//!  (gamma delta)  a list begins a new line, under the part before it
//!  epsilon)
//! ```
//!
//! If each line break with the blanks after it is replaced by one blank, the result is the original
//! text.

use crate::highlight::{self, Class, token};
use core::ops::Range;

/// Least width of a line. Deeper nesting is not broken further.
const COLUMNS_MIN: usize = 16;

/// A datum, by its position in the text in bytes.
struct Item {
    range: Range<usize>,
    /// Its width on one line.
    columns: usize,
    /// Length of its opening token; 0 if it has no parts.
    opening: usize,
    parts: Vec<Self>,
}

/// Breaks the text of a value into lines of at most `columns`, if possible. A text that is too long
/// for colours is returned unchanged.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let wide = text.chars().count() > columns;
    let items = if wide && highlight::is_short(text) { items(text) } else { None };
    let Some(items) = items else { return text.to_owned() };
    let mut out = String::with_capacity(2 * text.len());
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        lay(text, item, Space { indent: 0, closers: 0, columns }, &mut out);
    }
    out
}

/// The data in the text. `None` if its parentheses do not match.
fn items(text: &str) -> Option<Vec<Item>> {
    let mut open: Vec<(Range<usize>, Vec<Item>)> = Vec::new();
    let mut parts = Vec::new();
    // Where a prefix without a blank after it (a quote, a label) begins.
    let mut begun = None;
    let mut at = 0;
    while at < text.len() {
        let (class, length) = next(&text[at..]);
        let end = at + length;
        let is_blank = text[at..end].trim().is_empty();
        if (is_blank || class == Class::Close)
            && let Some(start) = begun.take()
        {
            parts.push(Item::atom(text, start..at));
        }
        match class {
            Class::Open => {
                open.push((begun.take().unwrap_or(at)..end, core::mem::take(&mut parts)));
            }
            Class::Close => {
                let (opening, outer) = open.pop()?;
                let inner = core::mem::replace(&mut parts, outer);
                parts.push(Item::list(text, &opening, end, inner));
            }
            _ if is_blank => {}
            _ => {
                begun.get_or_insert(at);
            }
        }
        at = end;
    }
    parts.extend(begun.map(|start| Item::atom(text, start..at)));
    open.is_empty().then_some(parts)
}

/// The first token. `#<...>` is one token.
fn next(text: &str) -> (Class, usize) {
    match text.strip_prefix("#<").and_then(|rest| rest.find('>')) {
        Some(end) => (Class::Plain, end + 3),
        None => token(text),
    }
}

impl Item {
    fn atom(text: &str, range: Range<usize>) -> Self {
        let columns = text[range.clone()].chars().count();
        Self { range, columns, opening: 0, parts: Vec::new() }
    }

    fn list(text: &str, opening: &Range<usize>, end: usize, parts: Vec<Self>) -> Self {
        let range = opening.start..end;
        let columns = text[range.clone()].chars().count();
        Self { range, columns, opening: opening.len(), parts }
    }

    fn is_list(&self) -> bool {
        !self.parts.is_empty()
    }
}

/// The place for a datum.
#[derive(Clone, Copy)]
struct Space {
    /// The column where it begins. Its parts begin in the column after its opening token.
    indent: usize,
    /// Number of parentheses that follow it directly and close what is around it.
    closers: usize,
    columns: usize,
}

/// Recursion ends because deeper indentation leaves too little room.
fn lay(text: &str, item: &Item, space: Space, out: &mut String) {
    let fits = space.indent + item.columns + space.closers <= space.columns;
    if fits || !item.is_list() || space.indent + COLUMNS_MIN > space.columns {
        out.push_str(&text[item.range.clone()]);
        return;
    }
    let opening = &text[item.range.start..item.range.start + item.opening];
    out.push_str(opening);
    let indent = space.indent + opening.chars().count();
    let mut column = indent;
    for (i, part) in item.parts.iter().enumerate() {
        let is_last = i + 1 == item.parts.len();
        let closers = if is_last { space.closers + 1 } else { 0 };
        let before = i.checked_sub(1).map(|before| &item.parts[before]);
        let joins = |before: &Item| {
            !before.is_list()
                && !part.is_list()
                && column + 1 + part.columns + closers <= space.columns
        };
        match before {
            None => {}
            Some(before) if joins(before) => {
                out.push(' ');
                column += 1;
            }
            Some(_) => {
                out.push('\n');
                out.extend(core::iter::repeat_n(' ', indent));
                column = indent;
            }
        }
        column += part.columns;
        lay(text, part, Space { indent, closers, ..space }, out);
    }
    out.push(')');
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS_MIN, wrapped};

    #[test]
    fn what_fits_is_left_as_it_is() {
        for text in ["", "42", "(1 2 3)", "1 (2 3)", "\"a b\"", "#<procedure car>"] {
            assert_eq!(wrapped(text, 20), text);
        }
    }

    #[test]
    fn parts_share_lines_and_lists_begin_one() {
        let rows = [
            ("(1 2 3 4 5 6 7 8 9 10 11 12 13)", "(1 2 3 4 5 6 7 8 9\n 10 11 12 13)"),
            ("((alpha . 1) (beta . 2) (gamma . 3))", "((alpha . 1)\n (beta . 2)\n (gamma . 3))"),
            ("(alpha beta (gamma delta) epsilon)", "(alpha beta\n (gamma delta)\n epsilon)"),
            ("#(one two three four five)", "#(one two three four\n  five)"),
            ("#u8(100 101 102 103 104)", "#u8(100 101 102 103\n    104)"),
            ("#0=(one two three . #0#)", "#0=(one two three .\n    #0#)"),
            ("'(quoted (list of data) 5)", "'(quoted\n  (list of data)\n  5)"),
            ("(a #<procedure f 7f> bcdef)", "(a #<procedure f 7f>\n bcdef)"),
            ("(abcdef #<procedure f 7f>)", "(abcdef\n #<procedure f 7f>)"),
            ("(alpha (b) gamma delta)", "(alpha\n (b)\n gamma delta)"),
            ("(\"a ) b\" #\\) |x ( y| zzz)", "(\"a ) b\" #\\) |x ( y|\n zzz)"),
            ("(() () () () () () () ())", "(() () () () () ()\n () ())"),
        ];
        for (text, laid) in rows {
            assert_eq!(wrapped(text, 20), laid, "{text}");
        }
    }

    #[test]
    fn what_closes_around_it_has_room_too() {
        // With the last parenthesis, a line of twenty columns would be one too long.
        assert_eq!(wrapped("(abcdef (one two 3456))", 20), "(abcdef\n (one two 3456))");
        assert_eq!(wrapped("((one two three fou))", 20), "((one two three\n  fou))");
        assert_eq!(wrapped("((one two three fo))", 20), "((one two three fo))");
    }

    #[test]
    fn deep_lists_leave_room() {
        let nested = format!("{}x{}", "(a ".repeat(100), ")".repeat(100));
        let laid = wrapped(&nested, 40);
        let deepest = laid.lines().map(|line| line.len() - line.trim_start().len()).max();
        assert_eq!(deepest, Some(40 - COLUMNS_MIN + 1));
    }

    #[test]
    fn what_is_too_long_for_colours_is_left_as_it_is() {
        let long = format!("({})", "word ".repeat(5000));
        assert_eq!(wrapped(&long, 40), long);
    }

    #[test]
    fn nothing_but_blanks_changes() {
        let nested = format!("{}x{}", "(a ".repeat(2000), ")".repeat(2000));
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in [nested.as_str(), "(1 2", ") (", "(\"unclosed", "#<", "(#<a b> . #<c"] {
            assert_eq!(words(&wrapped(text, 3)), words(text));
            assert_eq!(words(&wrapped(text, 40)), words(text));
        }
    }
}
