//! Text inside HTML.

/// The text with the characters replaced that HTML gives a meaning, also inside quotes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape("<a href=\"b\">&"), "&lt;a href=&quot;b&quot;&gt;&amp;");
    }
}
