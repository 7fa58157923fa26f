use super::super::{acos, asin, atan, cos, exp, expt, log, sin, sqrt, tan};
use super::super::{add, div, mul, same, store_literal, sub, text_of};
use super::{
    Number, angle, argument, is_complex, magnitude, parts, polar, rectangular, root, store,
};
use crate::equality;
use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator};
use crate::raise::Result;
use crate::value::Value;
use kyocho_syntax::number::parse;
use num_complex::{Complex, Complex64};
use num_rational::BigRational;
use num_traits::Zero;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq, prop_assume};

type Exact = Complex<BigRational>;

fn mutator() -> Mutator {
    let limits = Limits { bytes_max: 64 << 20, ..Limits::default() };
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

fn rationals() -> impl Strategy<Value = BigRational> {
    let wide = (any::<i64>(), any::<i64>());
    let small = (-9i64..10, 1i64..5);
    prop_oneof![small, wide].prop_map(|(n, d)| BigRational::new(n.into(), d.max(1).into()))
}

fn exact_numbers() -> impl Strategy<Value = Exact> {
    (rationals(), rationals()).prop_map(|(real, imaginary)| Complex::new(real, imaginary))
}

/// Numbers in a box, away from the axes.
fn inexact_numbers(bound: f64) -> impl Strategy<Value = Complex64> {
    let part = move || (0.01..bound, any::<bool>()).prop_map(|(x, less)| if less { -x } else { x });
    (part(), part()).prop_map(|(real, imaginary)| Complex64::new(real, imaginary))
}

fn value(m: &mut Mutator, z: &Exact) -> Value {
    let real = Number::Ratio(z.re.clone()).store(m).unwrap();
    let imaginary = Number::Ratio(z.im.clone()).store(m).unwrap();
    rectangular(m, real, imaginary).unwrap()
}

fn back(z: Value) -> Exact {
    let (real, imaginary) = parts(z);
    let ratio = |part| Number::of(part).unwrap().into_ratio().unwrap();
    Complex::new(ratio(real), ratio(imaginary))
}

fn is_near(a: Complex64, b: Complex64) -> bool {
    (a - b).norm() <= 1e-9 * (1.0 + b.norm())
}

type Function = fn(&mut Mutator, Value) -> Result;
type Model = fn(Complex64) -> Complex64;

proptest! {
    #[test]
    fn exact_operations_agree_with_a_field_of_rationals(x in exact_numbers(), y in exact_numbers()) {
        let mut m = mutator();
        let (a, b) = (value(&mut m, &x), value(&mut m, &y));
        prop_assert_eq!(back(add(&mut m, a, b).unwrap()), &x + &y);
        prop_assert_eq!(back(sub(&mut m, a, b).unwrap()), &x - &y);
        prop_assert_eq!(back(mul(&mut m, a, b).unwrap()), &x * &y);
        match div(&mut m, a, b) {
            Ok(quotient) => prop_assert_eq!(back(quotient), &x / &y),
            Err(_) => prop_assert!(y.is_zero()),
        }
        prop_assert_eq!(same(1, a, b).unwrap(), x == y);
        prop_assert_eq!(is_complex(a), !x.im.is_zero());
    }

    #[test]
    fn exact_numbers_are_a_field(
        x in exact_numbers(), y in exact_numbers(), z in exact_numbers()
    ) {
        let mut m = mutator();
        let (a, b, c) = (value(&mut m, &x), value(&mut m, &y), value(&mut m, &z));
        let (ab, bc) = (mul(&mut m, a, b).unwrap(), mul(&mut m, b, c).unwrap());
        let (left, right) = (mul(&mut m, ab, c).unwrap(), mul(&mut m, a, bc).unwrap());
        prop_assert!(equality::eqv(left, right));
        let ba = mul(&mut m, b, a).unwrap();
        prop_assert!(equality::eqv(ab, ba));
        let (sum, ac) = (add(&mut m, b, c).unwrap(), mul(&mut m, a, c).unwrap());
        let (left, right) = (mul(&mut m, a, sum).unwrap(), add(&mut m, ab, ac).unwrap());
        prop_assert!(equality::eqv(left, right));
        prop_assert_eq!(equality::eqv_hash(left), equality::eqv_hash(right));
        prop_assume!(!y.is_zero());
        let again = div(&mut m, ab, b).unwrap();
        prop_assert!(equality::eqv(again, a));
    }

    #[test]
    fn roots_of_exact_squares_are_exact(x in exact_numbers()) {
        let mut m = mutator();
        let a = value(&mut m, &x);
        let square = mul(&mut m, a, a).unwrap();
        let root = back(sqrt(&mut m, square).unwrap());
        prop_assert!(root == x || root == -x.clone());
        prop_assert!(root.re > BigRational::zero() || root.re.is_zero() && root.im >= BigRational::zero());
    }

    #[test]
    fn exact_powers_are_products(x in exact_numbers(), e in 0i64..12) {
        let mut m = mutator();
        let a = value(&mut m, &x);
        let mut product = Value::fixnum(1);
        for _ in 0..e {
            product = mul(&mut m, product, a).unwrap();
        }
        let power = expt(&mut m, a, Value::fixnum(e)).unwrap();
        prop_assert!(equality::eqv(power, product));
        prop_assume!(!x.is_zero());
        let inverse = expt(&mut m, a, Value::fixnum(-e)).unwrap();
        prop_assert!(equality::eqv(mul(&mut m, power, inverse).unwrap(), Value::fixnum(1)));
    }

    #[test]
    fn texts_of_numbers_read_back(x in exact_numbers(), bits in any::<[u64; 2]>(), radix in 2u32..=18) {
        let mut m = mutator();
        let a = value(&mut m, &x);
        let read = store_literal(&mut m, &parse(&text_of(a, radix), radix).unwrap()).unwrap();
        prop_assert!(equality::eqv(read, a));
        let z = store(&mut m, Complex64::new(f64::from_bits(bits[0]), f64::from_bits(bits[1]))).unwrap();
        let text = text_of(z, 10);
        let literal = parse(&text, 10).unwrap();
        prop_assert!(literal.to_string().contains('i'));
        let read = store_literal(&mut m, &literal).unwrap();
        prop_assert!(text.contains("nan") || equality::eqv(read, z), "{}", text);
    }

    #[test]
    fn inexact_operations_agree_with_num_complex(x in inexact_numbers(1e3), y in inexact_numbers(1e3)) {
        let mut m = mutator();
        let (a, b) = (store(&mut m, x).unwrap(), store(&mut m, y).unwrap());
        let of = |z: Result| argument("test", 1, z.unwrap()).unwrap();
        prop_assert!(is_near(of(add(&mut m, a, b)), x + y));
        prop_assert!(is_near(of(sub(&mut m, a, b)), x - y));
        prop_assert!(is_near(of(mul(&mut m, a, b)), x * y));
        prop_assert!(is_near(of(div(&mut m, a, b)), x / y));
        let real = m.flonum(x.re).unwrap();
        prop_assert!(is_near(of(mul(&mut m, real, b)), y * x.re));
        prop_assert!(is_near(of(div(&mut m, real, b)), Complex64::from(x.re) / y));
        prop_assert!(is_near(of(sub(&mut m, real, b)), Complex64::from(x.re) - y));
        let (length, direction) = (magnitude(&mut m, a).unwrap(), angle(&mut m, a).unwrap());
        prop_assert!(is_near(of(polar(&mut m, length, direction)), x));
        prop_assert!(is_near(of(Ok(length)), Complex64::from(x.norm())));
        prop_assert!(is_near(of(Ok(direction)), Complex64::from(x.arg())));
    }

    #[test]
    fn inexact_functions_agree_with_num_complex(z in inexact_numbers(8.0), e in inexact_numbers(2.0)) {
        let mut m = mutator();
        let a = store(&mut m, z).unwrap();
        let functions: [(&str, Function, Model); 9] = [
            ("exp", exp, Complex64::exp), ("log", log, Complex64::ln), ("sqrt", sqrt, Complex64::sqrt),
            ("sin", sin, Complex64::sin), ("cos", cos, Complex64::cos), ("tan", tan, Complex64::tan),
            ("asin", asin, Complex64::asin), ("acos", acos, Complex64::acos),
            ("atan", atan, Complex64::atan),
        ];
        for (name, ours, theirs) in functions {
            let result = argument(name, 1, ours(&mut m, a).unwrap()).unwrap();
            prop_assert!(is_near(result, theirs(z)), "{} {}: {} not {}", name, z, result, theirs(z));
        }
        let exponent = store(&mut m, e).unwrap();
        let power = argument("expt", 1, expt(&mut m, a, exponent).unwrap()).unwrap();
        prop_assert!(is_near(power, z.powc(e)), "{} ^ {}", z, e);
    }
}

#[test]
fn division_neither_overflows_nor_underflows() {
    let mut m = mutator();
    for scale in [1e300, 1e-300] {
        let a = store(&mut m, Complex64::new(1.0 * scale, 2.0 * scale)).unwrap();
        let b = store(&mut m, Complex64::new(3.0 * scale, -4.0 * scale)).unwrap();
        let quotient = argument("/", 1, div(&mut m, a, b).unwrap()).unwrap();
        assert!((quotient - Complex64::new(-0.2, 0.4)).norm() < 1e-15, "{quotient}");
    }
}

#[test]
fn roots_neither_overflow_nor_underflow() {
    for scale in [1.0, 2f64.powi(1020), 2f64.powi(-1072)] {
        let root = root(Complex64::new(-3.0 * scale, -4.0 * scale));
        assert_eq!(root, Complex64::new(1.0 * scale.sqrt(), -2.0 * scale.sqrt()));
    }
    assert!(root(Complex64::new(-1.0, -0.0)).im < 0.0);
    assert_eq!(root(Complex64::new(f64::NEG_INFINITY, 1.0)), Complex64::new(0.0, f64::INFINITY));
}

#[test]
fn a_tangent_far_from_the_axis_is_flat() {
    let mut m = mutator();
    for (z, expected) in [
        (Complex64::new(1.0, 400.0), Complex64::new(0.0, 1.0)),
        (Complex64::new(1.0, -400.0), Complex64::new(0.0, -1.0)),
    ] {
        let a = store(&mut m, z).unwrap();
        assert_eq!(argument("tan", 1, tan(&mut m, a).unwrap()).unwrap(), expected);
    }
}

#[test]
fn parts_beyond_a_flonum_keep_their_angle_and_root() {
    let mut m = mutator();
    let huge = expt(&mut m, Value::fixnum(10), Value::fixnum(400)).unwrap();
    let z = rectangular(&mut m, huge, huge).unwrap();
    let direction = angle(&mut m, z).unwrap().as_flonum().unwrap();
    assert!((direction - core::f64::consts::FRAC_PI_4).abs() < 1e-15);
    let root = argument("sqrt", 1, sqrt(&mut m, z).unwrap()).unwrap();
    assert!((root.re / 1.098_684_113_467_81e200 - 1.0).abs() < 1e-12, "{root:e}");
    assert!((root.im / 4.550_898_605_622_273e199 - 1.0).abs() < 1e-12, "{root:e}");
}
