//! Where a name in a text begins and ends, for the completion of names.

/// Characters that end a Scheme identifier.
const DELIMITERS: [char; 8] = ['(', ')', '\'', '`', ',', '"', ';', '['];

/// Whether `c` stands beside a name, not in it.
#[must_use]
pub fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || DELIMITERS.contains(&c)
}
