use super::{divide, gcd, multiply, of_digits, power, root, text};
use crate::Pause;
use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, Pow};
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};

/// The error of a pause that ends an operation.
#[derive(Debug, PartialEq)]
struct Interrupted;

type Result<T> = core::result::Result<T, Interrupted>;

fn never() -> Result<()> {
    Ok(())
}

/// An integer of `bits` bits. `shape` 0: all ones; 1: a power of two; 2: few ones; 3: few zeros;
/// otherwise any bits.
fn integer(bits: u64, shape: u32, seed: u64) -> BigUint {
    let ones = (BigUint::one() << bits) - 1u32;
    let sparse = [seed % (bits + 1), seed / 7 % (bits + 1)].map(|at| BigUint::one() << at);
    match shape {
        0 => ones,
        1 => BigUint::one() << bits.saturating_sub(1),
        2 => sparse.iter().sum(),
        3 => (&ones ^ &sparse[0]) & ones,
        _ => {
            let mut state = seed;
            let digits = (0..bits.div_ceil(32)).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 32) as u32
            });
            BigUint::new(digits.collect()) & ones
        }
    }
}

/// Integers around the lengths where operations are split: 2^16 bits times 2^16 bits are one slice.
fn integers() -> impl Strategy<Value = BigUint> {
    let bits = prop_oneof![0u64..200, 65_400u64..65_700, 0u64..250_000];
    (bits, 0u32..8, any::<u64>()).prop_map(|(bits, shape, seed)| integer(bits, shape, seed))
}

/// Shorter integers, whose greatest common divisors `num-bigint` finds in acceptable time.
fn short_integers() -> impl Strategy<Value = BigUint> {
    let bits = prop_oneof![0u64..200, 400u64..700, 0u64..12_000];
    (bits, 0u32..8, any::<u64>()).prop_map(|(bits, shape, seed)| integer(bits, shape, seed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_equal_those_of_num_bigint(x in integers(), y in integers()) {
        prop_assert!(multiply(&x, &y, &mut never).unwrap() == &x * &y);
        prop_assert!(multiply(&x, &x, &mut never).unwrap() == &x * &x);
    }

    #[test]
    fn quotients_and_remainders_equal_those_of_num_bigint(a in integers(), b in integers(), c in integers()) {
        let b = b + 1u32;
        prop_assert!(divide(&a, &b, &mut never).unwrap() == a.div_rem(&b));
        // Near a multiple of the divisor, an estimated quotient is most likely to be too large.
        let multiple = &b * &c;
        for near in [&multiple - 1u32.min(u32::from(multiple.bits() > 0)), &multiple + (&b - 1u32), multiple] {
            prop_assert!(divide(&near, &b, &mut never).unwrap() == near.div_rem(&b));
        }
    }

    #[test]
    fn greatest_common_divisors_equal_those_of_num_bigint(a in short_integers(), b in short_integers(), c in short_integers()) {
        for (a, b) in [(&a, &b), (&(&a * &c), &(&b * &c)), (&a, &(&a * 2u32 + 1u32)), (&a, &a)] {
            let expected = a.gcd(b);
            prop_assert_eq!(&gcd(a, b, &mut never).unwrap(), &expected);
            prop_assert_eq!(&gcd(b, a, &mut never).unwrap(), &expected);
        }
    }

    #[test]
    fn roots_are_the_largest_not_above(n in integers(), s in integers()) {
        let square = &s * &s;
        let below = if square.bits() > 0 { &square - 1u32 } else { square.clone() };
        let largest = &square + (&s << 1);
        for n in [n, below, square, largest] {
            let (root, rest) = root(&n, &mut never).unwrap();
            prop_assert!(&root * &root + &rest == n);
            prop_assert!(rest <= root << 1);
        }
    }

    #[test]
    fn powers_equal_those_of_num_bigint(base in any::<u64>(), twos in 0u32..70, exponent in 0u64..2_000) {
        let base = BigUint::from(base >> (twos % 64)) << twos;
        prop_assert!(power(&base, exponent, &mut never).unwrap() == Pow::pow(&base, exponent));
    }

    #[test]
    fn digits_equal_those_of_num_bigint(n in integers(), radix in 2u32..=36, count in 0u32..6_000) {
        let border = BigUint::from(radix).pow(count);
        for n in [&border - 1u32, border, n] {
            let digits = text(&n, radix, &mut never).unwrap();
            prop_assert!(digits == n.to_str_radix(radix));
            prop_assert!(of_digits(&digits, radix, &mut never).unwrap() == n);
            let padded = format!("000{digits}");
            prop_assert!(of_digits(&padded, radix, &mut never).unwrap() == n);
        }
    }
}

#[test]
fn an_estimate_of_a_quotient_may_be_too_large_by_two() {
    let ones = |bits: u64| (BigUint::one() << bits) - 1u32;
    // All bits below the divisor's highest one are in its lower half, which the estimate ignores.
    let b = (BigUint::one() << 131_071) + ones(65_536);
    for bits in 131_000..131_080 {
        let rest = &b - 1u32;
        let a = &b * ones(bits) + &rest;
        assert!(divide(&a, &b, &mut never).unwrap() == (ones(bits), rest), "{bits}");
    }
}

#[test]
fn fibonacci_numbers_have_a_greatest_common_divisor() {
    let (mut a, mut b) = (BigUint::ZERO, BigUint::one());
    for _ in 0..20_000 {
        (a, b) = (&a + &b, a);
    }
    assert!(gcd(&a, &b, &mut never).unwrap().is_one());
    let factor = integer(5_000, 7, 1);
    assert!(gcd(&(a * &factor), &(b * &factor), &mut never).unwrap() == factor);
}

/// Each operation on very large integers; the results are not checked.
#[expect(clippy::type_complexity, reason = "it is read once")]
const OPERATIONS: [(&str, fn(Pause<'_, Interrupted>) -> Result<()>); 8] = [
    ("long product", |pause| {
        multiply(&integer(900_000, 7, 1), &integer(90_000, 7, 2), pause).map(drop)
    }),
    ("product", |pause| multiply(&giant(1), &giant(2), pause).map(drop)),
    ("quotient", |pause| divide(&giant(1), &integer(100_000, 7, 3), pause).map(drop)),
    ("divisor", |pause| gcd(&giant(1), &giant(2), pause).map(drop)),
    ("root", |pause| root(&giant(1), pause).map(drop)),
    ("power", |pause| power(&integer(300, 7, 1), 1_000, pause).map(drop)),
    ("text", |pause| text(&giant(1), 10, pause).map(drop)),
    ("digits", |pause| of_digits(&"7".repeat(60_000), 10, pause).map(drop)),
];

fn giant(seed: u64) -> BigUint {
    integer(200_000, 7, seed)
}

/// Runs an operation and lets pause number `failing` fail. Returns its result and the number of
/// pauses.
fn run(operation: fn(Pause<'_, Interrupted>) -> Result<()>, failing: usize) -> (Result<()>, usize) {
    let mut pauses = 0;
    let result = operation(&mut || {
        pauses += 1;
        if pauses == failing { Err(Interrupted) } else { Ok(()) }
    });
    (result, pauses)
}

#[test]
fn an_operation_ends_at_the_pause_that_fails() {
    for (name, operation) in OPERATIONS {
        let (result, count) = run(operation, usize::MAX);
        assert!(result.is_ok() && count >= 5, "{name}: {count} pauses");
        for failing in 1..=count {
            let (result, pauses) = run(operation, failing);
            assert_eq!(
                (result, pauses),
                (Err(Interrupted), failing),
                "{name}: {failing} of {count}"
            );
        }
    }
}
