use super::decode::{Decoded, decode};
use super::input::Characters;
use super::{Content, Flush, Input, Output, Port};
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Limits, Mutator};
use kyocho_syntax::reader::Reader;
use proptest::prelude::{any, proptest};
use proptest::prop_assert_eq;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

fn mutator() -> Mutator {
    let limits = Limits { bytes_max: 1 << 20, ..Limits::default() };
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

proptest! {
    #[test]
    fn decoding_agrees_with_the_standard_library(bytes in proptest::collection::vec(any::<u8>(), 1..6)) {
        let expected = match core::str::from_utf8(&bytes) {
            Ok(text) => text.chars().next(),
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap().chars().next(),
        };
        match decode(&bytes) {
            Decoded::Character(c, length) => {
                prop_assert_eq!(Some(c), expected);
                prop_assert_eq!(length, c.len_utf8());
            }
            Decoded::Nothing => prop_assert_eq!(bytes.len(), 0),
            Decoded::Partial => {
                let error = core::str::from_utf8(&bytes).unwrap_err();
                prop_assert_eq!((error.valid_up_to(), error.error_len()), (0, None));
            }
            Decoded::Wrong => {
                let error = core::str::from_utf8(&bytes).unwrap_err();
                prop_assert_eq!((error.valid_up_to(), error.error_len().is_some()), (0, true));
            }
        }
    }
}

#[test]
fn a_broken_pipe_is_an_error_of_the_call() {
    let mut m = mutator();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut output = Output::of_file(OwnedFd::from(writer), Flush::EachCall);
    assert_eq!(output.write(&mut m, b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(output.write(&mut m, b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn reading_a_pipe_returns_what_has_arrived() {
    let mut m = mutator();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut input = Input::of_file(OwnedFd::from(reader));
    assert!(!input.is_ready(&mut m));
    let mut output = Output::of_file(OwnedFd::from(writer), Flush::EachCall);
    // The first byte of a character is not a character.
    output.write(&mut m, &"é".as_bytes()[..1]).unwrap();
    output.write(&mut m, &"é".as_bytes()[1..]).unwrap();
    assert_eq!(input.read_char(&mut m).unwrap(), Some('é'));
    output.write(&mut m, b"line\nrest").unwrap();
    assert_eq!(input.read_line(&mut m).unwrap().as_deref(), Some("line"));
    assert!(input.is_ready(&mut m));
    drop(output);
    assert_eq!(input.read_string(&mut m, 10).unwrap().as_deref(), Some("rest"));
    assert_eq!(input.read_char(&mut m).unwrap(), None);
    assert_eq!(input.place(), (2, 5));
}

#[test]
fn a_line_ends_at_its_carriage_return() {
    let mut m = mutator();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut input = Input::of_file(OwnedFd::from(reader));
    let mut output = Output::of_file(OwnedFd::from(writer), Flush::EachCall);
    let mut line = |came: &[u8]| {
        output.write(&mut m, came).unwrap();
        input.read_line(&mut m).unwrap().unwrap()
    };
    // Whether a newline follows is unknown yet, and reading does not wait for it.
    assert_eq!(line(b"one\r"), "one");
    assert_eq!(line(b"\ntwo\r"), "two");
    assert_eq!(line(b"\n\nthree"), "");
    assert_eq!(line(b"\r\rfour\r\n"), "three");
    assert_eq!(line(b"five\r"), "");
    assert_eq!(line(b""), "four");
    assert_eq!(line(b""), "five");
    output.write(&mut m, b"\n").unwrap();
    // The second half of a line end does not count as a character.
    assert!(!input.is_ready(&mut m));
    output.write(&mut m, b"\n").unwrap();
    assert!(input.is_ready(&mut m));
    assert_eq!(input.read_char(&mut m).unwrap(), Some('\n'));
    assert_eq!(input.place(), (9, 1));
    drop(output);
    assert_eq!(input.read_line(&mut m).unwrap(), None);
}

#[test]
fn a_memory_port_grows_at_most_to_the_limit_of_the_heap() {
    let mut m = mutator();
    let mut output = Output::of_memory();
    let half = vec![b'x'; 1 << 19];
    output.write(&mut m, &half).unwrap();
    output.write(&mut m, &half).unwrap();
    assert_eq!(output.write(&mut m, b"x").unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(output.gathered().map(<[u8]>::len), Some(1 << 20));
}

#[test]
fn the_reader_consumes_no_character_after_the_datum() {
    let mut m = mutator();
    let mut input = Input::of_memory(b"(a b)c \"x\"rest".to_vec());
    let mut read = || {
        let characters = Characters::new(&mut m, &mut input);
        Reader::new(characters, 0).read().unwrap().unwrap().to_string()
    };
    assert_eq!([read(), read(), read()], ["(a b)", "c", "\"x\""]);
    assert_eq!(input.read_string(&mut m, 10).unwrap().as_deref(), Some("rest"));
}

#[test]
fn an_io_error_inside_the_reader_is_reported() {
    let mut m = mutator();
    let mut input = Input::of_memory(b"(a \xff b)".to_vec());
    let characters = Characters::new(&mut m, &mut input);
    let mut reader = Reader::new(characters, 0);
    assert!(reader.read().is_err());
    let error = reader.into_characters().error.unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn ports_report_their_kind() {
    let port = Port::of_input("string", Content::Textual, Input::of_memory(Vec::new()));
    assert_eq!(port.to_string(), "textual-input-port string");
}

#[test]
fn an_interrupted_operation_puts_its_bytes_back() {
    let mut m = mutator();
    let mut input = Input::of_memory(b"one\ntwo three".to_vec());
    assert_eq!(input.read_line(&mut m).unwrap().as_deref(), Some("one"));
    let result = input.attempt(|input| {
        assert_eq!(input.read_string(&mut m, 3)?.as_deref(), Some("two"));
        Err::<(), _>(ErrorKind::Interrupted.into())
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(input.place(), (2, 1));
    assert_eq!(input.read_line(&mut m).unwrap().as_deref(), Some("two three"));
}
