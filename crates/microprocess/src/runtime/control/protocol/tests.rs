//! Requests as lines, valid and hostile.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::{ENTRIES_MAX, REQUEST_BYTES_MAX, Request, from_line, to_line};

fn requests() -> impl Strategy<Value = Request> {
    prop_oneof![
        (0..=ENTRIES_MAX).prop_map(|entries_max| Request::Snapshot { entries_max }),
        Just(Request::Metrics {}),
        any::<u64>().prop_map(|id| Request::Kill { id }),
        any::<u64>().prop_map(|id| Request::Suspend { id }),
        any::<u64>().prop_map(|id| Request::Resume { id }),
        (any::<u64>(), 0..64_u8).prop_map(|(id, level)| Request::Priority { id, level }),
        Just(Request::TraceStart {}),
        Just(Request::TraceStop {}),
    ]
}

proptest! {
    #[test]
    fn a_request_survives_the_journey(request in requests()) {
        let line = to_line(&request).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(from_line(line.as_bytes()).unwrap(), request);
    }

    #[test]
    fn any_bytes_are_a_request_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..6000)) {
        let _either = from_line(&bytes);
    }

    #[test]
    fn a_damaged_request_is_an_error_or_another_request(
        request in requests(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut line = to_line(&request).unwrap().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        let _either = from_line(&line);
    }
}

#[test]
fn invalid_requests_are_answered_with_the_reason() {
    let why = |line: &str| from_line(line.as_bytes()).unwrap_err().to_string();
    assert!(why("").contains("EOF"));
    assert!(why(r#"{"version":2,"do":"metrics"}"#).contains("version 2"));
    assert!(why(r#"{"version":1,"do":"explode"}"#).contains("explode"));
    assert!(why(r#"{"version":1,"do":"kill"}"#).contains("id"));
    assert!(why(r#"{"version":1,"do":"kill","id":-1}"#).contains("-1"));
    assert!(why(r#"{"version":1,"do":"priority","id":1,"level":64}"#).contains("0 to 63"));
    assert!(why(r#"{"version":1,"do":"snapshot","entries_max":100001}"#).contains("100000"));
    assert!(why(&" ".repeat(REQUEST_BYTES_MAX + 1)).contains("longer"));
    assert!(why(&"[".repeat(REQUEST_BYTES_MAX)).contains("not a request"));
}
