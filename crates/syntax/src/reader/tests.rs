use super::super::datum::DatumKind;
use super::{Characters, NESTING_MAX, PART, ReadError, Reader, Text, read_all};

/// Reads all data of `text` and writes them again.
fn written(text: &str) -> String {
    let data = read_all(text, "test").unwrap_or_else(|error| panic!("{text}: {error}"));
    data.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn error(text: &str) -> ReadError {
    let mut reader = Reader::of_text(text, super::super::source::register("test"));
    loop {
        match reader.read() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("{text} has no error"),
            Err(error) => return error,
        }
    }
}

#[test]
fn data_of_every_kind() {
    for (text, expected) in [
        ("(a b c)", "(a b c)"),
        ("(a . b)", "(a . b)"),
        ("(a . (b . (c . ())))", "(a b c)"),
        ("'a `b ,c ,@d", "'a `b ,c ,@d"),
        ("#(1 #t #false)", "#(1 #t #f)"),
        ("#u8(0 255)", "#u8(0 255)"),
        ("#U8(1)", "#u8(1)"),
        ("#\\a #\\x41 #\\x #\\( #\\space", "#\\a #\\A #\\x #\\( #\\ "),
        ("|a b| |a\\x41;b| ||", "a b aAb "),
        ("\"a\\n\\x41;\\\\\"", "\"a\\nA\\\\\""),
        ("#;(a b) c #| x #| y |# z |# d ; e", "c d"),
        ("(a #;b c) (a #;b) (a . b #;c)", "(a c) (a) (a . b)"),
        ("#;#;a b c", "c"),
        ("#0=(a #0#)", "#0=(a #0#)"),
        ("... + - 1+ -> .foo a.b λ", "... + - 1+ -> .foo a.b λ"),
        ("#!fold-case ABC #\\NEWLINE #!no-fold-case ABC", "abc #\\\n ABC"),
        ("(a\"b\"c)", "(a \"b\" c)"),
        ("(quote)", "(quote)"),
        ("", ""),
        ("\u{feff}a", "a"),
    ] {
        assert_eq!(written(text), expected, "{text}");
    }
}

#[test]
fn a_line_end_in_a_string_may_be_escaped() {
    let data = read_all("\"a \\  \n   b\" \"a\r\nb\"", "test").unwrap();
    assert_eq!(data[0].as_string(), Some("a b"));
    assert_eq!(data[1].as_string(), Some("a\nb"));
}

#[test]
fn positions_are_those_of_the_first_characters() {
    let data = read_all("a\n  (b\n c)", "test").unwrap();
    let at = |datum: &super::Datum| (datum.span.line, datum.span.column);
    assert_eq!(at(&data[0]), (1, 1));
    assert_eq!(at(&data[1]), (2, 3));
    let items = data[1].proper_list().unwrap();
    assert_eq!((at(items[0]), at(items[1])), ((2, 4), (3, 2)));
}

#[test]
fn a_script_may_begin_with_the_name_of_its_interpreter() {
    assert_eq!(written("#!/usr/bin/env kyocho\n(a)"), "(a)");
    assert!(matches!(error("(a)\n#!/usr/bin/env"), ReadError::Wrong(_)));
}

#[test]
fn text_that_could_be_completed_is_incomplete() {
    for text in [
        "(a", "(a . ", "(a . b", "\"abc", "\"ab\\", "\"ab\\x4", "|a", "#|", "'", "#;", "#(",
        "#u8(1", "#0=", "#0", "#", "#\\", "(a #| b",
    ] {
        assert!(matches!(error(text), ReadError::Incomplete(_)), "{text}");
    }
}

#[test]
fn errors_have_a_position_and_say_what_was_expected() {
    for (text, place, part) in [
        (")", "test:1:1", "closes nothing"),
        ("(a .)", "test:1:5", "nothing follows the dot"),
        ("( . a)", "test:1:3", "nothing stands before this dot"),
        ("(a . b c)", "test:1:8", "second datum after the dot"),
        ("(a . b . c)", "test:1:8", "a dot cannot stand here"),
        ("#(a . b)", "test:1:5", "a dot cannot stand here"),
        (".", "test:1:1", "a dot cannot stand here"),
        ("')", "test:1:1", "nothing follows this prefix"),
        ("#u8(256)", "test:1:5", "an exact integer from 0 to 255"),
        ("#u8((1))", "test:1:5", "an exact integer from 0 to 255"),
        ("#\\foo", "test:1:1", "no character is called"),
        ("#\\xd800", "test:1:1", "no character is called"),
        ("\"\\q\"", "test:1:2", "unknown escape"),
        ("\"\\x110000;\"", "test:1:2", "no Unicode character"),
        ("\"\\x;\"", "test:1:2", "hexadecimal digits"),
        ("\"\\ a\"", "test:1:2", "line end"),
        ("#foo", "test:1:1", "means nothing"),
        ("#e", "test:1:1", "a number"),
        ("#1#", "test:1:1", "refers to nothing"),
        ("#0=#0#", "test:1:4", "refers to nothing"),
        ("(#0=a #0=b)", "test:1:7", "stands twice"),
        ("#0a", "test:1:1", "#0="),
        ("#99999999999999999999=a", "test:1:1", "too large"),
        ("[a]", "test:1:1", "( and )"),
        ("(a]", "test:1:2", "cannot be part of a symbol"),
        ("1/0", "test:1:1", "denominator"),
        ("#!nope", "test:1:1", "#!fold-case"),
        ("#0=a #0#", "test:1:6", "refers to nothing"),
    ] {
        let ReadError::Wrong(error) = error(text) else { panic!("{text} is only incomplete") };
        let error = error.to_string();
        assert!(error.starts_with(place) && error.contains(part), "{text}: {error}");
    }
}

#[test]
fn an_unclosed_list_is_reported_at_its_parenthesis() {
    let ReadError::Incomplete(error) = error("(a\n  (b\n   c") else { panic!() };
    assert_eq!(
        error.to_string(),
        "test:2:3: this ( is not closed; the text ends at line 3; expected )"
    );
}

#[test]
fn nesting_is_bounded_and_length_is_not() {
    let deep = |n: usize| format!("{}{}", "(".repeat(n), ")".repeat(n));
    assert!(read_all(&deep(NESTING_MAX), "test").is_ok());
    assert!(matches!(error(&deep(NESTING_MAX + 1)), ReadError::Wrong(_)));
    assert!(matches!(error(&"'".repeat(NESTING_MAX + 1)), ReadError::Wrong(_)));
    let long = read_all(&format!("({})", "a ".repeat(300_000)), "test").unwrap();
    assert_eq!(long[0].elements().count(), 300_000);
    drop(long);
    assert_eq!(written(&format!("{}{}", "#|".repeat(100_000), "|#".repeat(100_000))), "");
}

#[test]
fn reading_continues_after_a_wrong_token() {
    let mut reader = Reader::of_text(") a", 0);
    assert!(reader.read().is_err());
    assert_eq!(reader.read().unwrap().unwrap().to_string(), "a");
    assert!(reader.read().unwrap().is_none());
}

#[test]
fn a_reader_consumes_nothing_after_the_datum() {
    let mut reader = Reader::of_text("abc)rest", 0);
    reader.read().unwrap();
    let Text(mut rest) = reader.into_characters();
    assert_eq!(rest.next(), Some(')'));
}

#[test]
fn dropping_deep_shared_data_does_not_recurse() {
    let mut datum = super::Datum::nil(super::Span::default());
    for _ in 0..300_000 {
        datum = super::Datum::new(DatumKind::Vector(vec![datum]), super::Span::default());
    }
    for _ in 0..300_000 {
        let nil = super::Datum::nil(super::Span::default());
        datum = super::Datum::pair(datum, nil, super::Span::default());
    }
    drop(datum);
}

/// A text that counts the pauses after its last character was consumed.
struct Paused<'a> {
    text: Text<'a>,
    pauses: usize,
}

impl Characters for Paused<'_> {
    fn peek(&mut self) -> Option<char> {
        self.text.peek()
    }

    fn advance(&mut self) {
        self.text.advance();
    }

    fn pause(&mut self) {
        self.pauses += 1;
    }
}

#[test]
fn long_data_are_built_in_slices() {
    let items = "7 ".repeat(3 * PART);
    for (open, close) in [("(", ")"), ("(", ". 7)"), ("#u8(", ")")] {
        let text = format!("{open}{items}{close}");
        let mut reader = Reader::new(Paused { text: Text::new(&text), pauses: 0 }, 0);
        let mut datum = reader.read().unwrap().unwrap();
        assert_eq!(reader.into_characters().pauses, 3, "{open}{close}");
        let mut length = 0;
        while let Some((_, rest)) = datum.as_pair() {
            datum = rest.clone();
            length += 1;
        }
        if let DatumKind::Bytevector(bytes) = &*datum.kind {
            length = bytes.len();
        }
        assert_eq!(length, 3 * PART, "{open}{close}");
    }
}
