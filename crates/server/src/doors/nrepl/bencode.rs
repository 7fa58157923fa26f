//! Bencode, the encoding of nREPL's messages: integers, byte strings, lists, dictionaries.
//!
//! ```text
//!   i-5e    4:eval    l i1e i2e e    d 2:op 4:eval e
//! ```
//!
//! Outgoing values are written from a tree. Incoming messages are never parsed into a tree, whose
//! nodes would take some sixteen times the bytes of the message. A message stays bytes, and the
//! texts that are needed are extracted from it.

use kyocho_lisp::account::{Account, Reserved};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Deepest nesting of lists and dictionaries.
const NESTING_MAX: usize = 32;
/// Most digits of an integer or of a length.
const DIGITS_MAX: usize = 20;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bencode {
    Integer(i64),
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Dictionary(BTreeMap<Vec<u8>, Self>),
}

impl From<&str> for Bencode {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<String> for Bencode {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes())
    }
}

impl Bencode {
    /// A dictionary with these entries.
    pub(crate) fn dictionary<'a>(entries: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let entry = |(key, value): (&str, Self)| (key.as_bytes().to_vec(), value);
        Self::Dictionary(entries.into_iter().map(entry).collect())
    }

    /// A list of these texts.
    pub(crate) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(texts.into_iter().map(Self::from).collect())
    }

    /// Appends the encoded value to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(number) => out.extend_from_slice(format!("i{number}e").as_bytes()),
            Self::Bytes(bytes) => write_bytes(bytes, out),
            Self::List(items) => {
                out.push(b'l');
                items.iter().for_each(|item| item.write(out));
                out.push(b'e');
            }
            Self::Dictionary(entries) => {
                out.push(b'd');
                for (key, value) in entries {
                    write_bytes(key, out);
                    value.write(out);
                }
                out.push(b'e');
            }
        }
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{}:", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
}

/// A complete message. Its bytes are charged to its user until it is dropped.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
    held: Option<Reserved>,
}

impl Message {
    /// The texts that a dictionary has under these keys. Together they have at most as many bytes
    /// as the message; the message's charge is returned with them.
    ///
    /// # Errors
    /// The message is not a dictionary, or not valid bencode.
    pub(crate) fn texts(
        self,
        keys: &[&'static str],
    ) -> Result<(BTreeMap<&'static str, String>, Option<Reserved>), String> {
        let texts =
            Reader { bytes: &self.bytes, at: 0 }.texts(keys).map_err(|stop| match stop {
                Stop::Wrong(at) => wrong(at),
                // Every token of the message was complete when it was received.
                Stop::Incomplete => wrong(self.bytes.len()),
            })?;
        Ok((texts, self.held))
    }
}

fn wrong(at: usize) -> String {
    format!("the message is not valid bencode at byte {at}")
}

/// Splits a stream of bytes into messages. A complete token is not examined again, however small
/// the pieces are. Of an incomplete string, only the length is read again for each piece.
#[derive(Debug)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    /// Number of bytes of the message that are complete tokens. After them, `open` brackets are
    /// open.
    seen: usize,
    open: usize,
    /// Longest message.
    bytes_max: usize,
    /// The account that is charged for the pending bytes, once the user is known.
    held: Option<(Arc<Account>, Reserved)>,
}

impl Decoder {
    /// A decoder for a client that has not yet been identified. Its messages have at most
    /// `bytes_max` bytes, which are not charged.
    pub(crate) fn unidentified(bytes_max: usize) -> Self {
        Self { pending: Vec::new(), seen: 0, open: 0, bytes_max, held: None }
    }

    /// Charges this account from now on.
    ///
    /// # Errors
    /// The pending bytes exceed the user's limit.
    pub(crate) fn charge(&mut self, account: &Arc<Account>) -> Result<(), String> {
        let held = account.reserve(self.pending.len()).map_err(|error| error.to_string())?;
        self.held = Some((Arc::clone(account), held));
        self.bytes_max = MESSAGE_BYTES_MAX;
        Ok(())
    }

    /// Appends received bytes.
    ///
    /// # Errors
    /// The pending bytes exceed the user's limit.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        if let Some((_, held)) = &mut self.held {
            held.resize(self.pending.len() + bytes.len()).map_err(|error| error.to_string())?;
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// The next complete message; `None` until more bytes arrive.
    ///
    /// # Errors
    /// The bytes are not a message, or the message is too long or exceeds the user's limit. The
    /// rest of the stream cannot be decoded.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, String> {
        match self.whole_message() {
            Ok(()) => self.take().map(Some),
            Err(Stop::Incomplete) if self.pending.len() <= self.bytes_max => Ok(None),
            Err(Stop::Incomplete) => {
                Err(format!("the message has more than {} bytes", self.bytes_max))
            }
            Err(Stop::Wrong(at)) => Err(wrong(at)),
        }
    }

    /// Advances past the message's last token.
    fn whole_message(&mut self) -> Result<(), Stop> {
        let mut reader = Reader { bytes: &self.pending, at: self.seen };
        // A message is a dictionary. Anything else is another protocol.
        if reader.bytes.first().is_some_and(|&first| first != b'd') {
            return Err(Stop::Wrong(0));
        }
        loop {
            self.open = reader.skip_token(self.open)?;
            self.seen = reader.at;
            if self.open == 0 {
                return Ok(());
            }
        }
    }

    /// Takes the complete message out of the pending bytes.
    fn take(&mut self) -> Result<Message, String> {
        let rest = self.pending.split_off(self.seen);
        let bytes = core::mem::replace(&mut self.pending, rest);
        self.seen = 0;
        let held = match &mut self.held {
            None => None,
            Some((account, held)) => {
                let resized = held.resize(self.pending.len());
                let reserved = resized.and_then(|()| account.reserve(bytes.len()));
                Some(reserved.map_err(|error| error.to_string())?)
            }
        };
        Ok(Message { bytes, held })
    }
}

/// Why no value could be read.
enum Stop {
    Incomplete,
    Wrong(usize),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::Incomplete)
    }

    /// Advances past an integer, a string or a bracket. With `open` brackets open before it,
    /// returns how many are open after it.
    fn skip_token(&mut self, open: usize) -> Result<usize, Stop> {
        match self.peek()? {
            b'l' | b'd' if open < NESTING_MAX => {
                self.at += 1;
                Ok(open + 1)
            }
            b'e' => {
                self.at += 1;
                open.checked_sub(1).ok_or(Stop::Wrong(self.at - 1))
            }
            b'i' => {
                self.at += 1;
                self.number(b'e').map(|_| open)
            }
            _ => self.bytes_of_string().map(|_| open),
        }
    }

    /// The texts that a dictionary has under these keys. Other entries are skipped.
    fn texts(&mut self, keys: &[&'static str]) -> Result<BTreeMap<&'static str, String>, Stop> {
        if self.peek()? != b'd' {
            return Err(Stop::Wrong(self.at));
        }
        self.at += 1;
        let mut texts = BTreeMap::new();
        while self.peek()? != b'e' {
            let key = self.bytes_of_string()?;
            let key = keys.iter().find(|known| known.as_bytes() == key);
            let from = self.at;
            self.pass_value()?;
            let value = Reader { bytes: &self.bytes[..self.at], at: from }.bytes_of_string().ok();
            let text = value.and_then(|bytes| core::str::from_utf8(bytes).ok());
            if let (Some(key), Some(text)) = (key, text) {
                texts.insert(*key, text.to_owned());
            }
        }
        Ok(texts)
    }

    /// Advances past a value whose tokens are known to be complete, so its nesting is within the
    /// bound.
    fn pass_value(&mut self) -> Result<(), Stop> {
        let bracket = self.peek()?;
        if !matches!(bracket, b'l' | b'd') {
            // A closing bracket here has no opening one.
            return if bracket == b'e' {
                Err(Stop::Wrong(self.at))
            } else {
                self.skip_token(0).map(drop)
            };
        }
        self.at += 1;
        while self.peek()? != b'e' {
            if bracket == b'd' {
                self.bytes_of_string()?;
            }
            self.pass_value()?;
        }
        self.at += 1;
        Ok(())
    }

    /// Reads digits up to the byte `end`.
    fn number(&mut self, end: u8) -> Result<i64, Stop> {
        let from = self.at;
        while self.peek()? != end {
            self.at += 1;
            if self.at - from > DIGITS_MAX {
                return Err(Stop::Wrong(from));
            }
        }
        let digits = core::str::from_utf8(&self.bytes[from..self.at]).ok();
        self.at += 1;
        digits.and_then(|digits| digits.parse().ok()).ok_or(Stop::Wrong(from))
    }

    fn bytes_of_string(&mut self) -> Result<&'a [u8], Stop> {
        let from = self.at;
        if !self.peek()?.is_ascii_digit() {
            return Err(Stop::Wrong(from));
        }
        let length = usize::try_from(self.number(b':')?).map_err(|_| Stop::Wrong(from))?;
        if length > MESSAGE_BYTES_MAX {
            return Err(Stop::Wrong(from));
        }
        let bytes = self.bytes.get(self.at..self.at + length).ok_or(Stop::Incomplete)?;
        self.at += length;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
