//! Answers to a client: messages that repeat the heading of their request.

use super::bencode::Bencode;
use crate::wire::Wire;
use std::io;

/// The parts of a request that its answers repeat.
#[derive(Clone, Debug, Default)]
pub(super) struct Heading {
    pub(super) id: Option<String>,
    pub(super) session: Option<String>,
}

impl Heading {
    /// A message with these parts and `entries`.
    fn message<'a>(&self, entries: impl IntoIterator<Item = (&'a str, Bencode)>) -> Bencode {
        let own = [("id", &self.id), ("session", &self.session)];
        let own = own.into_iter().filter_map(|(key, text)| Some((key, text.clone()?.into())));
        Bencode::dictionary(own.chain(entries))
    }
}

/// Sends answers to the client. All clones send to the same client.
#[derive(Clone)]
pub(super) struct Answers(Wire);

impl Answers {
    pub(super) fn new(wire: Wire) -> Self {
        Self(wire)
    }

    pub(super) fn send<'a>(
        &self,
        heading: &Heading,
        entries: impl IntoIterator<Item = (&'a str, Bencode)>,
    ) -> io::Result<()> {
        self.0.send(|out| heading.message(entries).write(out))
    }

    /// Sends the last answer to a request.
    pub(super) fn done<'a>(
        &self,
        heading: &Heading,
        entries: impl IntoIterator<Item = (&'a str, Bencode)>,
        status: &[&str],
    ) -> io::Result<()> {
        let status = Bencode::texts(status.iter().copied().chain(["done"]));
        self.send(heading, entries.into_iter().chain([("status", status)]))
    }

    /// Sends the beginning of a program's output, under `key`. Returns how many bytes were taken.
    pub(super) fn write(&self, heading: &Heading, key: &str, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes, |text, out| heading.message([(key, text.into())]).write(out))
    }

    /// Sends what an interrupted write has left.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }

    /// Ends the connection.
    pub(super) fn hang_up(&self) {
        self.0.hang_up();
    }
}

/// Reports why the connection is refused, and closes it.
pub(super) fn refuse(wire: Wire, reason: &str) {
    let answers = Answers::new(wire);
    // The client may have disconnected; then the reason is not needed.
    let _ = answers.done(&Heading::default(), [("err", reason.into())], &["error"]);
    answers.hang_up();
}
