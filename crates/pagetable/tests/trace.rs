//! Recordings are read back as they were made, and invalid bytes end in an error.

use kyocho_pagetable::PageNumber;
use kyocho_pagetable::trace::{Recorder, Trace, TraceError, page_of_lackey_line};
use proptest::prelude::*;

fn page(number: u64) -> PageNumber {
    PageNumber::new(number).expect("52 bits")
}

proptest! {
    #[test]
    fn a_recording_is_the_touches_without_repeats(
        numbers in proptest::collection::vec(
            prop_oneof![0..3_u64, 0..100_u64, 0..PageNumber::LAST.get() + 1], 0..600),
        alternations in 0..500_usize,
    ) {
        let mut touched: Vec<_> = numbers.into_iter().map(page).collect();
        touched.extend((0..alternations).map(|turn| page(turn as u64 % 2)));
        let mut recorder = Recorder::default();
        touched.iter().for_each(|&page| recorder.touch(page));
        let recording = recorder.finish();
        let trace = Trace::new(&recording).unwrap();
        prop_assert_eq!(trace.references(), touched.len() as u64);
        let read: Vec<_> = trace.map(Result::unwrap).collect();
        touched.dedup();
        prop_assert_eq!(read, touched);
    }

    #[test]
    fn invalid_bytes_end_in_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let whole = [b"kyotrac1".as_slice(), &[0; 8], &bytes].concat();
        let steps = Trace::new(&whole).unwrap().count();
        prop_assert!(steps <= bytes.len() * 193);
    }
}

#[test]
fn errors_name_what_is_wrong_with_a_recording() {
    assert_eq!(Trace::new(b"kyotrac2\0\0\0\0\0\0\0\0").unwrap_err(), TraceError::NotATrace);
    assert_eq!(Trace::new(b"kyo").unwrap_err(), TraceError::NotATrace);
    let read = |bytes: &[u8]| {
        let whole = [b"kyotrac1\0\0\0\0\0\0\0\0", bytes].concat();
        Trace::new(&whole).unwrap().collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(read(&[0, 0x80]), Err(TraceError::Truncated));
    assert_eq!(read(&[5]), Err(TraceError::Malformed(16)));
    assert_eq!(read(&[0, 1]), Err(TraceError::Malformed(16)), "a page before the first one");
    assert_eq!(read(&[0, 2, 0, 2]), Ok(vec![page(1), page(2)]));
}

#[test]
fn lines_of_lackey_are_read_and_other_lines_ignored() {
    let read = |line: &str| page_of_lackey_line(line.as_bytes()).map(PageNumber::get);
    assert_eq!(read("I  04025310,3"), Some(0x4025));
    assert_eq!(read(" L 1ffefffe68,8"), Some(0x1ffefff));
    assert_eq!(read(" S 1ffefffe68,8"), Some(0x1ffefff));
    assert_eq!(read(" M 0421a0f8,4"), Some(0x421a));
    for line in ["", "I", "==12== Lackey", " L ,8", " L xyz,8", " L 1234", " L 11111111111111111,8"]
    {
        assert_eq!(read(line), None, "{line}");
    }
}
