//! The encoding of messages: the receivers' names, a delimiter, a signature, and four JSON texts.
//!
//! ```text
//!   identity ... | <IDS|MSG> | HMAC-SHA-256 of the rest, hex |
//!   header | parent's header | metadata | content | buffers ...
//! ```

use core::time::Duration;
use hmac::{Hmac, Mac};
use kyocho_sys::prim::clock::SystemTime;
use serde_json::{Value, json};
use sha2::Sha256;

const MARK: &[u8] = b"<IDS|MSG>";
const VERSION: &str = "5.3";
/// Number of JSON texts of a message.
const TEXTS: usize = 4;

/// A request: the parts that its answers need.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    /// The sender, as the socket names it.
    pub(super) identities: Vec<Vec<u8>>,
    pub(super) header: Value,
    pub(super) content: Value,
}

impl Request {
    /// The type of the request.
    pub(super) fn kind(&self) -> &str {
        self.header["msg_type"].as_str().unwrap_or("")
    }

    /// A text of its content; empty if it is missing.
    pub(super) fn text(&self, key: &str) -> &str {
        self.content[key].as_str().unwrap_or("")
    }

    /// A truth value of its content; `otherwise` if it is missing.
    pub(super) fn is(&self, key: &str, otherwise: bool) -> bool {
        self.content[key].as_bool().unwrap_or(otherwise)
    }
}

/// The key for signatures, and the session id of the kernel's own messages.
#[derive(Debug)]
pub(super) struct Signer {
    key: Vec<u8>,
    session: String,
}

impl Signer {
    /// # Errors
    /// The host has no random numbers.
    pub(super) fn new(key: &str) -> Result<Self, String> {
        Ok(Self { key: key.as_bytes().to_vec(), session: fresh()? })
    }

    fn hmac(&self, texts: &[Vec<u8>]) -> Hmac<Sha256> {
        let mut hmac = Hmac::new_from_slice(&self.key).expect("keys of any length are accepted");
        texts.iter().for_each(|text| hmac.update(text));
        hmac
    }

    /// Decodes the parts of a message.
    ///
    /// # Errors
    /// The parts are not a message, or it is not signed with the key.
    pub(super) fn open(&self, mut parts: Vec<Vec<u8>>) -> Result<Request, String> {
        let mark =
            parts.iter().position(|part| part == MARK).ok_or("a message has no delimiter")?;
        let rest = parts.split_off(mark + 1);
        parts.pop();
        let [signature, texts @ ..] = rest.as_slice() else {
            return Err("a message has no signature".to_owned());
        };
        let Some(texts) = texts.get(..TEXTS) else {
            return Err("a message has no content".to_owned());
        };
        if !self.key.is_empty() {
            let bytes =
                bytes_of_hex(signature).ok_or("the signature of a message is not hexadecimal")?;
            self.hmac(texts)
                .verify_slice(&bytes)
                .map_err(|_| "the signature of a message is wrong")?;
        }
        let json = |i: usize| serde_json::from_slice(&texts[i]).map_err(|error| error.to_string());
        Ok(Request { identities: parts, header: json(0)?, content: json(3)? })
    }

    /// Encodes a message about `parent`, for these receivers.
    ///
    /// # Errors
    /// The host has no random numbers.
    pub(super) fn close(
        &self,
        identities: Vec<Vec<u8>>,
        parent: &Value,
        kind: &str,
        content: &Value,
    ) -> Result<Vec<Vec<u8>>, String> {
        let header = json!({
            "msg_id": fresh()?,
            "session": self.session,
            "username": "kernel",
            "date": date(SystemTime::now()),
            "msg_type": kind,
            "version": VERSION,
        });
        let texts =
            [&header, parent, &json!({}), content].map(|value| value.to_string().into_bytes());
        let signature = match self.key.as_slice() {
            [] => Vec::new(),
            _ => hex(&self.hmac(&texts).finalize().into_bytes()).into_bytes(),
        };
        let mut parts = identities;
        parts.extend([MARK.to_vec(), signature]);
        parts.extend(texts);
        Ok(parts)
    }
}

/// A new random name.
fn fresh() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of_hex(text: &[u8]) -> Option<Vec<u8>> {
    let text = core::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// A time in ISO 8601.
fn date(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use super::Signer;
    use serde_json::json;

    #[test]
    fn only_signed_messages_are_accepted() {
        let signer = Signer::new("a key").unwrap();
        let message = signer
            .close(vec![b"me".to_vec()], &json!({"msg_id": "x"}), "status", &json!({"a": [1, "é"]}))
            .unwrap();
        let opened = signer.open(message.clone()).unwrap();
        assert_eq!(opened.identities, [b"me"]);
        assert_eq!((opened.kind(), &opened.content), ("status", &json!({"a": [1, "é"]})));
        for part in 2..message.len() {
            let mut other = message.clone();
            other[part].push(b' ');
            signer.open(other).unwrap_err();
        }
        for length in 0..message.len() {
            signer.open(message[..length].to_vec()).unwrap_err();
        }
        Signer::new("another key").unwrap().open(message).unwrap_err();
    }
}
