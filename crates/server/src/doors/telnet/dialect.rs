//! The protocol of plain terminals, as telnet (RFC 854) and netcat provide them: lines are
//! received, text is sent.
//!
//! The terminal edits its lines itself: every option is refused. Commands of the protocol are
//! removed from the text. "Interrupt process", which a telnet client sends for Ctrl-C, stops the
//! evaluation, and so does the control character. With that command the client sends a question for
//! a timing mark (RFC 860). It shows no output until this question is answered.
//!
//! Any program on the machine, and any page in a browser there, can connect to this port. If the
//! first bytes are not text of a terminal, the connection is closed ([`other_protocol`]).

use super::other_protocol;
use crate::dialect::{Decode, Encode, Event, Lines, Outcome, Reply, TEXT_BYTES_MAX};

const COMMAND: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
const TIMING_MARK: u8 = 6;
const SUBNEGOTIATION: u8 = 250;
const INTERRUPT_PROCESS: u8 = 244;
const SUBNEGOTIATION_END: u8 = 240;
const CONTROL_C: u8 = 3;

/// Position within a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Command,
    /// After a command that names an option.
    Option(u8),
    Subnegotiation,
    SubnegotiationCommand,
}

/// The effect of a byte.
enum Step {
    Nothing,
    Text(u8),
    Interrupt,
    /// The answer to the client.
    Answer([u8; 3]),
}

/// Decodes bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: State,
    lines: Lines,
    /// The first byte of text has arrived.
    is_begun: bool,
    /// The first line was checked: it is one of a terminal.
    is_first_line_checked: bool,
}

impl Decode for Decoder {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        if let (false, Some(&first)) = (self.is_begun, bytes.first()) {
            self.is_begun = true;
            if !other_protocol::begins_text(first) {
                return Err("this port serves terminals only".to_owned());
            }
        }
        let mut events = Vec::new();
        for &byte in bytes {
            match self.step(byte) {
                Step::Nothing => {}
                Step::Text(text) => {
                    let lines = self.lines.feed(&[text], TEXT_BYTES_MAX)?;
                    lines.iter().try_for_each(|line| self.check_first_line(line))?;
                    events.extend(lines.iter().map(|line| event(line)));
                }
                Step::Interrupt => events.push(Event::Interrupt),
                Step::Answer(answer) => events.push(Event::Answer(answer.to_vec())),
            }
        }
        Ok(events)
    }

    fn pending_bytes(&self) -> usize {
        self.lines.pending_bytes()
    }
}

fn event(line: &[u8]) -> Event {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Event::Line(String::from_utf8_lossy(line).into_owned())
}

impl Decoder {
    /// Checks the first line.
    fn check_first_line(&mut self, line: &[u8]) -> Result<(), String> {
        if !self.is_first_line_checked && other_protocol::is_http_request(line) {
            return Err("this is not a web server".to_owned());
        }
        self.is_first_line_checked = true;
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Step {
        let (state, step) = match (self.state, byte) {
            (State::Text, COMMAND) => (State::Command, Step::Nothing),
            (State::Text, CONTROL_C) => (State::Text, Step::Interrupt),
            // A carriage return that is not a newline is followed by a zero byte.
            (State::Text, 0) => (State::Text, Step::Nothing),
            (State::Text, text) => (State::Text, Step::Text(text)),
            (State::Command, COMMAND) => (State::Text, Step::Text(COMMAND)),
            (State::Command, INTERRUPT_PROCESS) => (State::Text, Step::Interrupt),
            (State::Command, WILL..=DONT) => (State::Option(byte), Step::Nothing),
            (State::Command, SUBNEGOTIATION) => (State::Subnegotiation, Step::Nothing),
            (State::Command, _) => (State::Text, Step::Nothing),
            (State::Option(command), option) => (State::Text, answer(command, option)),
            (State::Subnegotiation, COMMAND) => (State::SubnegotiationCommand, Step::Nothing),
            (State::SubnegotiationCommand, SUBNEGOTIATION_END) => (State::Text, Step::Nothing),
            (State::Subnegotiation | State::SubnegotiationCommand, _) => {
                (State::Subnegotiation, Step::Nothing)
            }
        };
        self.state = state;
        step
    }
}

/// Confirms a timing mark and refuses every option. Refusals are not answered (RFC 854).
fn answer(command: u8, option: u8) -> Step {
    match (command, option) {
        (DO, TIMING_MARK) => Step::Answer([COMMAND, WILL, TIMING_MARK]),
        (DO, option) => Step::Answer([COMMAND, WONT, option]),
        (WILL, option) => Step::Answer([COMMAND, DONT, option]),
        _ => Step::Nothing,
    }
}

/// Encodes text for the terminal.
#[derive(Debug, Default)]
pub(crate) struct Encoder;

impl Encode for Encoder {
    fn encode(&self, reply: Reply<'_>, out: &mut Vec<u8>) {
        match reply {
            Reply::Welcome(user) => {
                text(&format!("Kyocho: {user}'s session; ,help lists commands\n> "), out);
            }
            Reply::Refused(reason) => text(&format!("Kyocho: {reason}\n"), out),
            Reply::Output(written) => text(written, out),
            Reply::More => text("  ", out),
            Reply::Done(Outcome { values, error, exit }) => {
                for line in values.iter().chain(error) {
                    text(&format!("{line}\n"), out);
                }
                if exit.is_none() {
                    text("> ", out);
                }
            }
            Reply::Names(names) => text(&format!("{}\n", names.join(" ")), out),
        }
    }
}

/// Appends text with the line ends of a network terminal.
fn text(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\n' => out.extend_from_slice(b"\r\n"),
            byte => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoder, Encoder};
    use crate::dialect::{Decode, Encode, Event, Reply};

    fn line(text: &str) -> Event {
        Event::Line(text.to_owned())
    }

    #[test]
    fn telnet_commands_are_removed_from_lines() {
        let bytes = b"\xff\xfb\x22(+ \xff\xfa\x01x\xff\xf0 1 2)\r\n\xff\xf4\x03'caf\xc3\xa9\r\0\n";
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let events: Vec<Event> =
                bytes.chunks(size).flat_map(|part| decoder.feed(part).unwrap()).collect();
            let refused = Event::Answer(b"\xff\xfe\x22".to_vec());
            let expected =
                [refused, line("(+  1 2)"), Event::Interrupt, Event::Interrupt, line("'café")];
            assert_eq!(events, expected, "cut at every {size}");
        }
    }

    #[test]
    fn timing_marks_are_confirmed_and_options_are_refused() {
        let bytes =
            b"\xff\xf4\xff\xf2\xff\xfd\x06\xff\xfd\x01\xff\xfb\x18\xff\xfc\x01\xff\xfe\x03x\n";
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let events: Vec<Event> =
                bytes.chunks(size).flat_map(|part| decoder.feed(part).unwrap()).collect();
            let answers = [b"\xff\xfb\x06", b"\xff\xfc\x01", b"\xff\xfe\x18"];
            let answers = answers.map(|answer| Event::Answer(answer.to_vec()));
            let all: Vec<_> = [Event::Interrupt].into_iter().chain(answers).collect();
            assert_eq!(events, [all, vec![line("x")]].concat(), "cut at every {size}");
        }
    }

    #[test]
    fn other_protocols_are_refused_for_all_sizes_of_pieces() {
        for bytes in [
            &b"POST / HTTP/1.1\r\nHost: x\r\n\r\n(display 1)\r\n"[..],
            b"\x16\x03\x01\x02\0\r\n(display 1)\r\n",
            b"\0\x03\0\x08!\x12\r\n(display 1)\r\n",
        ] {
            for size in 1..=bytes.len() {
                let mut decoder = Decoder::default();
                let refused = bytes.chunks(size).any(|part| decoder.feed(part).is_err());
                assert!(refused, "cut at every {size}");
            }
        }
        let mut decoder = Decoder::default();
        decoder.feed(b"(f)\r\n").unwrap();
        decoder.feed(b"GET / HTTP/1.1\r\n").expect("only the first line is checked");
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut decoder = Decoder::default();
        assert!((0..10_000).any(|_| decoder.feed(&[b'('; 1024]).is_err()));
    }

    #[test]
    fn newlines_are_sent_as_crlf() {
        let mut out = Vec::new();
        Encoder.encode(Reply::Output("a\nb"), &mut out);
        assert_eq!(out, b"a\r\nb");
    }
}
