use super::{explain, parse};

/// The number that `text` denotes in radix 10, written; "-" if it denotes none.
fn shown(text: &str) -> String {
    parse(text, 10).map_or_else(|| "-".to_owned(), |number| number.to_string())
}

#[test]
fn integers_in_every_radix() {
    for (text, expected) in [
        ("0", "0"),
        ("+7", "7"),
        ("-12", "-12"),
        ("#xFf", "255"),
        ("#b-101", "-5"),
        ("#o17", "15"),
        ("#d10", "10"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854775808"),
        ("#x-8000000000000000", "-9223372036854775808"),
        ("#e#x10", "16"),
        ("#X#E10", "16"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
    assert_eq!(parse("ff", 16).unwrap().to_string(), "255");
    assert_eq!(parse("#d10", 16).unwrap().to_string(), "10");
}

#[test]
fn ratios_are_reduced() {
    for (text, expected) in [
        ("1/2", "1/2"),
        ("-6/4", "-3/2"),
        ("4/2", "2"),
        ("#x10/20", "1/2"),
        ("#i1/4", "0.25"),
        ("1/0", "-"),
        ("/2", "-"),
        ("1/", "-"),
        ("1/-2", "-"),
        ("1/2/3", "-"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn decimals_with_exponents() {
    for (text, expected) in [
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("-.5e1", "-5.0"),
        ("1.", "1.0"),
        ("1e3", "1000.0"),
        ("1E-3", "0.001"),
        ("+1.e2", "100.0"),
        ("1e400", "+inf.0"),
        ("#e1.5", "3/2"),
        ("#e1.25e2", "125"),
        ("#e-1e-2", "-1/100"),
        ("#i5", "5.0"),
        ("#i-0", "-0.0"),
        ("#i#x-10", "-16.0"),
        ("#e1e999999999", "-"),
        ("1e", "-"),
        ("1e+", "-"),
        (".", "-"),
        ("e1", "-"),
        ("1.2.3", "-"),
        ("#x1.5", "-"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn infinities_and_nan() {
    for (text, expected) in [
        ("+inf.0", "+inf.0"),
        ("-inf.0", "-inf.0"),
        ("-nan.0", "+nan.0"),
        ("+INF.0", "+inf.0"),
        ("#i+inf.0", "+inf.0"),
        ("#e+inf.0", "-"),
        ("inf.0", "-"),
        ("nan", "-"),
        ("infinity", "-"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn texts_that_denote_no_number_yield_none() {
    for text in [
        "", "+", "-", "abc", "1a", "#", "#x", "#xg", "#b2", "#e", "#e#e1", "#x#x1", "#q1", "١",
        "1_000", "--1", "+-1", "#x1/g",
    ] {
        assert_eq!(shown(text), "-", "{text}");
    }
}

#[test]
fn texts_that_look_like_numbers_are_explained() {
    assert!(explain("1/0").unwrap().contains("denominator"));
    for text in ["1+", "-", "...", "-hi", "hi", "1st", "+i"] {
        assert_eq!(explain(text), None, "{text}");
    }
}

#[test]
fn complex_numbers() {
    for (text, expected) in [
        ("+i", "+i"),
        ("-I", "-i"),
        ("1+2i", "1+2i"),
        ("1-i", "1-i"),
        ("-1/2+3/4i", "-1/2+3/4i"),
        ("+2i", "+2i"),
        ("0+2i", "+2i"),
        ("3+0i", "3"),
        ("3.5+0i", "3.5"),
        ("3+0.0i", "3.0+0.0i"),
        ("1.5-2i", "1.5-2.0i"),
        ("1e2+1e-2i", "100.0+0.01i"),
        ("+1e+2i", "0.0+100.0i"),
        ("-inf.0+nan.0i", "-inf.0+nan.0i"),
        ("-0.0-0.0i", "-0.0-0.0i"),
        ("+inf.0i", "0.0+inf.0i"),
        ("#x1e+2i", "30+2i"),
        ("#xa-fi", "10-15i"),
        ("#b1/10+11i", "1/2+3i"),
        ("#e1.5+.5i", "3/2+1/2i"),
        ("#i1+2i", "1.0+2.0i"),
        ("#i#x10+i", "16.0+1.0i"),
        ("1@0", "1"),
        ("0@5", "0"),
        ("1.5@0", "1.5"),
        ("2@1", "1.0806046117362795+1.682941969615793i"),
        ("1/2@-1", "0.2701511529340699-0.42073549240394825i"),
        ("#e1@0", "1"),
        ("#e+inf.0i", "-"),
        ("i", "-"),
        ("1i", "-"),
        ("1+2", "-"),
        ("+2ii", "-"),
        ("1+2i+3i", "-"),
        ("1+2i3", "-"),
        ("1@2i", "-"),
        ("1@", "-"),
        ("@1", "-"),
        ("1@2@3", "-"),
        ("1++i", "-"),
        ("1+1/0i", "-"),
        ("2i@1", "-"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
    assert_eq!(parse("+i", 18).unwrap().to_string(), "+i");
    assert_eq!(parse("+i", 19).unwrap().to_string(), "18");
    assert_eq!(parse("1+i", 19), None);
}
