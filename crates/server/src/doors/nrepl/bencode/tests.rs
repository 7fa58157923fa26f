use super::{Bencode, Decoder, MESSAGE_BYTES_MAX, Message};
use kyocho_lisp::account::{Account, Bounds};
use std::collections::BTreeMap;

fn stranger() -> Decoder {
    Decoder::unidentified(MESSAGE_BYTES_MAX)
}

fn sample() -> Bencode {
    Bencode::dictionary([
        ("op", "eval".into()),
        ("empty", Bencode::Dictionary(BTreeMap::new())),
        ("list", Bencode::List(vec![Bencode::Integer(-5), Bencode::Bytes(vec![0, 255])])),
        ("odd", Bencode::Bytes(vec![0xff])),
    ])
}

fn texts(message: Message) -> BTreeMap<&'static str, String> {
    message.texts(&["op", "empty", "list", "odd", "none"]).unwrap().0
}

#[test]
fn written_values_are_read_from_pieces_of_any_size() {
    let mut bytes = Vec::new();
    sample().write(&mut bytes);
    let one = b"d5:emptyde4:listli-5e2:\x00\xffe3:odd1:\xff2:op4:evale";
    assert_eq!(bytes, one);
    sample().write(&mut bytes);
    for size in 1..=bytes.len() {
        let mut decoder = stranger();
        let mut messages = Vec::new();
        for part in bytes.chunks(size) {
            decoder.feed(part).unwrap();
            messages.extend(core::iter::from_fn(|| decoder.next().unwrap()));
        }
        let whole: Vec<_> = messages.iter().map(|message| &message.bytes[..]).collect();
        assert_eq!(whole, [&one[..], &one[..]], "cut at every {size}");
        for message in messages {
            assert_eq!(texts(message), BTreeMap::from([("op", "eval".to_owned())]));
        }
    }
}

#[test]
fn invalid_messages_are_refused() {
    let deep = "l".repeat(1000);
    let deep = format!("d1:a{deep}");
    let long = format!("d{}:", MESSAGE_BYTES_MAX + 1);
    for text in [
        "x",
        "e",
        "l",
        "i5e",
        "4:eval",
        "0:",
        "die",
        "di1x2e",
        "d-1:",
        "d1x:",
        &deep,
        &long,
        "POST / HTTP/1.1",
    ] {
        let mut decoder = stranger();
        decoder.feed(text.as_bytes()).unwrap();
        decoder.next().expect_err(text);
    }
    // A stream that begins with an empty dictionary (`de`) is refused after it.
    let mut decoder = stranger();
    decoder.feed(b"delete / HTTP/1.1").unwrap();
    assert_eq!(texts(decoder.next().unwrap().unwrap()), BTreeMap::new());
    decoder.next().unwrap_err();
    for text in ["di1e1:ae", "d1:ae", "d1:ali1ed1:bee", "d1:ai1e1:be"] {
        let mut decoder = stranger();
        decoder.feed(text.as_bytes()).unwrap();
        let message = decoder.next().unwrap();
        assert!(message.is_none_or(|message| message.texts(&["a"]).is_err()), "{text}");
    }
}

#[test]
fn an_endless_message_is_refused() {
    let mut decoder = stranger();
    decoder.feed(b"d1:al").unwrap();
    let refused = (0..3000).any(|_| {
        decoder.feed(&b"1:a".repeat(1000)).unwrap();
        decoder.next().is_err()
    });
    assert!(refused);
    let mut decoder = Decoder::unidentified(64);
    decoder.feed(&b"d1:a100:".repeat(10)).unwrap();
    decoder.next().unwrap_err();
}

#[test]
fn waiting_bytes_are_charged_once() {
    const BYTES: usize = 1 << 20;
    let account = Account::new("eva", Bounds { memory_bytes_max: 4 * BYTES, ..Bounds::NONE });
    let reserved = |bytes| account.reserve(bytes).is_ok();
    let mut decoder = stranger();
    decoder.charge(&account).unwrap();
    let many = format!("d4:listl{}e2:op4:evale", "0:".repeat(BYTES / 4));
    decoder.feed(many.as_bytes()).unwrap();
    assert!(!reserved(BYTES - many.len() + 1) && reserved(BYTES - many.len()));
    let message = decoder.next().unwrap().unwrap();
    assert!(!reserved(BYTES - many.len() + 1) && reserved(BYTES - many.len()));
    let (texts, held) = message.texts(&["op", "list"]).unwrap();
    assert_eq!(texts, BTreeMap::from([("op", "eval".to_owned())]));
    assert!(!reserved(BYTES - many.len() + 1), "until it is served");
    decoder.feed(many.as_bytes()).expect_err("it is too much");
    drop(held);
    assert!(reserved(BYTES));
    decoder.feed(b"d").unwrap();
}
