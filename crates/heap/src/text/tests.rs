use super::{Draft, Text, bytes, copy, fold, from_chars, overwrite, set};
use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator};
use crate::value::Value;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};

fn mutator() -> Mutator {
    let limits = Limits { bytes_max: 16 << 20, ..Limits::default() };
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

fn chars() -> impl Strategy<Value = Vec<char>> {
    let some = prop_oneof![
        4 => proptest::char::range('a', 'z'),
        2 => proptest::char::range('\u{80}', '\u{ff}'),
        1 => any::<char>(),
        1 => Just('\u{10ffff}'),
    ];
    let narrow = prop_oneof![proptest::char::range('\0', '\u{ff}')];
    prop_oneof![proptest::collection::vec(some, 0..60), proptest::collection::vec(narrow, 0..60),]
}

fn content(value: Value) -> Vec<char> {
    Text::of(value).unwrap().chars().collect()
}

proptest! {
    #[test]
    fn a_string_contains_its_characters(all in chars()) {
        let mut m = mutator();
        let value = from_chars(&mut m, &all).unwrap();
        let text = Text::of(value).unwrap();
        prop_assert_eq!(content(value), all.clone());
        prop_assert_eq!(text.to_rust(), all.iter().collect::<String>());
        prop_assert_eq!(text.is_wide(), all.iter().any(|&c| c > '\u{ff}'));
        let mut prefixed = String::from("é");
        text.push_to(&mut prefixed, 0..text.length());
        prop_assert_eq!(prefixed, format!("é{}", all.iter().collect::<String>()));
    }

    #[test]
    fn writing_widens_the_string_if_necessary(all in chars(), at in any::<proptest::sample::Index>(), c in any::<char>()) {
        if all.is_empty() {
            return Ok(());
        }
        let mut m = mutator();
        let value = from_chars(&mut m, &all).unwrap();
        let at = at.index(all.len());
        set(&mut m, value, at, c).unwrap();
        let mut expected = all;
        expected[at] = c;
        prop_assert_eq!(content(value), expected);
    }

    #[test]
    fn overlapping_copies_behave_like_a_move(all in chars(), cut in any::<[proptest::sample::Index; 3]>()) {
        if all.is_empty() {
            return Ok(());
        }
        let mut m = mutator();
        let value = from_chars(&mut m, &all).unwrap();
        let (mut start, mut end) = (cut[0].index(all.len()), cut[1].index(all.len()));
        if start > end {
            (start, end) = (end, start);
        }
        let at = cut[2].index(all.len() - (end - start));
        let text = Text::of(value).unwrap();
        overwrite(&mut m, value, at, text, start..end).unwrap();
        let mut expected = all.clone();
        expected.copy_within(start..end, at);
        prop_assert_eq!(content(value), expected);
    }

    #[test]
    fn parts_of_two_strings_join(a in chars(), b in chars()) {
        let mut m = mutator();
        let (x, y) = (from_chars(&mut m, &a).unwrap(), from_chars(&mut m, &b).unwrap());
        let (x, y) = (Text::of(x).unwrap(), Text::of(y).unwrap());
        let half = x.length() / 2;
        let mut draft = Draft::new(&mut m, half + y.length(), x.is_wide() || y.is_wide()).unwrap();
        draft.extend_text(x, x.length() - half..x.length());
        draft.extend_text(y, 0..y.length());
        let mut expected = a[a.len() - half..].to_vec();
        expected.extend(&b);
        let joined = draft.finish();
        prop_assert_eq!(content(joined), expected);
        let again = copy(&mut m, Text::of(joined).unwrap(), 0..half).unwrap();
        prop_assert!(Text::of(again).unwrap().same(Text::of(joined).unwrap()) == b.is_empty());
    }

    #[test]
    fn bytes_move_and_compare_as_slices_do(
        data in proptest::collection::vec(any::<u8>(), 0..200),
        cut in any::<[proptest::sample::Index; 3]>(),
    ) {
        if data.is_empty() {
            return Ok(());
        }
        let m = mutator();
        let value = m.bytevector(&data).unwrap();
        let address = bytes::payload(value) + 8;
        let (mut start, mut end) = (cut[0].index(data.len()), cut[1].index(data.len()));
        if start > end {
            (start, end) = (end, start);
        }
        let at = cut[2].index(data.len() - (end - start));
        let alike = bytes::same(address + start, address + at, end - start);
        prop_assert_eq!(alike, data[start..end] == data[at..at + end - start]);
        let mut part = Vec::new();
        bytes::read(&mut part, address + start, end - start);
        prop_assert_eq!(&part, &data[start..end]);
        bytes::copy(address + start, address + at, end - start);
        let mut expected = data;
        expected.copy_within(start..end, at);
        prop_assert_eq!(value.to_bytes().unwrap(), expected.clone());
        bytes::fill(address + start, end - start, 0xa5);
        expected[start..end].fill(0xa5);
        prop_assert_eq!(value.to_bytes().unwrap(), expected);
    }
}

#[test]
fn case_follows_unicode() {
    assert_eq!(fold::upcase('ä'), 'Ä');
    assert_eq!(fold::upcase('ß'), 'ß');
    assert_eq!(fold::downcase('Σ'), 'σ');
    assert_eq!(fold::foldcase('ς'), 'σ');
    assert_eq!(fold::foldcase('K'), 'k');
    assert_eq!(fold::folded("Straße"), fold::folded("STRASSE"));
    assert_eq!(fold::folded("ΧΑΟΣ"), fold::folded("χαος"));
    assert_eq!(fold::folded("ﬃ"), "ffi");
}
