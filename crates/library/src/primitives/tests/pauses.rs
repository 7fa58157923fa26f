//! Long work in slices. At each pause a collection runs whose only roots are the arguments and the
//! values passed to the pause. All memory that it frees is overwritten.

use super::{ARGUMENTS, Calculator};
use crate::datum_of::datum_of;
use crate::printer::{Style, to_text};
use core::cell::Cell;
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;

/// Calls that take more than two slices. `@` is replaced by 40,000.
const CALLS: &[&str] = &[
    "(length (make-list @ 1))",
    "(list? (make-list @ 1))",
    "(append (iota @) (iota @) 3)",
    "(concatenate (list (iota @) (iota @)))",
    "(reverse (iota @))",
    "(append-reverse (iota @) (iota 3))",
    "(list-copy (iota @))",
    "(list-tail (iota @) 39990)",
    "(list-ref (iota @) 39990)",
    "(last-pair (iota @))",
    "(last (iota @))",
    "(take (iota @) 39990)",
    "(take-right (iota @) 39990)",
    "(drop-right (iota @) 10)",
    "(dotted-list? (iota @))",
    "(iota @ 1/2)",
    "(make-list @ 'a)",
    "(memv 39990 (iota @))",
    "(memq 'a (iota @))",
    "(make-vector @ 'a)",
    "(vector-fill! (make-vector @ 1) 2)",
    "(vector->list (make-vector @ 'a))",
    "(list->vector (iota @ 1/2))",
    "(vector-copy (list->vector (iota @ 1/2)))",
    "(vector-append (make-vector @ 'a) (list->vector (iota @ 1/2)))",
    "(vector-grow (list->vector (iota @ 1/2)) 50000)",
    "(vector-copy! (make-vector @ 1) 0 (make-vector @ 2))",
    "(make-string @ #\\λ)",
    "(string-append (make-string @ #\\a) (make-string @ #\\λ))",
    "(string-concatenate (list (make-string @ #\\a) \"b\" (make-string @ #\\c)))",
    "(%string-split (string-append (make-string @ #\\a) \",\" (make-string @ #\\b)) #\\,)",
    "(string-copy (make-string @ #\\a))",
    "(substring (make-string @ #\\λ) 1 39990)",
    "(string->list (make-string @ #\\a))",
    "(list->string (make-list @ #\\λ))",
    "(string->vector (make-string @ #\\a))",
    "(vector->string (make-vector @ #\\a))",
    "(string-copy! (make-string @ #\\a) 0 (make-string @ #\\λ))",
    "(string-fill! (make-string @ #\\a) #\\λ)",
    "(string-reverse (string-append (make-string @ #\\λ) \"abc\"))",
    "(string=? (make-string @ #\\a) (make-string @ #\\a))",
    "(string<? (make-string @ #\\a) (string-append (make-string @ #\\a) \"b\"))",
    "(string-ci=? (make-string @ #\\a) (make-string @ #\\A))",
    "(string-upcase (make-string @ #\\ß))",
    "(string-downcase (make-string @ #\\A))",
    "(string-foldcase (make-string @ #\\Σ))",
    "(make-bytevector 400000 7)",
    "(bytevector-copy (make-bytevector 400000 7))",
    "(bytevector-append (make-bytevector 400000 7) (make-bytevector 400000 8))",
    "(bytevector-copy! (make-bytevector 400000 7) 1 (make-bytevector 300000 8))",
    "(bytevector-fill! (make-bytevector 400000 7) 8)",
    "(utf8->string (string->utf8 (make-string @ #\\λ)))",
    "(string->utf8 (make-string @ #\\λ))",
    "(equal? (iota @ 1/2) (iota @ 1/2))",
    "(equal? (list->vector (iota @ 1/2)) (list->vector (iota @ 1/2)))",
    "(equal? (list->vector (iota @ 1/2)) (list->vector (iota @ 3/2)))",
    "(display (list->vector (iota @ 1/2)) (open-output-string))",
    "(write (iota @ 1/2) (open-output-string))",
    "(write-shared (vector (iota @ 1/2) (make-list @ 'a)) (open-output-string))",
    "(write-string (make-string @ #\\λ) (open-output-string))",
    "(read-line (open-input-string (make-string @ #\\λ)))",
    "(equal? (cons (iota @) (iota @)) (cons (iota @) (reverse (iota @))))",
    "(read (open-input-string (string-append \"(\" (string-concatenate (make-list @ \"1.5 \")) \")\")))",
    "(read (open-input-string (string-append \"(\" (string-concatenate (make-list @ \"(1.5) \")) \" . #(2.5))\")))",
    "(read (open-input-string (string-append \"#(\" (string-concatenate (make-list @ \"1.5 \")) \")\")))",
    "(read (open-input-string (string-append \"(#0=(a . 1.5) \" (string-concatenate (make-list @ \"(2.5 #0#) \")) \")\")))",
    "(read (open-input-string (string-append \"#0=((a . 1.5) \" (string-concatenate (make-list @ \"(2.5 (#0# 1.5)) \")) \")\")))",
];

/// Calls on integers of 63,000 to 130,000 bits, which are processed in slices. For complex numbers,
/// one part of the result is finished before there are pauses for the other.
const GIANTS: &[&str] = &[
    "(* (expt 3 80000) (expt 7 45000))",
    "(+ (/ (expt 3 40000) (expt 7 45000)) (/ (expt 5 40000) (expt 11 40000)))",
    "(- (/ (expt 3 40000) (expt 7 45000)) (/ (expt 5 40000) (expt 11 40000)))",
    "(* (/ (expt 3 40000) (expt 7 45000)) (/ (expt 5 40000) (expt 11 40000)))",
    "(/ (/ (expt 3 40000) (expt 7 45000)) (/ (expt 5 40000) (expt 11 40000)))",
    "(/ (* (expt 3 40000) (expt 7 10000)) (* (expt 7 10000) (expt 5 30000)))",
    "(quotient (expt 3 80000) (- (expt 7 23000)))",
    "(remainder (- (expt 3 80000)) (expt 7 23000))",
    "(modulo (- (expt 3 80000)) (expt 7 23000))",
    "(floor-quotient (expt 3 80000) (- (expt 7 23000)))",
    "(gcd (* (expt 3 20000) (expt 7 15000)) (* (expt 3 20001) (expt 5 15000)))",
    "(lcm (* (expt 3 20000) (expt 7 15000)) (* (expt 3 20001) (expt 5 15000)))",
    "(expt 3/7 80000)",
    "(%exact-integer-sqrt (expt 3 80001))",
    "(sqrt (/ (expt 3 80000) (expt 7 45000)))",
    "(round (/ (expt 3 80000) (expt 7 23000)))",
    "(number->string (- (expt 3 80000)))",
    "(string->number (number->string (/ (expt 3 80000) (expt 7 23000))))",
    "(string->number (make-string 16000 #\\7))",
    "(* (make-rectangular (expt 3 45000) (expt 5 30000)) (make-rectangular (expt 7 25000) (expt 11 21000)))",
    "(* (make-rectangular (expt 3 45000) (expt 5 30000)) (expt 7 25000))",
    "(+ (make-rectangular (/ 1 (expt 3 45000)) (/ 1 (expt 5 30000))) (make-rectangular (/ 1 (expt 7 25000)) (/ 1 (expt 11 21000))))",
    "(/ (make-rectangular (expt 3 9000) (expt 5 8000)) (make-rectangular (expt 7 8000) (expt 11 7000)))",
    "(/ (make-rectangular (expt 3 45000) (expt 5 30000)) (expt 7 25000))",
    "(expt (make-rectangular (expt 3 22000) (expt 5 30000)) 3)",
    "(sqrt (square (make-rectangular (expt 3 45000) (expt 5 30000))))",
    "(angle (make-rectangular (- (expt 3 45000)) (expt 5 30000)))",
    "(log (make-rectangular (expt 3 45000) (expt 5 30000)))",
    "(iota 4 (/ 1 (expt 3 45000)) (/ 1 (expt 7 30000)))",
];

thread_local! {
    static PAUSES: Cell<usize> = const { Cell::new(0) };
}

/// Collects and overwrites free memory.
fn collect(m: &mut Mutator) -> Result<()> {
    PAUSES.set(PAUSES.get() + 1);
    let heap = m.heap.clone();
    heap.collect(|marker| {
        m.context.trace(marker);
        ARGUMENTS.with_borrow(|all| all.iter().for_each(|&value| marker.mark(value)));
    });
    for _ in 0..60_000 {
        m.cons(Value::fixnum(-1), Value::fixnum(-1))?;
    }
    let large = m.vector(100_000, Value::fixnum(-1))?;
    assert!(large.vector_length().is_some());
    Ok(())
}

/// Cuts the list that the call is walking along. The part that was cut off is garbage unless the
/// call keeps it.
fn cut(m: &mut Mutator) -> Result<()> {
    let list = ARGUMENTS.with_borrow(|all| all.iter().copied().find(|value| value.is_pair()));
    assert!(list.is_none_or(|list| list.set_cdr(Value::NIL)), "the list can be cut");
    collect(m)
}

fn give_up(_: &mut Mutator) -> Result<()> {
    Err(Raise::new(Cause::Interrupted))
}

fn run(text: &str, at_pause: Option<fn(&mut Mutator) -> Result<()>>) -> Result<String> {
    // Arguments of a call that gave up, on another heap.
    ARGUMENTS.with_borrow_mut(Vec::clear);
    let mut calculator = Calculator::with_bytes(256 << 20);
    calculator.m.context.at_pause = at_pause;
    let value = calculator.run(&text.replace('@', "40000"))?;
    Ok(to_text(value, Style::Write).unwrap())
}

/// Checks that collections do not change the result, and that a call gives up when its thread must
/// end.
fn check(calls: &[&str]) {
    for text in calls {
        let expected = run(text, None).unwrap();
        PAUSES.set(0);
        let printed = run(text, Some(collect)).unwrap();
        // Both texts are long, so show where they differ.
        let same = printed.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
        let from = |text: &str| text.get(same..).unwrap_or("").chars().take(40).collect::<String>();
        assert!(
            printed == expected,
            "{text}: from {same} on {:?}, not {:?}",
            from(&printed),
            from(&expected)
        );
        assert!(PAUSES.get() >= 2, "{text}: {} pauses", PAUSES.get());
        let given_up = run(text, Some(give_up));
        assert!(given_up.is_err_and(|raise| raise.is_interruption()), "{text}");
    }
}

#[test]
fn collections_may_run_during_long_operations() {
    check(CALLS);
}

/// The argument of `eval`.
#[test]
fn programs_are_converted_to_data_in_slices() {
    let mut calculator = Calculator::with_bytes(256 << 20);
    for text in [
        "(list 'quote (iota 40000 1/2))",
        "(list (list->vector (iota 40000 1/2)) (make-string 3 #\\λ))",
        "(append (make-list 40000 (list 1.5 'a)) 2.5)",
    ] {
        let value = calculator.run(text).unwrap();
        let expected = to_text(value, Style::Write).unwrap();
        let m = &mut calculator.m;
        PAUSES.set(0);
        m.context.at_pause = Some(collect);
        let datum = m.keeping(&[value], |m| datum_of(m, value)).unwrap();
        m.context.at_pause = Some(give_up);
        assert!(datum_of(m, value).is_err_and(|raise| raise.is_interruption()), "{text}");
        m.context.at_pause = None;
        let again = m.literal(&datum).unwrap();
        assert!(to_text(again, Style::Write).unwrap() == expected, "{text}");
        assert!(PAUSES.get() >= 2, "{text}: {} pauses", PAUSES.get());
    }
}

#[test]
fn collections_may_run_during_long_arithmetic() {
    check(GIANTS);
}

/// At each pause after the first, the argument has only one pair, and only the call itself refers
/// to its position in the rest.
#[test]
fn a_list_that_is_cut_off_is_walked_to_its_end() {
    for (text, expected) in [
        ("(list-ref (iota @ 1/2) 39990)", "79981/2"),
        ("(list-ref (iota 80000 1/2) 39990)", "79981/2"),
        ("(list-ref (list-tail (iota @ 1/2) 1) 39980)", "79963/2"),
        ("(memv 39990 (list-copy (iota 39995)))", "(39990 39991 39992 39993 39994)"),
        ("(length (take (iota @ 1/2) 39990))", "39990"),
    ] {
        PAUSES.set(0);
        assert_eq!(run(text, Some(cut)).unwrap(), expected, "{text}");
        assert!(PAUSES.get() >= 2, "{text}: {} pauses", PAUSES.get());
    }
}
