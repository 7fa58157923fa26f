use super::{Completeness, GrowingText, Scan, completeness};
use proptest::prelude::{Strategy, any, proptest};
use proptest::sample::select;

/// Parts of texts; `$` ends a line, and so does `~`, as a carriage return.
const PARTS: &[&str] = &[
    "(",
    ")",
    "'",
    "`",
    ",",
    ",@",
    "@",
    "\"",
    "|",
    ";",
    "#|",
    "|#",
    "#;",
    "#",
    "#\\",
    "\\",
    "#(",
    "#u8(",
    "#u8",
    "u8(",
    "#1=",
    "#1#",
    "#12",
    "#t",
    "#!fold-case",
    "a",
    "1",
    ".",
    " ",
    "$",
    "~",
];

fn texts() -> impl Strategy<Value = String> {
    let parts = proptest::collection::vec(select(PARTS), 0..14);
    parts.prop_map(|parts| parts.concat().replace('$', "\n").replace('~', "\r"))
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(20_000))]
    #[test]
    fn incomplete_texts_are_open_and_complete_ones_are_not(text in texts(), open in any::<bool>()) {
        let text = if open { format!("(a\n{text}\n") } else { format!("{text}\n") };
        let mut scan = Scan::new();
        text.chars().for_each(|c| scan.take(c));
        match completeness(&text) {
            Completeness::Incomplete => assert!(scan.is_open(), "{text:?} is incomplete: {scan:?}"),
            Completeness::Complete => assert!(!scan.is_open(), "{text:?} is whole: {scan:?}"),
            Completeness::Wrong(_) => {}
        }
    }
}

#[test]
fn the_answer_comes_with_the_line_that_completes_it() {
    let mut text = GrowingText::default();
    let open = ["(define (f)", "\"(", "\" #\\( #| ) ", "|# '", "; )"];
    for line in open.into_iter().chain([" ; as long as it wants"; 1000]) {
        assert!(matches!(text.push_line(line), Completeness::Incomplete), "{line}");
    }
    assert!(matches!(text.push_line("x)"), Completeness::Complete));
    assert!(text.take().starts_with("(define (f)\n\"(\n"));
    assert!(matches!(text.push_line("42"), Completeness::Complete));
    assert!(text.bytes() == 3 && text.take() == "42\n");
    assert!(matches!(text.push_line("(car #<it>"), Completeness::Wrong(_)));
}

#[test]
fn a_long_text_is_scanned_in_linear_time() {
    const LINES: usize = 100_000;
    for line in ["", "(", "'", "#;", "'#;a", "\\\"", "\"\"", "a", "#|", ")(", "#\\(", "#u8("] {
        let mut text = GrowingText::default();
        let begin = if line == "\\\"" { "\"" } else { "(" };
        assert!(matches!(text.push_line(begin), Completeness::Incomplete));
        let mut bytes = begin.len() + 1;
        for _ in 0..LINES {
            if !matches!(text.push_line(line), Completeness::Incomplete) {
                break;
            }
            bytes += line.len() + 1;
            let most = 8 * bytes + 2 * super::SHORT_BYTES * super::SHORT_BYTES;
            assert!(text.scanned_bytes <= most, "{line}: {} of {bytes}", text.scanned_bytes);
        }
    }
}
