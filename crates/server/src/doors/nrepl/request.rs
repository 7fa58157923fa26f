//! A request of an editor: the texts of its message that some operation uses.

use super::answers::Heading;
use super::bencode::Message;
use kyocho_lisp::account::Reserved;
use std::collections::BTreeMap;

/// The keys that operations use. All other entries of a message are dropped.
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
/// The key of the token that identifies a client by TCP.
const TOKEN: &str = "token";

/// A request. Its bytes are charged to its user until it is dropped.
#[derive(Debug)]
pub(crate) struct Request {
    texts: BTreeMap<&'static str, String>,
    _held: Option<Reserved>,
}

impl Request {
    /// # Errors
    /// The message is not a dictionary, or not valid bencode.
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
