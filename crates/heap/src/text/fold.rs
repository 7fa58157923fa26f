//! Case: up, down, and folded for comparison without case.
//!
//! Rust's tables are Unicode's. Simple mappings (one character to one) serve `char-upcase` and its
//! like; full ones (ß to SS) serve strings.

/// The single uppercase character of `c`, or `c` where that is none or several.
#[must_use]
pub fn upcase(c: char) -> char {
    single(c.to_uppercase(), c)
}

/// The single lowercase character of `c`, or `c` where that is none or several.
#[must_use]
pub fn downcase(c: char) -> char {
    // The only character whose full lowercase is two has a simple one too.
    if c == 'İ' { 'i' } else { single(c.to_lowercase(), c) }
}

/// `c` under simple case folding: what `char-foldcase` gives.
#[must_use]
pub fn foldcase(c: char) -> char {
    match c {
        // Turkish letters have no simple folding, Cherokee letters fold to the capital.
        'İ' | 'ı' => c,
        '\u{13a0}'..='\u{13f5}' => c,
        '\u{13f8}'..='\u{13fd}' => upcase(c),
        '\u{ab70}'..='\u{abbf}' => upcase(c),
        _ => downcase(upcase(c)),
    }
}

/// Appends the full folding of `c`: what `string-foldcase` makes of it.
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
                // Ligatures and letters with several marks: fold what they stand for.
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
