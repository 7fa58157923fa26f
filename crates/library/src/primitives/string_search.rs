//! Searching, splitting, joining, padding (where SRFI 13 and 130 agree, and MIT's search
//! procedures).

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use core::ops::Range;
use kyocho_heap::heap::{Kept, Mutator};
use kyocho_heap::raise::Result;
use kyocho_heap::text::search::Places;
use kyocho_heap::text::{self, Draft, Text};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::between("%string-index", 2, 4, |_, a| index("string-index", a)),
    Primitive::between("%string-rindex", 2, 4, |_, a| index("string-rindex", a)),
    Primitive::between("string-contains", 2, 3, contains),
    Primitive::exactly("string-search-forward", 3, search_forward),
    Primitive::exactly("string-search-backward", 3, search_backward),
    Primitive::exactly("string-search-all", 2, search_all),
    Primitive::exactly("string-prefix?", 2, is_prefix),
    Primitive::exactly("string-suffix?", 2, is_suffix),
    Primitive::between("string-join", 1, 3, join),
    Primitive::between("%string-split", 2, 2, split),
    Primitive::between("%string-trim", 1, 1, |m, a| trim(m, a, true, true)),
    Primitive::between("%string-trim-left", 1, 1, |m, a| trim(m, a, true, false)),
    Primitive::between("%string-trim-right", 1, 1, |m, a| trim(m, a, false, true)),
    Primitive::between("string-pad-left", 2, 3, |m, a| pad(m, "string-pad-left", a)),
    Primitive::between("string-pad", 2, 3, |m, a| pad(m, "string-pad", a)),
    Primitive::between("string-pad-right", 2, 3, |m, a| pad(m, "string-pad-right", a)),
    Primitive::exactly("string-replace", 4, replace),
];

fn position(found: Option<usize>) -> Value {
    found.map_or(Value::FALSE, |i| Value::fixnum(i as i64))
}

/// The first (or last) index of a character.
fn index(who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let text = call.text(0)?;
    let wanted = call.character(1)?;
    let mut range = call.range(2, text.length())?;
    let found = if who == "string-index" {
        range.find(|&i| text.char_at(i) == wanted)
    } else {
        range.rfind(|&i| text.char_at(i) == wanted)
    };
    Ok(position(found))
}

/// Whether `pattern` occurs in `text` at index `at`.
fn matches(text: Text, at: usize, pattern: Text) -> bool {
    pattern.length() <= text.length() - at
        && pattern.chars().eq(text.chars_in(at..at + pattern.length()))
}

fn contains(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-contains", arguments);
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let start = if call.optional(2).is_some() { call.bound(2, 0, text.length())? } else { 0 };
    Ok(position(Places::new(text, start..text.length(), pattern).next()))
}

fn search_forward(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-search-forward", arguments);
    let (pattern, text) = (call.text(0)?, call.text(1)?);
    let start = call.bound(2, 0, text.length())?;
    Ok(position(Places::new(text, start..text.length(), pattern).next()))
}

/// The end of the last match that ends at or before argument 2.
fn search_backward(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-search-backward", arguments);
    let (pattern, text) = (call.text(0)?, call.text(1)?);
    let end = call.bound(2, 0, text.length())?;
    let found = Places::new(text, 0..end, pattern).backwards().next();
    Ok(position(found.map(|at| at + pattern.length())))
}

fn search_all(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-search-all", arguments);
    let (pattern, text) = (call.text(0)?, call.text(1)?);
    let mut found = Builder::new();
    for at in Places::new(text, 0..text.length(), pattern) {
        found.push(m, Value::fixnum(at as i64))?;
    }
    Ok(found.finish())
}

fn is_prefix(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-prefix?", arguments);
    let (prefix, text) = (call.text(0)?, call.text(1)?);
    Ok(Value::boolean(prefix.length() <= text.length() && matches(text, 0, prefix)))
}

fn is_suffix(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-suffix?", arguments);
    let (suffix, text) = (call.text(0)?, call.text(1)?);
    let at = text.length().checked_sub(suffix.length());
    Ok(Value::boolean(at.is_some_and(|at| matches(text, at, suffix))))
}

/// `(string-join list [delimiter [grammar]])`: infix, strict-infix, prefix or suffix.
fn join(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-join", arguments);
    let strings = call.list(m, 0)?;
    let mut delimiter = String::from(" ");
    if call.optional(1).is_some() {
        delimiter = call.string(1)?;
    }
    let grammar = match call.optional(2) {
        None => "infix",
        Some(_) => call.symbol(2)?.name(),
    };
    if !["infix", "strict-infix", "prefix", "suffix"].contains(&grammar) {
        return Err(call.outside(2, "infix, strict-infix, prefix or suffix"));
    }
    if strings.is_empty() && grammar == "strict-infix" {
        return Err(call.outside(0, "a list that is not empty, under strict-infix"));
    }
    let mut result = String::new();
    for (i, &string) in strings.iter().enumerate() {
        if grammar == "prefix" || i > 0 && grammar.ends_with("infix") {
            result.push_str(&delimiter);
        }
        let text = Text::of(string).ok_or_else(|| call.wrong(0, "list of strings"))?;
        text.push_to(&mut result, 0..text.length());
        if grammar == "suffix" {
            result.push_str(&delimiter);
        }
    }
    Ok(m.string(&result)?)
}

/// The parts between occurrences of a character or of a non-empty string.
fn split(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-split", arguments);
    let text = call.text(0)?;
    let delimiter = match arguments[1].as_character() {
        Some(c) => vec![c],
        None => match Text::of(arguments[1]) {
            Some(delimiter) if delimiter.length() > 0 => delimiter.chars().collect(),
            Some(_) => return Err(call.outside(1, "a string that is not empty")),
            None => return Err(call.wrong(1, "character or string")),
        },
    };
    let mut parts = Builder::new();
    let (mut start, mut at) = (0, 0);
    while at + delimiter.len() <= text.length() {
        if text.chars_in(at..at + delimiter.len()).eq(delimiter.iter().copied()) {
            let before = parts.kept();
            parts = with_part(m, before, text, start..at)?;
            at += delimiter.len();
            start = at;
        } else {
            at += 1;
        }
    }
    let before = parts.kept();
    Ok(with_part(m, before, text, start..text.length())?.finish())
}

/// Adds a part of a text to a list.
fn with_part<'m>(
    m: &'m mut Mutator,
    parts: [Kept; 2],
    text: Text,
    range: Range<usize>,
) -> Result<Builder<'m>> {
    let (kept, part) = m.keeping_over(parts, |m| text::copy(m, text, range))?;
    let m = &*m;
    let mut parts = Builder::of(kept.unrooted(m));
    parts.push(m, part)?;
    Ok(parts)
}

fn trim(m: &mut Mutator, arguments: &[Value], left: bool, right: bool) -> Result {
    let text = Call::new("string-trim", arguments).text(0)?;
    let is_kept = |&i: &usize| !text.char_at(i).is_whitespace();
    let all = 0..text.length();
    let end = if right { all.clone().rfind(is_kept).map_or(0, |i| i + 1) } else { all.end };
    let start = if left { all.clone().find(is_kept).unwrap_or(end) } else { 0 };
    text::copy(m, text, start.min(end)..end)
}

/// Truncated or padded to a length. On the left, the right end is kept; on the right, the left end.
fn pad(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let text = call.text(0)?;
    let length = call.count_at(1)?;
    let fill = if call.optional(2).is_some() { call.character(2)? } else { ' ' };
    let kept = length.min(text.length());
    let mut draft = Draft::new(m, length, text.is_wide() || fill > '\u{ff}')?;
    let on_left = who != "string-pad-right";
    if !on_left {
        draft.extend_text(text, 0..kept);
    }
    for _ in kept..length {
        draft.push(fill);
    }
    if on_left {
        draft.extend_text(text, text.length() - kept..text.length());
    }
    Ok(draft.finish())
}

/// Argument 0 with the range from argument 2 to 3 replaced by argument 1.
fn replace(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-replace", arguments);
    let (text, new) = (call.text(0)?, call.text(1)?);
    let range = call.range(2, text.length())?;
    let length = text.length() - range.len() + new.length();
    let mut draft = Draft::new(m, length, text.is_wide() || new.is_wide())?;
    draft.extend_text(text, 0..range.start);
    draft.extend_text(new, 0..new.length());
    draft.extend_text(text, range.end..text.length());
    Ok(draft.finish())
}
