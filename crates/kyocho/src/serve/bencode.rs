//! Bencode, the form of nREPL's messages: integers, byte strings, lists, dictionaries.
//!
//! ```text
//!   i-5e    4:eval    l i1e i2e e    d 2:op 4:eval e
//! ```

use std::collections::BTreeMap;

/// The longest message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Lists and dictionaries within one another.
const NESTING_MAX: usize = 32;
/// Digits of an integer or of a length.
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
    /// A dictionary of these.
    pub(crate) fn dictionary<'a>(entries: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let entry = |(key, value): (&str, Self)| (key.as_bytes().to_vec(), value);
        Self::Dictionary(entries.into_iter().map(entry).collect())
    }

    /// A list of texts.
    pub(crate) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(texts.into_iter().map(Self::from).collect())
    }

    /// The text under a key, where it is one and there is one.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let Self::Dictionary(entries) = self else { return None };
        match entries.get(key.as_bytes())? {
            Self::Bytes(bytes) => core::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Adds what it is written as.
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

/// Bytes as they come, to whole values. Each byte is looked at twice at most, however few come at a time.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    /// So many bytes of the message were seen to be whole tokens, with so many brackets open behind them.
    seen: usize,
    open: usize,
}

impl Decoder {
    /// Takes bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole value; none until more bytes come.
    ///
    /// # Errors
    /// What is no bencode, or too long: nothing behind it can be understood.
    pub(crate) fn next(&mut self) -> Result<Option<Bencode>, String> {
        match self.whole_value() {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Incomplete) if self.pending.len() <= MESSAGE_BYTES_MAX => Ok(None),
            Err(Stop::Incomplete) => {
                Err(format!("a message of more than {MESSAGE_BYTES_MAX} bytes"))
            }
            Err(Stop::Wrong(at)) => Err(format!("this is no bencode, at byte {at} of the message")),
        }
    }

    fn whole_value(&mut self) -> Result<Bencode, Stop> {
        let mut reader = Reader { bytes: &self.pending, at: self.seen };
        loop {
            self.open = reader.skip_token(self.open)?;
            self.seen = reader.at;
            if self.open == 0 {
                break;
            }
        }
        let value = Reader { bytes: &self.pending, at: 0 }.value()?;
        self.pending.drain(..self.seen);
        self.seen = 0;
        Ok(value)
    }
}

/// Why there is no value.
enum Stop {
    Incomplete,
    Wrong(usize),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::Incomplete)
    }

    /// Goes behind an integer, a string or a bracket; how many brackets are open there, of `open` before.
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

    /// A value of which every token is known to be whole: so it nests no deeper than they may.
    fn value(&mut self) -> Result<Bencode, Stop> {
        match self.peek()? {
            b'i' => {
                self.at += 1;
                self.number(b'e').map(Bencode::Integer)
            }
            b'l' => {
                self.at += 1;
                let mut items = Vec::new();
                while self.peek()? != b'e' {
                    items.push(self.value()?);
                }
                self.at += 1;
                Ok(Bencode::List(items))
            }
            b'd' => {
                self.at += 1;
                let mut entries = BTreeMap::new();
                while self.peek()? != b'e' {
                    let key = self.string()?;
                    entries.insert(key, self.value()?);
                }
                self.at += 1;
                Ok(Bencode::Dictionary(entries))
            }
            _ => self.string().map(Bencode::Bytes),
        }
    }

    /// Digits, up to this byte.
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

    fn string(&mut self) -> Result<Vec<u8>, Stop> {
        self.bytes_of_string().map(<[u8]>::to_vec)
    }

    fn bytes_of_string(&mut self) -> Result<&[u8], Stop> {
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
mod tests {
    use super::{Bencode, Decoder, MESSAGE_BYTES_MAX};
    use std::collections::BTreeMap;

    fn sample() -> Bencode {
        Bencode::dictionary([
            ("op", "eval".into()),
            ("empty", Bencode::Dictionary(BTreeMap::new())),
            ("list", Bencode::List(vec![Bencode::Integer(-5), Bencode::Bytes(vec![0, 255])])),
        ])
    }

    #[test]
    fn what_is_written_is_read_however_it_is_cut() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes);
        assert_eq!(bytes, b"d5:emptyde4:listli-5e2:\x00\xffe2:op4:evale");
        sample().write(&mut bytes);
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let mut values = Vec::new();
            for part in bytes.chunks(size) {
                decoder.feed(part);
                values.extend(core::iter::from_fn(|| decoder.next().unwrap()));
            }
            assert_eq!(values, [sample(), sample()], "cut at every {size}");
        }
    }

    #[test]
    fn what_is_no_bencode_is_refused() {
        let deep = "l".repeat(1000);
        let long = format!("{}:", MESSAGE_BYTES_MAX + 1);
        for text in ["x", "e", "i5", "ie", "i1x2e", "-1:", "di1e1:ae", "1x:", &deep, &long] {
            let mut decoder = Decoder::default();
            decoder.feed(text.as_bytes());
            assert!(decoder.next().is_err() || text == "i5", "{text}");
        }
        let mut decoder = Decoder::default();
        decoder.feed(b"l");
        let refused = (0..3000).any(|_| {
            decoder.feed(&b"1:a".repeat(1000));
            decoder.next().is_err()
        });
        assert!(refused, "a message without an end is not kept for ever");
    }
}
