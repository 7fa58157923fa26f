use super::{equal, equal_hash, eqv, eqv_hash};
use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator};
use crate::number::Number;
use crate::text;
use crate::value::Value;
use num_bigint::BigInt;
use num_rational::BigRational;

fn mutator() -> Mutator {
    let limits = Limits { bytes_max: 256 << 20, ..Limits::default() };
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

/// A circular list of `length` numbers.
fn ring(m: &mut Mutator, length: i64) -> Value {
    let numbers: Vec<Value> = (0..length).map(|i| Value::fixnum(i % 3)).collect();
    let list = m.list(&numbers).unwrap();
    let mut last = list;
    while let Some(next) = last.cdr().filter(|next| next.is_pair()) {
        last = next;
    }
    assert!(last.set_cdr(list));
    list
}

#[test]
fn numbers_are_eqv_by_exactness_and_value() {
    let mut m = mutator();
    let big: BigInt = BigInt::from(7) << 100u32;
    let a = Number::Big(big.clone()).store(&mut m).unwrap();
    let b = Number::Big(big.clone()).store(&mut m).unwrap();
    let negative = Number::Big(-big.clone()).store(&mut m).unwrap();
    assert_ne!(a, b);
    assert!(eqv(a, b) && equal(a, b));
    assert_eq!(eqv_hash(a), eqv_hash(b));
    assert!(!eqv(a, negative));
    let third = BigRational::new(big, 3.into());
    let x = Number::Ratio(third.clone()).store(&mut m).unwrap();
    let y = Number::Ratio(third).store(&mut m).unwrap();
    assert!(eqv(x, y));
    assert_eq!(equal_hash(x), equal_hash(y));
    let (zero, minus_zero) = (m.flonum(0.0).unwrap(), m.flonum(-0.0).unwrap());
    let (one, nan) = (m.flonum(1.0).unwrap(), m.flonum(f64::NAN).unwrap());
    let nan_again = m.flonum(f64::NAN).unwrap();
    assert!(!eqv(zero, minus_zero));
    assert!(eqv(nan, nan_again));
    assert!(!eqv(one, Value::fixnum(1)));
}

#[test]
fn structures_are_equal_by_content() {
    let mut m = mutator();
    let build = |m: &mut Mutator, last: &str| {
        let string = m.string(last).unwrap();
        let bytes = m.bytevector(&[1, 2, 3]).unwrap();
        let vector = m.vector_of(&[string, bytes, Value::TRUE]).unwrap();
        m.list(&[Value::fixnum(1), vector, Value::NIL]).unwrap()
    };
    let (a, b, c) = (build(&mut m, "same"), build(&mut m, "same"), build(&mut m, "sama"));
    assert!(equal(a, b));
    assert!(!equal(a, c) && !eqv(a, b));
    assert_eq!(equal_hash(a), equal_hash(b));
    assert_ne!(equal_hash(a), equal_hash(c));
}

#[test]
fn a_wide_string_equals_a_narrow_one_of_the_same_characters() {
    let mut m = mutator();
    for plain in ["", "a", "sixteen letters.", "not a multiple of eight", &"long ".repeat(30)] {
        let narrow = m.string(plain).unwrap();
        let wide = m.string(&format!("{plain}日")).unwrap();
        let length = plain.len();
        let text = text::Text::of(wide).unwrap();
        let wide = text::copy(&mut m, text, 0..length).unwrap();
        assert!(text::Text::of(wide).unwrap().is_wide());
        assert!(equal(narrow, wide));
        assert_eq!(equal_hash(narrow), equal_hash(wide));
    }
}

/// 60-bit hashes of a few hundred keys: no two collide by chance.
#[test]
fn long_keys_that_differ_in_little_have_different_hashes() {
    let m = mutator();
    let mut hashes = Vec::new();
    let plain = "x".repeat(200);
    for i in 0..200 {
        for c in ["y", "\u{178}", "\u{10078}"] {
            // The second and the third replacement have the same low byte as the original.
            let text = format!("{}{c}{}", &plain[..i], &plain[i + 1..]);
            hashes.push(equal_hash(m.string(&text).unwrap()));
        }
        let mut bytes = [7; 2000];
        bytes[10 * i] = 8;
        hashes.push(equal_hash(m.bytevector(&bytes).unwrap()));
        let digits = BigInt::from(1) << (64 * i + 64);
        hashes.push(equal_hash(m.integer(&digits).unwrap()));
    }
    // The top bit of one word and its image in the next would cancel out if words were only
    // multiplied and rotated.
    for words in [[0_u64, 0], [1 << 63, 1 << 22]] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        hashes.push(equal_hash(m.bytevector(&bytes).unwrap()));
        let latin: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        hashes.push(equal_hash(m.string(&latin).unwrap()));
    }
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

#[test]
fn a_buffers_bytes_beyond_its_string_do_not_count() {
    let m = mutator();
    let short = m.string("abc").unwrap();
    let buffer = m.string("abcdef").unwrap().string_buffer().unwrap();
    let over = m.string_over(3, buffer).unwrap();
    assert!(equal(short, over));
    assert_eq!(equal_hash(short), equal_hash(over));
}

#[test]
fn deep_data_needs_no_deep_stack() {
    let m = mutator();
    let mut nested = [Value::NIL, Value::NIL];
    for _ in 0..1_000_000 {
        for value in &mut nested {
            *value = m.cons(*value, Value::TRUE).unwrap();
        }
    }
    assert!(equal(nested[0], nested[1]));
    let other = m.cons(nested[0], Value::FALSE).unwrap();
    let same = m.cons(nested[1], Value::TRUE).unwrap();
    assert!(!equal(other, same));
}

#[test]
fn comparing_cycles_ends() {
    let mut m = mutator();
    // Both unroll to 0 1 2 0 1 2 ..., so they are equal.
    let (three, long) = (ring(&mut m, 3), ring(&mut m, 3000));
    assert!(equal(three, long));
    assert!(!equal(three, ring(&mut m, 4)));
    assert_eq!(equal_hash(long), equal_hash(three));
    let vector = m.vector(2, Value::NIL).unwrap();
    let other = m.vector(2, Value::NIL).unwrap();
    assert!(vector.vector_set(0, vector) && vector.vector_set(1, other));
    assert!(other.vector_set(0, other) && other.vector_set(1, vector));
    assert!(equal(vector, other));
}
