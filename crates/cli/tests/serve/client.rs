//! A client of a server's Unix socket, with its own implementation of the protocol.

use crate::server::{Server, WATCHDOG};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    pub(crate) reader: BufReader<UnixStream>,
}

/// A connection on which nothing was sent yet.
pub(crate) fn connect(server: &Server) -> Client {
    Client::new(UnixStream::connect(server.folder.join("s")).unwrap())
}

impl Client {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        self.line_for("anything")
    }

    fn line_for(&mut self, asked: &str) -> String {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        read.unwrap_or_else(|error| panic!("no answer to {asked}: {error}"));
        line.trim_end().to_owned()
    }

    /// Evaluates a text. Returns everything up to its end.
    pub(crate) fn eval(&mut self, text: &str) -> String {
        self.send(&format!(r#"{{"do":"eval","text":"{text}"}}"#));
        let mut asked = text.to_owned();
        loop {
            let line = self.line_for(&asked);
            if !line.contains(r#""show":"output""#) {
                return line;
            }
            asked.push_str(&format!("; told {line}"));
        }
    }
}
