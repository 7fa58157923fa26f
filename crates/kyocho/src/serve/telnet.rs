//! A plain terminal at the other end, as telnet (RFC 854) and netcat give it: lines come in, text goes out.
//!
//! The terminal edits its lines itself: no option is ever agreed on. Commands of the protocol are left out of the text; "interrupt
//! process", which a telnet client sends for Ctrl-C, stops the evaluation, and so does the control character.

use super::dialect::{Decode, Encode, Event, Lines, Outcome, Shown, TEXT_BYTES_MAX};

const COMMAND: u8 = 255;
const DONT: u8 = 254;
const WILL: u8 = 251;
const SUBNEGOTIATION: u8 = 250;
const INTERRUPT_PROCESS: u8 = 244;
const SUBNEGOTIATION_END: u8 = 240;
const CONTROL_C: u8 = 3;

/// Where in a command the bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Command,
    Option,
    Subnegotiation,
    SubnegotiationCommand,
}

/// The server's ear.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: State,
    lines: Lines,
}

impl Decode for Decoder {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        for &byte in bytes {
            match self.step(byte) {
                Some(Some(text)) => {
                    let lines = self.lines.feed(&[text], TEXT_BYTES_MAX)?;
                    events.extend(lines.iter().map(|line| event(line)));
                }
                Some(None) => events.push(Event::Interrupt),
                None => {}
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
    /// A byte of text, an interrupt (`Some(None)`), or nothing yet.
    fn step(&mut self, byte: u8) -> Option<Option<u8>> {
        let (state, given) = match (self.state, byte) {
            (State::Text, COMMAND) => (State::Command, None),
            (State::Text, CONTROL_C) => (State::Text, Some(None)),
            // A carriage return is followed by this where no newline is meant.
            (State::Text, 0) => (State::Text, None),
            (State::Text, text) => (State::Text, Some(Some(text))),
            (State::Command, COMMAND) => (State::Text, Some(Some(COMMAND))),
            (State::Command, INTERRUPT_PROCESS) => (State::Text, Some(None)),
            (State::Command, WILL..=DONT) => (State::Option, None),
            (State::Command, SUBNEGOTIATION) => (State::Subnegotiation, None),
            (State::Command | State::Option, _) => (State::Text, None),
            (State::Subnegotiation, COMMAND) => (State::SubnegotiationCommand, None),
            (State::SubnegotiationCommand, SUBNEGOTIATION_END) => (State::Text, None),
            (State::Subnegotiation | State::SubnegotiationCommand, _) => {
                (State::Subnegotiation, None)
            }
        };
        self.state = state;
        given
    }
}

/// The server's mouth.
#[derive(Debug, Default)]
pub(crate) struct Encoder;

impl Encode for Encoder {
    fn encode(&self, shown: Shown<'_>, out: &mut Vec<u8>) {
        match shown {
            Shown::Welcome(user) => {
                text(&format!("Kyocho: {user}'s session; ,help lists commands\n> "), out);
            }
            Shown::Refused(reason) => text(&format!("Kyocho: {reason}\n"), out),
            Shown::Output(written) => text(written, out),
            Shown::More => text("  ", out),
            Shown::Done(Outcome { values, error, exit }) => {
                for line in values.iter().chain(error) {
                    text(&format!("{line}\n"), out);
                }
                if exit.is_none() {
                    text("> ", out);
                }
            }
            Shown::Names(names) => text(&format!("{}\n", names.join(" ")), out),
        }
    }
}

/// Text as a network terminal takes it.
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
    use crate::serve::dialect::{Decode, Encode, Event, Shown};

    fn line(text: &str) -> Event {
        Event::Line(text.to_owned())
    }

    #[test]
    fn lines_arrive_without_the_protocols_commands() {
        let bytes = b"\xff\xfb\x22(+ \xff\xfa\x01x\xff\xf0 1 2)\r\n\xff\xf4\x03'caf\xc3\xa9\r\0\n";
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let events: Vec<Event> =
                bytes.chunks(size).flat_map(|part| decoder.feed(part).unwrap()).collect();
            let expected = [line("(+  1 2)"), Event::Interrupt, Event::Interrupt, line("'café")];
            assert_eq!(events, expected, "cut at every {size}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let mut decoder = Decoder::default();
        assert!((0..10_000).any(|_| decoder.feed(&[b'('; 1024]).is_err()));
    }

    #[test]
    fn newlines_go_out_as_the_network_has_them() {
        let mut out = Vec::new();
        Encoder.encode(Shown::Output("a\nb"), &mut out);
        assert_eq!(out, b"a\r\nb");
    }
}
