//! The interface between a connection's protocol and a getty: received bytes become events, and
//! what is to be shown becomes bytes.
//!
//! A dialect is pure. [`frames`](crate::frames) is the protocol of `kyocho connect`. The telnet
//! door has that of a plain terminal.

/// An action of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Evaluate this text.
    Text(String),
    /// The same, but the values of each form are part of the output.
    Input(String),
    /// A typed line. The server finds out whether the form is complete.
    Line(String),
    /// List the names that begin with this text.
    Complete(String),
    /// Stop the evaluation.
    Interrupt,
    /// Send these bytes to the user's terminal unchanged.
    Answer(Vec<u8>),
}

impl Event {
    /// Memory that the event takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Input(text) | Self::Line(text) | Self::Complete(text) => {
                text.len()
            }
            Self::Interrupt | Self::Answer(_) => 0,
        }
    }
}

/// Something to show to the user.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply<'a> {
    /// The session is open, for the user with this name.
    Welcome(&'a str),
    /// There is no session, for this reason.
    Refused(&'a str),
    /// The program has written this.
    Output(&'a str),
    /// The form is not complete.
    More,
    /// An evaluation has ended.
    Done(&'a Outcome),
    /// The names that were requested.
    Names(&'a [String]),
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The values, printed.
    pub(crate) values: Vec<String>,
    /// The report of an error that was not handled.
    pub(crate) error: Option<String>,
    /// The session has ended, with this exit code.
    pub(crate) exit: Option<u8>,
}

/// Decodes bytes into events.
pub(crate) trait Decode: Send {
    /// Decodes received bytes.
    ///
    /// # Errors
    /// The bytes are not in this protocol, or a message is too long. The connection is closed with
    /// this reason.
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String>;

    /// Number of received bytes that do not form an event yet.
    fn pending_bytes(&self) -> usize;
}

/// Encodes what is shown into bytes.
pub(crate) trait Encode: Send + Sync {
    /// Appends the bytes to send to the user's client.
    fn encode(&self, reply: Reply<'_>, out: &mut Vec<u8>);
}

/// Longest text that is evaluated at a time, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// Splits bytes into lines of bounded length.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Takes received bytes. Returns the lines that they complete, without line ends.
    ///
    /// # Errors
    /// A line has more than `bytes_max` bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], bytes_max: usize) -> Result<Vec<Vec<u8>>, String> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.partial.len() + part.len() > bytes_max {
                return Err(format!("the line has more than {bytes_max} bytes"));
            }
            self.partial.extend_from_slice(part);
            if self.partial.ends_with(b"\n") {
                self.partial.pop();
                lines.push(core::mem::take(&mut self.partial));
            }
        }
        Ok(lines)
    }

    /// Number of bytes of an unfinished line.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.partial.len()
    }
}
