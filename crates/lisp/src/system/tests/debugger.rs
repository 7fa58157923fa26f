//! The last failure can be examined and continued; threads can be queried.

use super::sessions::{Page, eval, nap, number_of, open, two};
use crate::system::Session;

/// The output of a text.
pub(super) fn shown(session: &mut Session, page: &Page, text: &str) -> String {
    let before = page.text().len();
    let message = eval(session, text);
    assert!(!message.starts_with("error"), "{text}: {message}");
    session.flush_output();
    page.text()[before..].to_owned()
}

#[test]
fn a_value_replaces_the_failed_operation() {
    two(|system, ada, _| {
        let (mut a, _) = open(&system, &ada);
        for (failing, going_on, expected) in [
            // At an instruction: its result, a branch, a call, a call in tail position.
            ("(+ 1 (car 5))", "(use-value 41)", "42"),
            ("(list (vector-ref (vector 1 2) 9) 2)", "(use-value 1)", "(1 2)"),
            ("(if (< 'a 1) 'less 'more)", "(use-value #t)", "less"),
            ("(if (< 'a 1) 'less 'more)", "(use-value #f)", "more"),
            ("(if (not (< 'a 1)) 'more 'less)", "(use-value #t)", "less"),
            ("(list (no-such-procedure 1) 2)", "(use-value 1)", "(1 2)"),
            ("(define (f) (no-such-procedure 1)) (list (f) 2)", "(use-value 1)", "(1 2)"),
            ("(vector-set! (vector 1) 5 2) 'behind", "(use-value 'any)", "behind"),
            ("(define (deep n) (+ 1 (deep n))) (list no-such-variable)", "(use-value 1)", "(1)"),
            ("(letrec ((x (+ y 1)) (y 2)) (* x y))", "(use-value 4)", "10"),
            // In a call.
            ("(list (raise 'oops) 2)", "(use-value 1)", "(1 2)"),
            ("(list (error \"no\" 1) 2)", "(use-value 1)", "(1 2)"),
            ("(list (apply car '(5)) 2)", "(use-value 1)", "(1 2)"),
            ("(list ((lambda (x) x)) 2)", "(use-value 1)", "(1 2)"),
            ("(map (lambda (x) (* 2 (car x))) '((1) 2 (3)))", "(use-value 2)", "(2 4 6)"),
            (
                "(with-exception-handler (lambda (e) 1) (lambda () (+ 1 (raise 'oops))))",
                "(use-value 1)",
                "2",
            ),
            ("(parameterize () (list (call/cc (lambda (k) (car 5)))))", "(use-value 1)", "(1)"),
        ] {
            assert!(eval(&mut a, failing).starts_with("error"), "{failing}");
            eval(&mut a, "(gc)");
            assert_eq!(eval(&mut a, going_on), expected, "{failing}");
        }
    });
}

#[test]
fn the_failed_operation_is_repeated() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        assert!(eval(&mut a, "(list missing (also-missing 20))").contains("missing"));
        assert_eq!(eval(&mut a, "(define missing 1)"), "");
        assert!(
            eval(&mut a, "(retry)").contains("also-missing"),
            "it continues to the next failure"
        );
        eval(&mut a, "(define (also-missing x) (* 2 x))");
        assert_eq!(eval(&mut a, "(retry)"), "(1 40)");
        let nothing = "; nothing has failed that is kept\n";
        assert_eq!(shown(&mut a, &page, "(retry)"), nothing);
        assert_eq!(shown(&mut a, &page, "(use-value 1)"), nothing);
        assert!(eval(&mut a, "(list (raise 'oops))").starts_with("error"));
        assert!(shown(&mut a, &page, "(retry)").contains("use-value"));
        assert_eq!(eval(&mut a, "(use-value 1)"), "(1)");
    });
}

#[test]
fn dynamic_winds_are_entered_again() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        let text = "(dynamic-wind (lambda () (display 'in)) (lambda () (+ 1 (car 5))) (lambda () (display 'out)))";
        assert!(eval(&mut a, text).starts_with("error"));
        assert_eq!(shown(&mut a, &page, "(use-value 1)"), "ininout");
    });
}

#[test]
fn callers_and_their_variables_are_shown() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        let text = "(define (inner x) (let ((y (* x 2)) (z 'unused)) (set! z (list y)) (let ((w (car y))) (cons w z))))
                    (define (outer n) (let loop ((i 0)) (if (< i n) (loop (+ i 1)) (list i (inner i)))))
                    (list (outer 3))";
        assert!(eval(&mut a, text).starts_with("error"));
        let callers = shown(&mut a, &page, "(bt)");
        let lines: Vec<&str> = callers.lines().collect();
        assert!(lines[0].contains("0  in inner at test:1:"), "{callers}");
        assert!(lines[1].contains("1  in outer at test:2:"), "{callers}");
        assert!(lines[2].contains("2  in top level at test:3:"), "{callers}");
        assert_eq!(shown(&mut a, &page, "(locals)"), "  x = 3\n  y = 6\n  z = (6)\n");
        assert_eq!(shown(&mut a, &page, "(locals 1)"), "  n = 3\n  i = 3\n");
        assert_eq!(shown(&mut a, &page, "(locals 17)"), "; there is no such frame\n");
    });
}

#[test]
fn the_variables_of_a_closure_are_shown() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        let text =
            "(define (make n) (let ((count 0)) (lambda (x) (set! count (+ count n)) (car x))))
                    ((make 5) 'argument)";
        assert!(eval(&mut a, text).starts_with("error"));
        let locals = shown(&mut a, &page, "(locals)");
        for line in ["  count = 5\n", "  n = 5\n", "  x = argument\n"] {
            assert!(locals.contains(line), "{locals}");
        }
    });
}

#[test]
fn an_interrupted_evaluation_can_be_continued() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        eval(&mut a, "(define turns 0) (define end #f)");
        let text = "(display 'begun) (newline)
                    (let loop () (set! turns (+ turns 1)) (if end 'ended (loop)))";
        let interrupt = a.handle();
        let running = super::sessions::in_background(a, text);
        while !page.text().contains("begun") {
            nap();
        }
        // Only once: a second interrupt could arrive after the first one took effect.
        assert!(interrupt.interrupt());
        let (mut a, message) = running.join().unwrap();
        assert_eq!(message, "error interrupted");
        assert_eq!(eval(&mut a, "(set! end #t) (retry)"), "ended");
    });
}

#[test]
fn a_failure_for_lack_of_memory_is_not_kept() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        assert!(eval(&mut a, "(let loop ((l '())) (loop (cons l l)))").contains("out of memory"));
        assert!(shown(&mut a, &page, "(use-value 1)").contains("nothing has failed"));
        assert!(eval(&mut a, "(define (deep n) (+ 1 (deep n))) (deep 1)").contains("too deep"));
        assert_eq!(eval(&mut a, "(length (iota 100000))"), "100000");
    });
}

#[test]
fn a_thread_reports_its_callers() {
    two(|system, ada, bob| {
        let ((mut a, page), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        eval(
            &mut a,
            "(define (spot) 1)
             (define (spin) (let loop () (spot) (loop)))
             (define (receive) (list (channel-receive (make-channel))))
             (spawn (lambda () (list (spin))) 'spins)
             (spawn (lambda () (receive)) 'waits)
             (spawn (lambda () (thread-sleep! 1000) 1) 'sleeps)",
        );
        for (name, caller) in
            [("spins", "in spin at"), ("waits", "in receive at"), ("sleeps", "in ")]
        {
            let id = number_of(&mut a, &page, name);
            // Once it has begun.
            while !shown(&mut a, &page, &format!("(bt {id})")).contains(caller) {
                nap();
            }
            assert!(eval(&mut b, &format!("(bt {id})")).contains("you have no such thread"));
        }
        let id = number_of(&mut a, &page, "spins");
        eval(&mut a, &format!("(suspend {id})"));
        // It runs on to its next safepoint.
        while !shown(&mut a, &page, &format!("(bt {id})")).contains("suspended") {}
        let top = shown(&mut a, &page, "(top 0.01)");
        assert!(top.contains("waits") && top.contains("sleeps"), "{top}");
    });
}
