//! A server with a TCP port for editors, and a client with its own bencode.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Ends a test that hangs.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// A server that ends with the test, and its address.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) address: String,
    pub(crate) token: String,
    _lines: BufReader<std::process::ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        command.args(["serve", "--listen", "nrepl:127.0.0.1:0"]).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the command runs");
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let mut line_with = |part: &str| {
            let mut line = String::new();
            while !line.contains(part) {
                line.clear();
                assert!(lines.read_line(&mut line).unwrap() > 0, "the server prints its address");
            }
            line.trim_end().to_owned()
        };
        let file = line_with("nrepl token").rsplit_once(' ').unwrap().1.to_owned();
        let address = line_with("nrepl:").split_once("nrepl:").unwrap().1.to_owned();
        let token = std::fs::read_to_string(file).unwrap().trim().to_owned();
        Self { process, address, token, _lines: lines }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Client { stream, reader, next: 0, token: self.token.clone() }
    }
}

/// A received value: texts, lists and dictionaries. Numbers are stored as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Text(String),
    List(Vec<Self>),
    Dictionary(BTreeMap<String, Self>),
}

impl Data {
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Dictionary(entries) => entries.get(key),
            _ => None,
        }
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        match self.get(key) {
            Some(Self::Text(text)) => text,
            other => panic!("{key} is {other:?} in {self:?}"),
        }
    }

    pub(crate) fn items(&self, key: &str) -> &[Self] {
        match self.get(key) {
            Some(Self::List(items)) => items,
            other => panic!("{key} is {other:?} in {self:?}"),
        }
    }
}

/// A client with its own bencode.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) reader: BufReader<TcpStream>,
    next: u32,
    /// Sent with each request. The server checks it in the first one.
    pub(crate) token: String,
}

impl Client {
    fn until(&mut self, end: u8) -> String {
        let mut bytes = Vec::new();
        self.reader.read_until(end, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(end), "the server has closed the connection");
        String::from_utf8(bytes).unwrap()
    }

    /// Reads the values up to the closing bracket.
    fn values(&mut self) -> Vec<Data> {
        core::iter::from_fn(|| self.value()).collect()
    }

    /// Reads the next value. `None` at a closing bracket.
    pub(crate) fn value(&mut self) -> Option<Data> {
        let first = self.reader.fill_buf().unwrap()[0];
        if first.is_ascii_digit() {
            let length = self.until(b':').parse().unwrap();
            let mut bytes = vec![0; length];
            self.reader.read_exact(&mut bytes).unwrap();
            return Some(Data::Text(String::from_utf8(bytes).unwrap()));
        }
        self.reader.consume(1);
        match first {
            b'i' => Some(Data::Text(self.until(b'e'))),
            b'l' => Some(Data::List(self.values())),
            b'd' => {
                let parts = self.values();
                let entry = |pair: &[Data]| match pair {
                    [Data::Text(key), value] => (key.clone(), value.clone()),
                    other => panic!("{other:?} is not an entry"),
                };
                Some(Data::Dictionary(parts.chunks(2).map(entry).collect()))
            }
            b'e' => None,
            other => panic!("{other} begins no value"),
        }
    }

    /// Sends a request. Returns its number.
    pub(crate) fn send(&mut self, entries: &[(&str, &str)]) -> String {
        self.next += 1;
        let id = self.next.to_string();
        let own = [("id", id.as_str()), ("token", self.token.as_str())];
        let all = entries.iter().copied().chain(own);
        let mut text = String::from("d");
        for (key, value) in all {
            text += &format!("{}:{key}{}:{value}", key.len(), value.len());
        }
        self.stream.write_all(format!("{text}e").as_bytes()).unwrap();
        id
    }

    /// The answers up to the end of the request with this number.
    pub(crate) fn answers(&mut self, id: &str) -> Vec<Data> {
        let mut answers = Vec::new();
        loop {
            let answer = self.value().unwrap();
            assert_eq!(answer.text("id"), id);
            answers.push(answer);
            let last = answers.last().unwrap();
            if last.get("status").is_some() && status(last).contains(&"done".to_owned()) {
                return answers;
            }
        }
    }

    pub(crate) fn ask(&mut self, entries: &[(&str, &str)]) -> Vec<Data> {
        let id = self.send(entries);
        self.answers(&id)
    }

    /// The only answer to a request.
    pub(crate) fn one(&mut self, entries: &[(&str, &str)]) -> Data {
        let mut answers = self.ask(entries);
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    pub(crate) fn open(&mut self) -> String {
        self.one(&[("op", "clone")]).text("new-session").to_owned()
    }

    /// Evaluates a text. Returns its values.
    pub(crate) fn eval(&mut self, session: &str, code: &str) -> Vec<String> {
        let answers = self.ask(&[("op", "eval"), ("code", code), ("session", session)]);
        let values = answers.iter().filter(|answer| answer.get("value").is_some());
        values.map(|answer| answer.text("value").to_owned()).collect()
    }
}

pub(crate) fn status(answer: &Data) -> Vec<String> {
    let text = |item: &Data| match item {
        Data::Text(text) => text.clone(),
        other => panic!("{other:?} is not a status"),
    };
    answer.items("status").iter().map(text).collect()
}
