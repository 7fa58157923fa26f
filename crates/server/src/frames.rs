//! The protocol between `kyocho connect` and the server: one line of JSON for each message.
//!
//! ```text
//!   {"do":"eval","text":"(display 1) 2"}   ──►
//!                                          ◄──  {"show":"output","text":"1"}
//!                                          ◄──  {"show":"done","values":["2"]}
//!   {"do":"run","text":"(display 1) 2"}    ──►
//!                                          ◄──  {"show":"output","text":"12\n"}
//!                                          ◄──  {"show":"done"}
//! ```

use crate::dialect::{Decode, Encode, Event, Lines, Outcome, Reply, TEXT_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// Longest message of a client: a text in which every character is escaped.
const LINE_BYTES_MAX: usize = 6 * TEXT_BYTES_MAX + 1024;

/// A message of the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClientMessage {
    /// Evaluate a text.
    Eval {
        /// Complete forms.
        text: String,
    },
    /// Evaluate standard input: the values of its forms are part of the output.
    Run {
        /// Complete forms.
        text: String,
    },
    /// Stop the evaluation.
    Interrupt {},
    /// List the bound names that begin with a text.
    Complete {
        /// The text.
        prefix: String,
    },
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "show", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServerMessage {
    /// The session is open.
    Welcome {
        /// Its user.
        user: String,
    },
    /// There is no session; the connection ends.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The program has written this.
    Output {
        /// The characters.
        text: String,
    },
    /// The evaluation has ended.
    Done {
        /// The values, printed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        values: Vec<String>,
        /// The report of an error that was not handled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The session has ended, with this exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<u8>,
    },
    /// The names that were requested.
    Names {
        /// Sorted.
        names: Vec<String>,
    },
}

/// Decodes messages of the client.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    lines: Lines,
}

impl Decode for Decoder {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        let lines = self.lines.feed(bytes, LINE_BYTES_MAX)?;
        lines.iter().map(|line| event(line)).collect()
    }

    fn pending_bytes(&self) -> usize {
        self.lines.pending_bytes()
    }
}

fn event(line: &[u8]) -> Result<Event, String> {
    let ask = serde_json::from_slice(line).map_err(|error| format!("not a message: {error}"))?;
    match ask {
        ClientMessage::Eval { text } | ClientMessage::Run { text }
            if text.len() > TEXT_BYTES_MAX =>
        {
            Err(format!("the text has more than {TEXT_BYTES_MAX} bytes"))
        }
        ClientMessage::Eval { text } => Ok(Event::Text(text)),
        ClientMessage::Run { text } => Ok(Event::Input(text)),
        ClientMessage::Interrupt {} => Ok(Event::Interrupt),
        ClientMessage::Complete { prefix } => Ok(Event::Complete(prefix)),
    }
}

/// Encodes messages of the server.
#[derive(Debug, Default)]
pub(crate) struct Encoder;

impl Encode for Encoder {
    fn encode(&self, reply: Reply<'_>, out: &mut Vec<u8>) {
        let message = match reply {
            Reply::Welcome(user) => ServerMessage::Welcome { user: user.to_owned() },
            Reply::Refused(reason) => ServerMessage::Refused { reason: reason.to_owned() },
            Reply::Output(text) => ServerMessage::Output { text: text.to_owned() },
            // This client sends complete forms only.
            Reply::More => return,
            Reply::Done(Outcome { values, error, exit }) => {
                ServerMessage::Done { values: values.clone(), error: error.clone(), exit: *exit }
            }
            Reply::Names(names) => ServerMessage::Names { names: names.to_vec() },
        };
        out.extend(line_of(&message));
    }
}

/// A message as a line of JSON.
///
/// # Panics
/// If the message cannot be written as JSON. Every [`ClientMessage`] and [`ServerMessage`] can.
pub fn line_of(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages can always be JSON");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::{ClientMessage, Decoder, LINE_BYTES_MAX, line_of};
    use crate::dialect::{Decode, Event};

    #[test]
    fn messages_are_decoded_from_pieces_of_any_size() {
        let mut bytes = line_of(&ClientMessage::Eval { text: "(f\n 1)".to_owned() });
        bytes.extend(line_of(&ClientMessage::Run { text: "3".to_owned() }));
        bytes.extend(line_of(&ClientMessage::Interrupt {}));
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let events: Vec<Event> =
                bytes.chunks(size).flat_map(|part| decoder.feed(part).unwrap()).collect();
            let input = Event::Input("3".to_owned());
            assert_eq!(events, [Event::Text("(f\n 1)".to_owned()), input, Event::Interrupt]);
        }
    }

    #[test]
    fn invalid_messages_are_refused() {
        for bytes in [&b"hello\n"[..], b"{\"do\":\"shutdown\"}\n", b"\xff\n", b"{}\n", b"[[[[\n"] {
            Decoder::default().feed(bytes).unwrap_err();
        }
        let mut decoder = Decoder::default();
        let error = (0..).find_map(|_| decoder.feed(&[b'x'; 65536]).err()).unwrap();
        assert_eq!(error, format!("the line has more than {LINE_BYTES_MAX} bytes"));
    }
}
