//! Strings: constructors, access, copying.

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::heap::pause::parts;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::text::{self, Draft, Text};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("string?", 1, |_, a| Ok(Value::boolean(a[0].is_kind(Kind::String)))),
    Primitive::between("make-string", 1, 2, make_string),
    Primitive::at_least("string", 0, string),
    Primitive::exactly("string-length", 1, |_, a| {
        let text = Call::new("string-length", a).text(0)?;
        Ok(Value::fixnum(text.length() as i64))
    }),
    Primitive::exactly("string-null?", 1, |_, a| {
        Ok(Value::boolean(Call::new("string-null?", a).text(0)?.length() == 0))
    }),
    Primitive::exactly("string-ref", 2, string_ref),
    Primitive::exactly("string-set!", 3, string_set),
    Primitive::between("substring", 2, 3, |m, a| copy(m, "substring", a)),
    Primitive::between("string-copy", 1, 3, |m, a| copy(m, "string-copy", a)),
    Primitive::exactly("string-head", 2, |m, a| {
        copy(m, "string-head", &[a[0], Value::fixnum(0), a[1]])
    }),
    Primitive::exactly("string-tail", 2, |m, a| copy(m, "string-tail", a)),
    Primitive::exactly("string-take", 2, |m, a| {
        copy(m, "string-take", &[a[0], Value::fixnum(0), a[1]])
    }),
    Primitive::exactly("string-drop", 2, |m, a| copy(m, "string-drop", a)),
    Primitive::exactly("string-take-right", 2, |m, a| right(m, "string-take-right", a)),
    Primitive::exactly("string-drop-right", 2, |m, a| right(m, "string-drop-right", a)),
    Primitive::at_least("string-append", 0, append),
    Primitive::exactly("string-concatenate", 1, |m, a| {
        let strings = Call::new("string-concatenate", a).list(m, 0)?;
        concatenate(m, Call::new("string-concatenate", &strings))
    }),
    Primitive::between("string->list", 1, 3, to_list),
    Primitive::exactly("list->string", 1, from_list),
    Primitive::between("string->vector", 1, 3, to_vector),
    Primitive::between("vector->string", 1, 3, from_vector),
    Primitive::between("string-copy!", 3, 5, copy_into),
    Primitive::between("string-fill!", 2, 4, fill),
    Primitive::between("string-reverse", 1, 3, reverse),
];

fn make_string(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("make-string", arguments);
    let length = call.count_at(0)?;
    let fill = if call.optional(1).is_some() { call.character(1)? } else { ' ' };
    let mut draft = Draft::new(m, length, fill > '\u{ff}')?;
    draft.fill(m, fill, length)?;
    Ok(draft.finish())
}

fn string(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string", arguments);
    let chars: Result<Vec<char>> = (0..arguments.len()).map(|i| call.character(i)).collect();
    text::from_chars(m, &chars?)
}

fn string_ref(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-ref", arguments);
    let text = call.text(0)?;
    let i = call.index(1, text.length())?;
    Ok(Value::character(text.char_at(i)))
}

fn string_set(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-set!", arguments);
    let text = call.mutable_text(0)?;
    let i = call.index(1, text.length())?;
    text::set(m, arguments[0], i, call.character(2)?)?;
    Ok(Value::UNSPECIFIED)
}

fn copy(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let text = call.text(0)?;
    let range = call.range(1, text.length())?;
    text::copy(m, text, range)
}

/// The last argument-1 characters, or all but those.
fn right(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let text = call.text(0)?;
    let at = text.length() - call.bound(1, 0, text.length())?;
    let range = if who == "string-take-right" { at..text.length() } else { 0..at };
    text::copy(m, text, range)
}

fn append(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-append", arguments);
    let [_, _] = arguments else { return concatenate(m, call) };
    let (a, b) = (call.text(0)?, call.text(1)?);
    let mut draft = Draft::new(m, a.length() + b.length(), a.is_wide() || b.is_wide())?;
    m.keeping(&[b.held()], |m| draft.extend_in_parts(m, a, 0..a.length()))?;
    draft.extend_in_parts(m, b, 0..b.length())?;
    Ok(draft.finish())
}

/// How many strings are appended between two pauses if they are short.
const TEXTS_AT_A_TIME: usize = 64;

/// All the call's arguments in one string.
fn concatenate(m: &mut Mutator, call: Call<'_>) -> Result {
    let texts: Result<Vec<Text>> = (0..call.count()).map(|i| call.text(i)).collect();
    let texts = texts?;
    let length = texts.iter().map(|text| text.length()).sum();
    let mut draft = Draft::new(m, length, texts.iter().any(|text| text.is_wide()))?;
    let held: Vec<Value> = texts.iter().map(|text| text.held()).collect();
    m.keeping(&held, |m| {
        for texts in texts.chunks(TEXTS_AT_A_TIME) {
            for &text in texts {
                draft.extend_in_parts(m, text, 0..text.length())?;
            }
            m.pause(&[draft.held()])?;
        }
        Ok(())
    })?;
    Ok(draft.finish())
}

fn to_list(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string->list", arguments);
    let text = call.text(0)?;
    let range = call.range(1, text.length())?;
    let mut list = Builder::new();
    for part in parts(range) {
        for c in text.chars_in(part) {
            list.push(m, Value::character(c))?;
        }
        let [head, end] = list.kept();
        let kept = m.pause_keeping([head, end, m.unrooted(text.held()).kept()])?;
        let [head, end, _] = kept.unrooted(m);
        list = Builder::of([head, end]);
    }
    Ok(list.finish())
}

fn from_list(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("list->string", arguments);
    let items = call.list(m, 0)?;
    string_of(m, items.len(), |i| items[i].as_character(), || call.wrong(0, "list of characters"))
}

/// A string of `length` characters from `char_at`; a missing character is an error. The objects
/// that `char_at` reads are in the caller's frame.
fn string_of(
    m: &mut Mutator,
    length: usize,
    char_at: impl Fn(usize) -> Option<char>,
    wrong: impl Fn() -> Raise,
) -> Result {
    let mut wide = false;
    for part in parts(0..length) {
        for i in part {
            wide |= char_at(i).ok_or_else(&wrong)? > '\u{ff}';
        }
        m.pause(&[])?;
    }
    let mut draft = Draft::new(m, length, wide)?;
    for part in parts(0..length) {
        for i in part {
            // Another thread may have stored a wide character meanwhile.
            let c = char_at(i).filter(|&c| wide || c <= '\u{ff}');
            draft.push(c.ok_or_else(&wrong)?);
        }
        m.pause(&[draft.held()])?;
    }
    Ok(draft.finish())
}

fn to_vector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string->vector", arguments);
    let text = call.text(0)?;
    let range = call.range(1, text.length())?;
    let vector = m.keeping(&[text.held()], |m| m.vector_in_parts(range.len(), Value::NIL))?;
    for part in parts(0..range.len()) {
        let at = range.start;
        for i in part {
            vector.set_field_at(i, Value::character(text.char_at(at + i)));
        }
        m.pause(&[vector, text.held()])?;
    }
    Ok(vector)
}

fn from_vector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector->string", arguments);
    let length = call.vector(0)?;
    let range = call.range(1, length)?;
    let char_at = |i| arguments[0].vector_ref(range.start + i).and_then(Value::as_character);
    string_of(m, range.len(), char_at, || call.wrong(0, "vector of characters"))
}

fn copy_into(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-copy!", arguments);
    let to = call.mutable_text(0)?;
    let at = call.bound(1, 0, to.length())?;
    let from = call.text(2)?;
    let range = call.range(3, from.length())?;
    if range.len() > to.length() - at {
        let room = to.length() - at;
        return Err(
            call.outside(1, format!("room for {} characters, there is for {room}", range.len()))
        );
    }
    // Overlapping ranges are copied in the direction that reads each character before it is
    // overwritten.
    let backward = arguments[0] == arguments[2] && at > range.start;
    for part in parts(0..range.len()) {
        let part = if backward { range.len() - part.end..range.len() - part.start } else { part };
        let source = range.start + part.start..range.start + part.end;
        text::overwrite(m, arguments[0], at + part.start, call.text(2)?, source)?;
        m.pause_midway()?;
    }
    Ok(Value::UNSPECIFIED)
}

fn fill(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-fill!", arguments);
    let text = call.mutable_text(0)?;
    let c = call.character(1)?;
    for part in parts(call.range(2, text.length())?) {
        for i in part {
            text::set(m, arguments[0], i, c)?;
        }
        m.pause(&[])?;
    }
    Ok(Value::UNSPECIFIED)
}

fn reverse(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string-reverse", arguments);
    let text = call.text(0)?;
    let range = call.range(1, text.length())?;
    let mut draft = Draft::new(m, range.len(), text.is_wide())?;
    for part in parts(0..range.len()) {
        let end = range.end;
        part.for_each(|i| draft.push(text.char_at(end - 1 - i)));
        m.pause(&[draft.held(), text.held()])?;
    }
    Ok(draft.finish())
}
