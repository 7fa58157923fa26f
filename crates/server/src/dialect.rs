//! What goes over a connection, whatever its form: events come in, what is shown goes out.
//!
//! A dialect is pure: it turns bytes into events and what is shown into bytes. [`frames`](crate::frames) is what `kyocho
//! connect` speaks, [`telnet`](crate::telnet) what a plain terminal does.

/// Something that the user has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// He wants a whole text evaluated.
    Text(String),
    /// The same, with the values of each form among what the text writes.
    Input(String),
    /// He has typed a line; whether the form is complete the server knows.
    Line(String),
    /// He wants to know which names begin so.
    Complete(String),
    /// He wants the evaluation to stop.
    Interrupt,
    /// His terminal is to be sent this, as it is.
    Answer(Vec<u8>),
}

impl Event {
    /// What it takes to keep it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Input(text) | Self::Line(text) | Self::Complete(text) => {
                text.len()
            }
            Self::Interrupt | Self::Answer(_) => 0,
        }
    }
}

/// Something for the user to see.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown<'a> {
    /// He is in, as this user.
    Welcome(&'a str),
    /// He is not, for this reason.
    Refused(&'a str),
    /// His program has written this.
    Output(&'a str),
    /// The form is not complete.
    More,
    /// An evaluation is over.
    Done(&'a Outcome),
    /// The names that he asked for.
    Names(&'a [String]),
}

/// What an evaluation came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The values, printed.
    pub(crate) values: Vec<String>,
    /// The report of what nobody handled.
    pub(crate) error: Option<String>,
    /// The session is over, with this code.
    pub(crate) exit: Option<u8>,
}

/// Bytes to events.
pub(crate) trait Decode: Send {
    /// Takes what has come.
    ///
    /// # Errors
    /// What is no such dialect, or too long: the connection is over, and this is why.
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String>;

    /// Bytes that have come and make no event yet.
    fn pending_bytes(&self) -> usize;
}

/// What is shown, to bytes.
pub(crate) trait Encode: Send + Sync {
    /// Adds what the user's side is to receive.
    fn encode(&self, shown: Shown<'_>, out: &mut Vec<u8>);
}

/// The longest text that is evaluated at a time, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// Bytes up to a newline, bounded.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Takes bytes; the lines that they complete, without their ends.
    ///
    /// # Errors
    /// A line of more than `bytes_max`.
    pub(crate) fn feed(&mut self, bytes: &[u8], bytes_max: usize) -> Result<Vec<Vec<u8>>, String> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.partial.len() + part.len() > bytes_max {
                return Err(format!("a line of more than {bytes_max} bytes"));
            }
            self.partial.extend_from_slice(part);
            if self.partial.ends_with(b"\n") {
                self.partial.pop();
                lines.push(core::mem::take(&mut self.partial));
            }
        }
        Ok(lines)
    }

    /// Bytes of a line whose end has not come.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.partial.len()
    }
}
