//! Case: upper case, lower case, and case folding for comparison.
//!
//! Rust's tables are Unicode's. Simple mappings (one character to one) are for `char-upcase` and
//! similar procedures; full ones (ß to SS) are for strings.

/// The single uppercase character of `c`; `c` itself if there is none or several.
#[must_use]
pub fn upcase(c: char) -> char {
    single(c.to_uppercase(), c)
}

/// The single lowercase character of `c`; `c` itself if there is none or several.
#[must_use]
pub fn downcase(c: char) -> char {
    // The only character whose full lowercase form has two characters also has a simple one.
    if c == 'İ' { 'i' } else { single(c.to_lowercase(), c) }
}

/// `c` under simple case folding, as `char-foldcase` returns it.
#[must_use]
pub fn foldcase(c: char) -> char {
    match c {
        // The Turkish letters have no simple folding; Cherokee letters fold to capitals.
        'İ' | 'ı' => c,
        '\u{13a0}'..='\u{13f5}' => c,
        '\u{13f8}'..='\u{13fd}' => upcase(c),
        '\u{ab70}'..='\u{abbf}' => upcase(c),
        _ => downcase(upcase(c)),
    }
}

/// Appends the full folding of `c`, as in `string-foldcase`.
pub fn push_folded(out: &mut String, c: char) {
    match c {
        'ß' | 'ẞ' => out.push_str("ss"),
        'İ' => out.push_str("i\u{307}"),
        'ı' => out.push(c),
        _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
        _ => {
            let upper = c.to_uppercase();
            if upper.len() == 1 {
                out.push(foldcase(c));
            } else {
                // Ligatures and letters with several marks are folded through their uppercase form.
                out.extend(upper.map(foldcase));
            }
        }
    }
}

/// The text folded for comparison without case.
#[must_use]
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push_folded(&mut out, c);
    }
    out
}

fn single(mut mapped: impl ExactSizeIterator<Item = char>, c: char) -> char {
    match (mapped.len(), mapped.next()) {
        (1, Some(mapped)) => mapped,
        _ => c,
    }
}
