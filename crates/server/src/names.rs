//! Finds where a name in a text begins and ends, for the completion of names.

/// Characters that end a Scheme identifier.
const DELIMITERS: [char; 8] = ['(', ')', '\'', '`', ',', '"', ';', '['];

/// Whether the character separates names.
#[must_use]
pub fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || DELIMITERS.contains(&c)
}
