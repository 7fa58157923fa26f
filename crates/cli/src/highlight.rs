//! Colours for Scheme text at a terminal. Finds where tokens end, but not whether they are valid: a
//! text that is being typed seldom is.

use core::ops::Range;
use kyocho_lisp::syntax::number;

/// Longest text that gets colours, in bytes. The line editor colours the whole text anew at each
/// key, so a longer one would make typing slow.
const BYTES_MAX: usize = 16 * 1024;

const STRING: &str = "\x1b[32m";
const COMMENT: &str = "\x1b[90m";
const NUMBER: &str = "\x1b[36m";
const CHARACTER: &str = "\x1b[35m";
const PAIR: &str = "\x1b[1;4m";
const WRONG: &str = "\x1b[1;31m";
const END: &str = "\x1b[0m";

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Open,
    Close,
    String,
    Comment,
    Number,
    /// A character or a truth value.
    Character,
}

/// The text with its colours. Highlights the parenthesis at `cursor` (a position in bytes) and its
/// partner. A closing parenthesis without a partner is always highlighted. Without the colours the
/// result is `text`.
pub(crate) fn scheme(text: &str, cursor: Option<usize>) -> String {
    if !is_short(text) {
        return text.to_owned();
    }
    let tokens: Vec<(Class, Range<usize>)> = tokens(text).collect();
    let pairs = Pairs::of(&tokens);
    let pair_at_cursor = cursor.and_then(|cursor| pairs.at(&tokens, cursor));
    let mut out = String::with_capacity(2 * text.len());
    for (index, (class, range)) in tokens.into_iter().enumerate() {
        let colour = match class {
            _ if pair_at_cursor.is_some_and(|pair| pair.contains(&index)) => PAIR,
            Class::Plain | Class::Open => "",
            Class::Close if pairs.partner[index].is_none() => WRONG,
            Class::Close => "",
            Class::String => STRING,
            Class::Comment => COMMENT,
            Class::Number => NUMBER,
            Class::Character => CHARACTER,
        };
        paint(&text[range], colour, &mut out);
    }
    out
}

/// Whether the text is short enough to get colours.
pub(crate) fn is_short(text: &str) -> bool {
    text.len() <= BYTES_MAX
}

/// Whether a pair of parentheses is to be highlighted.
pub(crate) fn has_pair_at(text: &str, cursor: usize) -> bool {
    if !is_short(text) {
        return false;
    }
    let tokens: Vec<(Class, Range<usize>)> = tokens(text).collect();
    Pairs::of(&tokens).at(&tokens, cursor).is_some()
}

/// Colours the report of an error: the message stands out from the places.
pub(crate) fn report(text: &str) -> String {
    let (what, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let mut out = String::new();
    paint(what, WRONG, &mut out);
    out + rest
}

fn paint(text: &str, colour: &str, out: &mut String) {
    out.push_str(colour);
    out.push_str(text);
    if !colour.is_empty() {
        out.push_str(END);
    }
}

/// The partner of each parenthesis, by the numbers of their tokens.
struct Pairs {
    partner: Vec<Option<usize>>,
}

impl Pairs {
    fn of(tokens: &[(Class, Range<usize>)]) -> Self {
        let mut partner = vec![None; tokens.len()];
        let mut open = Vec::new();
        for (index, (class, _)) in tokens.iter().enumerate() {
            match class {
                Class::Open => open.push(index),
                Class::Close => partner[index] = open.pop(),
                _ => {}
            }
        }
        for close in 0..partner.len() {
            if let Some(opened) = partner[close] {
                partner[opened] = Some(close);
            }
        }
        Self { partner }
    }

    /// The pair to highlight: that of a `)` right before the cursor, else that of the parenthesis
    /// under it.
    fn at(&self, tokens: &[(Class, Range<usize>)], cursor: usize) -> Option<[usize; 2]> {
        let holds = |at: usize| tokens.iter().position(|(_, range)| range.contains(&at));
        let before = cursor.checked_sub(1).and_then(holds);
        let before = before.filter(|&index| tokens[index].0 == Class::Close);
        let index = before.or_else(|| holds(cursor))?;
        Some([index, self.partner[index]?])
    }
}

/// Splits the whole text into tokens.
fn tokens(text: &str) -> impl Iterator<Item = (Class, Range<usize>)> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let rest = &text[at..];
        if rest.is_empty() {
            return None;
        }
        let (class, length) = token(rest);
        let range = at..at + length;
        at = range.end;
        Some((class, range))
    })
}

/// The first token of a text that is not empty, and its length in bytes, which is not 0.
pub(crate) fn token(text: &str) -> (Class, usize) {
    let openings = ["(", "#(", "#u8("];
    if let Some(opening) = openings.iter().find(|opening| text.starts_with(**opening)) {
        return (Class::Open, opening.len());
    }
    if text.starts_with("#|") {
        return (Class::Comment, block_comment(text));
    }
    if text.starts_with("#;") {
        return (Class::Comment, 2);
    }
    if let Some(character) = text.strip_prefix("#\\") {
        let first = character.chars().next().map_or(0, char::len_utf8);
        return (Class::Character, 2 + first + atom(&character[first..]));
    }
    match text.chars().next() {
        Some(')') => (Class::Close, 1),
        Some('"') => (Class::String, quoted(text, '"')),
        Some('|') => (Class::Plain, quoted(text, '|')),
        Some(';') => (Class::Comment, text.find('\n').unwrap_or(text.len())),
        Some('\'' | '`' | ',') => (Class::Plain, 1),
        Some(blank) if blank.is_whitespace() => {
            (Class::Plain, text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len()))
        }
        _ => {
            let length = atom(text);
            (class_of_atom(&text[..length]), length)
        }
    }
}

fn class_of_atom(atom: &str) -> Class {
    let is_numberlike =
        atom.starts_with(['+', '-', '.', '#']) || atom.starts_with(char::is_numeric);
    match atom {
        "#t" | "#f" | "#true" | "#false" => Class::Character,
        _ if is_numberlike && number::parse(atom, 10).is_some() => Class::Number,
        _ => Class::Plain,
    }
}

/// Number of bytes before the next delimiter.
fn atom(text: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';' | '|');
    text.find(ends).unwrap_or(text.len())
}

/// Length of a text between two `quote`s, including them. The second one may be missing.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Length of a block comment, which may contain others. Its end may be missing.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(found) = text[at..].find(['#', '|']) {
        at += found;
        match text.get(at..at + 2) {
            Some("#|") => (at, depth) = (at + 2, depth + 1),
            Some("|#") if depth == 1 => return at + 2,
            Some("|#") => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, report, scheme};

    /// The text with each colour written as a word.
    fn marked(text: &str, cursor: Option<usize>) -> String {
        let mut marked = scheme(text, cursor);
        for (code, word) in [
            ("\x1b[32m", "<string>"),
            ("\x1b[90m", "<comment>"),
            ("\x1b[36m", "<number>"),
            ("\x1b[35m", "<character>"),
            ("\x1b[1;4m", "<pair>"),
            ("\x1b[1;31m", "<wrong>"),
            ("\x1b[0m", "<>"),
        ] {
            marked = marked.replace(code, word);
        }
        marked
    }

    #[test]
    fn tokens_have_their_colours() {
        for (text, expected) in [
            ("(f 'x)", "(f 'x)"),
            ("(+ 1 -2.5e3 1+ - ...)", "(+ <number>1<> <number>-2.5e3<> 1+ - ...)"),
            ("#xff #e1.5 1/2", "<number>#xff<> <number>#e1.5<> <number>1/2<>"),
            ("#t #false #true?", "<character>#t<> <character>#false<> #true?"),
            (r##""a\"b" c"##, r##"<string>"a\"b"<> c"##),
            (r##"(d "open (1"##, r##"(d <string>"open (1<>"##),
            ("x ; (1\n2", "x <comment>; (1<>\n<number>2<>"),
            ("#|a #|b|# |c|# 1", "<comment>#|a #|b|# |c|#<> <number>1<>"),
            ("#| 1", "<comment>#| 1<>"),
            ("#;(f)", "<comment>#;<>(f)"),
            (
                r"#\( #\space #\あ)",
                r"<character>#\(<> <character>#\space<> <character>#\あ<><wrong>)<>",
            ),
            (r"#\", r"<character>#\<>"),
            ("|1 (| 1", "|1 (| <number>1<>"),
            ("#(1) #u8(2)", "#(<number>1<>) #u8(<number>2<>)"),
            ("(f))", "(f)<wrong>)<>"),
        ] {
            assert_eq!(marked(text, None), expected, "{text}");
        }
    }

    #[test]
    fn the_partner_of_the_parenthesis_at_the_cursor_is_shown() {
        for (text, cursor, expected) in [
            ("(f (x))", 7, "<pair>(<>f (x)<pair>)<>"),
            ("(f (x))", 6, "(f <pair>(<>x<pair>)<>)"),
            ("(f (x))", 0, "<pair>(<>f (x)<pair>)<>"),
            ("(f (x))", 3, "(f <pair>(<>x<pair>)<>)"),
            ("(f (x))", 1, "(f (x))"),
            ("(f (x)", 0, "(f (x)"),
            ("#(x) \")\"", 4, "<pair>#(<>x<pair>)<> <string>\")\"<>"),
            ("(\"(\")", 5, "<pair>(<><string>\"(\"<><pair>)<>"),
            ("", 0, ""),
        ] {
            assert_eq!(marked(text, Some(cursor)), expected, "{text} at {cursor}");
        }
    }

    #[test]
    fn without_colours_it_is_the_same_text() {
        let pieces = ["(", ")", "\"", "\\", "|", "#", ";", "\n", "あ", "1", ".", "u8", " ", "'"];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            let mut bare = scheme(&text, Some(text.len()));
            for code in ["32", "90", "36", "35", "1;4", "1;31", "0"] {
                bare = bare.replace(&format!("\x1b[{code}m"), "");
            }
            assert_eq!(bare, text);
        }
    }

    #[test]
    fn long_texts_are_left_alone() {
        let text = "1 ".repeat(BYTES_MAX);
        assert_eq!(scheme(&text, None), text);
    }

    #[test]
    fn what_has_happened_stands_out() {
        assert_eq!(report("car: no\n  at 1"), "\x1b[1;31mcar: no\x1b[0m\n  at 1");
        assert_eq!(report("car: no"), "\x1b[1;31mcar: no\x1b[0m");
    }
}
