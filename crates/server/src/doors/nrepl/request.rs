//! A request of an editor: the texts in its message that some operation wants.

use super::answers::Heading;
use super::bencode::Message;
use kyocho_lisp::account::Reserved;
use std::collections::BTreeMap;

/// What operations look at; everything else in a message is dropped when it comes.
const KEYS: &[&str] = &[
    "code",
    "file",
    "file-name",
    "file-path",
    "id",
    "interrupt-id",
    "op",
    "prefix",
    "session",
    "stdin",
    "sym",
    "symbol",
    TOKEN,
];
/// Under which who comes by TCP shows that he may come in.
const TOKEN: &str = "token";

/// A request. Its user pays for its bytes until it is dropped.
#[derive(Debug)]
pub(crate) struct Request {
    texts: BTreeMap<&'static str, String>,
    _held: Option<Reserved>,
}

impl Request {
    /// # Errors
    /// It is no dictionary.
    pub(super) fn of(message: Message) -> Result<Self, String> {
        let (texts, held) = message.texts(KEYS)?;
        Ok(Self { texts, _held: held })
    }

    /// The text under one of [`KEYS`].
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        debug_assert!(KEYS.contains(&key), "{key} is read from messages");
        self.texts.get(key).map(String::as_str)
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.text(TOKEN)
    }

    pub(super) fn heading(&self) -> Heading {
        let text = |key| self.text(key).map(str::to_owned);
        Heading { id: text("id"), session: text("session") }
    }
}
