//! Compares what was printed with what the book shows.

/// Whether the lines match: `[..]` within a line, `...` for any lines, numbers before a unit of
/// time for each other. Of a line that begins with one of `varies`, only that word is compared.
pub(crate) fn matches(expected: &[String], printed: &[String], varies: &[String]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((wild, later)), _) if wild == "..." => {
            (0..=printed.len()).any(|skipped| matches(later, &printed[skipped..], varies))
        }
        (Some((one, later)), Some((other, rest))) => {
            same_line(one, other, varies) && matches(later, rest, varies)
        }
        (Some(_), None) => false,
    }
}

fn same_line(expected: &str, printed: &str, varies: &[String]) -> bool {
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    match first(expected) {
        Some(word) if varies.contains(&word) => first(printed) == Some(word),
        _ => same_parts(&timeless(expected), &timeless(printed)),
    }
}

/// Whether `printed` consists of the parts of `expected` between `[..]`, with anything in between.
fn same_parts(expected: &str, printed: &str) -> bool {
    let parts: Vec<&str> = expected.split("[..]").collect();
    let [first, between @ .., last] = parts.as_slice() else { return expected == printed };
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

const UNITS: [&str; 5] = ["ns", "us", "µs", "ms", "s"];

/// The line with single spaces, and with `_` for each number before a unit of time.
fn timeless(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_end_matches([',', ';', ':', ')']);
        let digits = bare.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = &bare[digits.len()..];
        if UNITS.contains(&bare) && words.last().is_some_and(|before| is_figure(before)) {
            words.pop();
            words.push("_".to_owned());
            words.push(word.to_owned());
        } else if UNITS.contains(&unit) && is_figure(digits) {
            words.push(format!("_{}", &word[digits.len()..]));
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

fn is_figure(word: &str) -> bool {
    !word.is_empty() && word.replace(',', "").parse::<f64>().is_ok()
}

#[test]
fn wildcards_and_times_match_and_nothing_else_does() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let same = |one: &str, other: &str| matches(&lines(one), &lines(other), &[]);
    assert!(same("a\n...\nz", "a\nb\nc\nz"));
    assert!(same("took 5 ms, 3ms", "took 1,278 ms, 0.5ms"));
    assert!(same("thread [..] of [..]!", "thread 7 of 9!"));
    for (one, other) in [
        ("a", "b"),
        ("a", "a\nb"),
        ("a\nb", "a"),
        ("5 threads", "6 threads"),
        ("took 5 ms", "took 5 s"),
        ("x [..] y", "x 1 z"),
        ("...\nz", "a\nb"),
    ] {
        assert!(!same(one, other), "{one:?} is not {other:?}");
    }
    assert!(matches(&lines("gc 4 MiB"), &lines("gc 8 GiB"), &["gc".to_owned()]));
    assert!(!matches(&lines("gc 4 MiB"), &lines("init"), &["gc".to_owned()]));
}
