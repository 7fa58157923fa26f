use super::{Division, Number, compare, convert, denominator, gcd, lcm, numerator, to_text};
use super::{Rounding, add, div, exact, expt, inexact, mul, rounded, sqrt, sub};
use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator};
use crate::raise::Cause;
use crate::value::Value;
use core::cmp::Ordering;
use kyocho_syntax::number::parse;
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};

fn mutator() -> Mutator {
    let limits = Limits { bytes_max: 64 << 20, ..Limits::default() };
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

fn number(m: &mut Mutator, text: &str) -> Value {
    super::store_literal(m, &parse(text, 10).unwrap()).unwrap()
}

fn text(value: Value) -> String {
    to_text(&Number::of(value).unwrap(), 10)
}

/// Integers around every boundary: small, fixnum, machine word, beyond.
fn integers() -> impl Strategy<Value = BigInt> {
    let borders = prop_oneof![
        Just(BigInt::from(0)),
        Just(BigInt::from(Value::FIXNUM_MAX)),
        Just(BigInt::from(Value::FIXNUM_MIN)),
        Just(BigInt::from(i64::MAX)),
        Just(BigInt::from(i64::MIN)),
        Just(BigInt::from(1) << 64),
    ];
    let near = (borders, -3i64..4).prop_map(|(border, offset)| border + offset);
    let long = proptest::collection::vec(any::<u32>(), 1..8).prop_flat_map(|digits| {
        any::<bool>().prop_map(move |negative| {
            let n = BigInt::from(num_bigint::BigUint::new(digits.clone()));
            if negative { -n } else { n }
        })
    });
    prop_oneof![
        any::<i64>().prop_map(BigInt::from),
        (-100i64..100).prop_map(BigInt::from),
        near,
        long
    ]
}

fn rationals() -> impl Strategy<Value = BigRational> {
    (integers(), integers()).prop_map(|(n, d)| {
        if d.is_zero() { BigRational::from_integer(n) } else { BigRational::new(n, d) }
    })
}

fn store(m: &mut Mutator, r: &BigRational) -> Value {
    Number::Ratio(r.clone()).store(m).unwrap()
}

fn back(value: Value) -> BigRational {
    Number::of(value).unwrap().into_ratio().unwrap()
}

proptest! {
    #[test]
    fn the_four_operations_agree_with_rationals(x in rationals(), y in rationals()) {
        let mut m = mutator();
        let (a, b) = (store(&mut m, &x), store(&mut m, &y));
        prop_assert_eq!(back(add(&mut m, a, b).unwrap()), &x + &y);
        prop_assert_eq!(back(sub(&mut m, a, b).unwrap()), &x - &y);
        prop_assert_eq!(back(mul(&mut m, a, b).unwrap()), &x * &y);
        if y.is_zero() {
            let raise = div(&mut m, a, b).unwrap_err();
            let by_zero = matches!(raise.cause(), Cause::DivideByZero { who: "/" });
            prop_assert!(by_zero);
        } else {
            prop_assert_eq!(back(div(&mut m, a, b).unwrap()), &x / &y);
        }
        prop_assert_eq!(compare("<", 1, a, b).unwrap(), Some(x.cmp(&y)));
    }

    #[test]
    fn stored_numbers_are_canonical(x in rationals()) {
        let mut m = mutator();
        let value = store(&mut m, &x);
        let fits = x.is_integer()
            && x.numer().to_i64().is_some_and(|n| (Value::FIXNUM_MIN..=Value::FIXNUM_MAX).contains(&n));
        prop_assert_eq!(value.is_fixnum(), fits);
        prop_assert_eq!(back(numerator(&mut m, value).unwrap()), BigRational::from(x.numer().clone()));
        prop_assert_eq!(back(denominator(&mut m, value).unwrap()), BigRational::from(x.denom().clone()));
    }

    #[test]
    fn integer_division_agrees_with_big_integers(x in integers(), y in integers()) {
        let mut m = mutator();
        let a = Number::Big(x.clone()).store(&mut m).unwrap();
        let b = Number::Big(y.clone()).store(&mut m).unwrap();
        let mut of = |division: Division| division.apply(&mut m, "test", a, b).map(back).ok();
        let big = |n: BigInt| Some(BigRational::from_integer(n));
        if y.is_zero() {
            prop_assert_eq!(of(Division::TruncateQuotient), None);
        } else {
            prop_assert_eq!(of(Division::TruncateQuotient), big(&x / &y));
            prop_assert_eq!(of(Division::TruncateRemainder), big(&x % &y));
            prop_assert_eq!(of(Division::FloorQuotient), big(x.div_floor(&y)));
            prop_assert_eq!(of(Division::FloorRemainder), big(x.mod_floor(&y)));
        }
        prop_assert_eq!(back(gcd(&mut m, 1, a, b).unwrap()), BigRational::from(x.gcd(&y)));
        prop_assert_eq!(back(lcm(&mut m, 1, a, b).unwrap()), BigRational::from(x.lcm(&y)));
    }

    #[test]
    fn flonums_read_back_and_are_exact_fractions(bits in any::<u64>()) {
        let x = f64::from_bits(bits);
        let mut m = mutator();
        let value = m.flonum(x).unwrap();
        let read = number(&mut m, &text(value)).as_flonum().unwrap();
        prop_assert!(read.to_bits() == bits || x.is_nan() && read.is_nan());
        if x.is_finite() {
            let fraction = exact(&mut m, value).unwrap();
            prop_assert_eq!(back(fraction), BigRational::from_float(x).unwrap());
            let again = inexact(&mut m, fraction).unwrap().as_flonum().unwrap();
            prop_assert_eq!(again, x);
            prop_assert_eq!(compare("=", 1, fraction, value).unwrap(), Some(Ordering::Equal));
        }
    }

    #[test]
    fn a_ratio_becomes_the_nearest_flonum(x in rationals(), scale in 0u32..2400) {
        // Down through the subnormals, and up past infinity.
        let power = BigRational::from_integer(BigInt::from(1) << scale);
        for x in [&x / &power, &x * &power] {
            let near = convert::ratio_to_real(&x);
            if near.is_infinite() {
                prop_assert!(x.to_integer().bits() >= 1024);
                continue;
            }
            let distance = |y: f64| {
                BigRational::from_float(y).map(|y| if y > x { y - &x } else { &x - y })
            };
            let here = distance(near).unwrap();
            for neighbour in [near.next_up(), near.next_down()] {
                if let Some(there) = distance(neighbour) {
                    prop_assert!(here <= there, "{near:e} is farther than {neighbour:e} from {x}");
                    let is_even = near.to_bits() & 1 == 0;
                    prop_assert!(here < there || is_even, "a tie goes to the even one");
                }
            }
        }
    }

    #[test]
    fn rounding_agrees_with_rationals(x in rationals()) {
        let mut m = mutator();
        let value = store(&mut m, &x);
        let mut of = |rounding| back(rounded(&mut m, rounding, value).unwrap());
        prop_assert_eq!(of(Rounding::Floor), x.floor());
        prop_assert_eq!(of(Rounding::Ceiling), x.ceil());
        prop_assert_eq!(of(Rounding::Truncate), x.trunc());
        let round = of(Rounding::Round);
        let half = BigRational::new(1.into(), 2.into());
        let distance = if round > x { &round - &x } else { &x - &round };
        prop_assert!(distance < half || distance == half && round.to_integer().is_even());
    }

    #[test]
    fn exact_powers_and_roots_agree_with_products(x in rationals(), e in 0i64..20) {
        let mut m = mutator();
        let base = store(&mut m, &x);
        let power = expt(&mut m, base, Value::fixnum(e)).unwrap();
        let mut expected = BigRational::from_integer(1.into());
        for _ in 0..e {
            expected *= &x;
        }
        prop_assert_eq!(back(power), expected.clone());
        if !x.is_zero() {
            let inverse = expt(&mut m, base, Value::fixnum(-e)).unwrap();
            prop_assert_eq!(back(inverse), expected.recip());
        }
        let square = mul(&mut m, base, base).unwrap();
        let root = back(sqrt(&mut m, square).unwrap());
        prop_assert!(root == x || root == -x);
    }

    #[test]
    fn text_in_any_radix_reads_back(x in integers(), radix in 2u32..=36) {
        let text = to_text(&Number::Big(x.clone()), radix);
        prop_assert_eq!(BigInt::parse_bytes(text.as_bytes(), radix), Some(x));
    }
}

#[test]
fn flonums_are_printed_in_the_shortest_form() {
    for (x, expected) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (100.0, "100.0"),
        (123_456.789, "123456.789"),
        (1e20, "100000000000000000000.0"),
        (1e21, "1e21"),
        (1.5e300, "1.5e300"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (f64::INFINITY, "+inf.0"),
        (f64::NEG_INFINITY, "-inf.0"),
        (f64::NAN, "+nan.0"),
    ] {
        assert_eq!(to_text(&Number::Real(x), 10), expected);
    }
    assert_eq!(to_text(&Number::Real(-10.625), 2), "-1010.101");
    assert_eq!(to_text(&Number::Real(255.0), 16), "ff.0");
}

#[test]
fn comparison_of_exact_and_inexact_is_exact() {
    let mut m = mutator();
    // 2^53 + 1 is not a flonum, and must not equal its neighbour.
    let odd = number(&mut m, "9007199254740993");
    let near = number(&mut m, "9007199254740992.0");
    assert_eq!(compare("<", 1, odd, near).unwrap(), Some(Ordering::Greater));
    assert_eq!(compare("<", 1, near, odd).unwrap(), Some(Ordering::Less));
    let third = number(&mut m, "1/3");
    let rounded = number(&mut m, "0.3333333333333333");
    assert_eq!(compare("=", 1, third, rounded).unwrap(), Some(Ordering::Greater));
    let infinite = number(&mut m, "+inf.0");
    let huge = number(&mut m, "1000000000000000000000000000000");
    assert_eq!(compare("<", 1, huge, infinite).unwrap(), Some(Ordering::Less));
    let nan = number(&mut m, "+nan.0");
    assert_eq!(compare("<", 1, nan, huge).unwrap(), None);
}

#[test]
fn ties_among_subnormals_go_to_the_even_one() {
    let halves = |n: i64| BigRational::new(n.into(), BigInt::from(1) << 1075u32);
    for (n, units) in [(0, 0), (1, 0), (2, 1), (3, 2), (5, 2), (7, 4), (9, 4)] {
        assert_eq!(convert::ratio_to_real(&halves(n)).to_bits(), units, "{n} * 2^-1075");
    }
    assert_eq!(convert::ratio_to_real(&-halves(3)), -f64::from_bits(2));
}

#[test]
fn roots_and_logarithms_beyond_a_flonum() {
    let mut m = mutator();
    let ten = Value::fixnum(10);
    let huge = expt(&mut m, ten, Value::fixnum(400)).unwrap();
    assert_eq!(text(sqrt(&mut m, huge).unwrap()).len(), 201);
    let odd = expt(&mut m, ten, Value::fixnum(401)).unwrap();
    let root = sqrt(&mut m, odd).unwrap().as_flonum().unwrap();
    assert!((root / 3.162_277_660_168_379_5e200 - 1.0).abs() < 1e-15);
    let logarithm = super::log(&mut m, huge).unwrap().as_flonum().unwrap();
    assert!((logarithm / 921.034_037_197_618_3 - 1.0).abs() < 1e-14);
    let quarter = number(&mut m, "1/4");
    assert_eq!(text(sqrt(&mut m, quarter).unwrap()), "1/2");
    let half = number(&mut m, "1/2");
    assert_eq!(text(expt(&mut m, Value::fixnum(9), half).unwrap()), "3");
}

#[test]
fn an_integer_too_long_is_refused_before_it_is_made() {
    let mut m = mutator();
    let huge = Value::fixnum(1 << 40);
    assert!(expt(&mut m, Value::fixnum(3), huge).is_err());
    assert_eq!(expt(&mut m, Value::fixnum(1), huge).unwrap(), Value::fixnum(1));
    assert_eq!(expt(&mut m, Value::fixnum(-1), huge).unwrap(), Value::fixnum(1));
    // Squaring until the result is too long would take 16 MiB or more. The norm predicts the
    // length.
    let before = m.taken_cells();
    for base in ["3+4i", "1/2+i", "1/3-5/7i"] {
        let base = number(&mut m, base);
        assert!(expt(&mut m, base, huge).is_err());
        assert!(expt(&mut m, base, Value::fixnum(-(1 << 40))).is_err());
    }
    assert!(m.taken_cells() - before < 10_000, "{} cells", m.taken_cells() - before);
}

/// Integers that are processed in slices: two of them have more than 2^20 limb products.
fn giants() -> impl Strategy<Value = BigInt> {
    (66_000u64..140_000, any::<u64>(), -2i64..3, any::<bool>()).prop_map(
        |(bits, seed, add, minus)| {
            // The middle bits of a power are practically random.
            let n =
                (BigInt::from(seed | 1).pow(3) << (bits - 64)) + BigInt::from(3).pow(35_000) + add;
            if minus { -n } else { n }
        },
    )
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]

    #[test]
    fn division_of_giants_keeps_the_signs(x in giants(), y in giants(), factor in giants()) {
        let mut m = mutator();
        for x in [&x, &(&x * &factor), &(&y * &factor), &y] {
            let results = [
                (Division::TruncateQuotient, x / &y),
                (Division::TruncateRemainder, x % &y),
                (Division::FloorQuotient, x.div_floor(&y)),
                (Division::FloorRemainder, x.mod_floor(&y)),
            ];
            let (a, b) = (Number::Big(x.clone()).store(&mut m).unwrap(), Number::Big(y.clone()).store(&mut m).unwrap());
            for (division, expected) in results {
                let result = division.apply(&mut m, "test", a, b).unwrap();
                prop_assert!(back(result) == BigRational::from_integer(expected), "{division:?}");
            }
        }
    }

    #[test]
    fn products_of_giants_keep_the_signs(x in giants(), y in giants()) {
        let mut m = mutator();
        let (a, b) = (Number::Big(x.clone()).store(&mut m).unwrap(), Number::Big(y.clone()).store(&mut m).unwrap());
        prop_assert!(back(mul(&mut m, a, b).unwrap()).to_integer() == x * y);
    }

    #[test]
    fn long_ratios_agree_with_rationals(parts in proptest::array::uniform6(long()), same in any::<bool>()) {
        let mut m = mutator();
        let [a, mut b, c, d, e, f] = parts;
        if same {
            b = e.clone();
        }
        // A common factor in both directions.
        let (x, y) = (BigRational::new(&a * &e, &b * &f), BigRational::new(&c * &f, &d * &e));
        let (v, w) = (store(&mut m, &x), store(&mut m, &y));
        for (operation, expected) in [(add as Operation, &x + &y), (sub, &x - &y), (mul, &x * &y), (div, &x / &y)] {
            let result = back(operation(&mut m, v, w).unwrap());
            prop_assert!(result.numer() == expected.numer() && result.denom() == expected.denom());
        }
        prop_assert_eq!(back(sub(&mut m, v, v).unwrap()), BigRational::zero());
        prop_assert_eq!(compare("<", 1, v, w).unwrap(), Some(x.cmp(&y)));
        prop_assert_eq!(compare("<", 1, v, v).unwrap(), Some(Ordering::Equal));
        for (rounding, expected) in [
            (Rounding::Floor, x.floor()),
            (Rounding::Ceiling, x.ceil()),
            (Rounding::Truncate, x.trunc()),
        ] {
            prop_assert_eq!(back(rounded(&mut m, rounding, v).unwrap()), expected);
        }
    }

    #[test]
    fn powers_of_ratios_keep_the_signs(n in -40i64..40, d in 1i64..40, exponent in -300i64..300) {
        let mut m = mutator();
        let x = BigRational::new(n.into(), d.into());
        let base = store(&mut m, &x);
        let power = expt(&mut m, base, Value::fixnum(exponent));
        if n != 0 || exponent >= 0 {
            prop_assert_eq!(back(power.unwrap()), x.pow(exponent as i32));
        }
    }
}

type Operation = fn(&mut Mutator, Value, Value) -> crate::raise::Result;

/// Non-zero integers, a few of which make a long ratio.
fn long() -> impl Strategy<Value = BigInt> {
    (proptest::collection::vec(any::<u32>(), 1..60), any::<bool>()).prop_map(|(digits, minus)| {
        let n: BigInt = BigInt::from(num_bigint::BigUint::new(digits)) + 1;
        if minus { -n } else { n }
    })
}
