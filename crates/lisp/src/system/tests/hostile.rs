//! Sessions that would hurt others: whatever one does, it can be stopped, and the others go on.

use super::sessions::{eval, in_background, interrupted, nap, number_of, open, two};
use crate::account::Usage;
use crate::primitives::host_names::silence;

/// Each of these is let loose in one session, which is interrupted when another one has answered.
fn can_be_stopped(prelude: &'static str, texts: &'static [&'static str]) {
    two(move |system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        assert_eq!(eval(&mut a, prelude), "ready");
        for text in texts {
            let interrupt = a.handle();
            let running = in_background(a, text);
            assert_eq!(eval(&mut b, "(gc) (length (iota 1000))"), "1000", "beside {text}");
            (a, _) = interrupted(&interrupt, running);
            assert_eq!(eval(&mut a, "'on"), "on", "after {text}");
        }
        drop(a);
        assert_eq!(ada.usage(), Usage::default());
    });
}

#[test]
fn no_circle_holds_a_procedure_for_ever() {
    can_be_stopped(
        "(define c (list 1 2 3)) (set-cdr! (cddr c) c)
         (define d (list 1 2 3)) (set-cdr! (cddr d) d)
         (define v (vector 1 #f)) (vector-set! v 1 v) 'ready",
        &[
            "(length c)",
            "(list? c)",
            "(reverse c)",
            "(append c c)",
            "(list-copy c)",
            "(map + c d)",
            "(for-each car c)",
            "(equal? c d)",
            "(equal? v (vector 1 v))",
            "(member 9 c)",
            "(memq 9 c)",
            "(assoc 9 (map list c))",
            "(apply + c)",
            "(list->vector c)",
            "(list->string c)",
            "(list-tail c 1000000000000)",
            "(fold + 0 c)",
            "(vector-map (lambda (x) c) (vector 1))",
            "(write c (open-output-string))",
            "(write-simple c (open-output-string))",
            "(string->symbol (list->string c))",
            "(list-sort < c)",
            "(eval (list 'quote c) (interaction-environment))",
            "(eval c (interaction-environment))",
            "(raise c)",
        ],
    );
}

#[test]
fn what_runs_for_ever_is_stopped() {
    can_be_stopped(
        "(define (dag n) (let loop ((n n) (x '())) (if (= n 0) x (loop (- n 1) (cons x x))))) 'ready",
        &[
            "(let loop () (loop))",
            "(let loop () (call/cc (lambda (k) (loop))))",
            "(define (f) (g)) (define (g) (f)) (f)",
            "(do () (#f))",
            "(thread-sleep! 1000000)",
            "(raw-sleep 1000000)",
            "(mutex-lock! (let ((m (make-mutex))) (mutex-lock! m #f #f) m))",
            "(channel-receive (make-channel) 1000000)",
            "(let ((p (delay-force (let loop () (loop))))) (force p))",
            "(let loop () (guard (e (#t (loop))) (raise 'again)))",
            "(let loop () (with-exception-handler (lambda (e) (loop)) (lambda () (car 1))))",
            "(let loop () (dynamic-wind values loop values))",
            "(equal? (dag 60) (dag 60))",
            "(let loop ((n 1)) (loop (+ n 1)))",
            "(let loop ((n 0.5)) (loop (* n 1.0000001)))",
        ],
    );
}

#[test]
fn a_regular_expression_does_not_run_away() {
    can_be_stopped(
        "(import (srfi 115)) 'ready",
        &[
            "(regexp-matches '(: (* (* (* \"a\"))) \"b\") (make-string 2000 #\\a))",
            "(regexp-search '(: (+ (or \"a\" \"aa\")) \"c\") (make-string 2000 #\\a))",
        ],
    );
}

#[test]
fn a_thread_is_killed_in_every_state() {
    const STATES: &[(&str, &str)] = &[
        ("runs", "(let loop () (loop))"),
        ("allocates", "(let loop () (list 1 2 3) (loop))"),
        ("collects", "(let loop () (gc) (loop))"),
        ("yields", "(let loop () (thread-yield!) (loop))"),
        ("sleeps", "(thread-sleep! 1000)"),
        ("calls-the-kernel", "(raw-sleep 1000)"),
        ("waits-for-a-mutex", "(mutex-lock! taken)"),
        (
            "waits-for-a-condition",
            "(let ((m (make-mutex))) (mutex-lock! m) (mutex-unlock! m (make-condition-variable)))",
        ),
        ("receives", "(channel-receive (make-channel))"),
        ("sends", "(channel-send! (make-channel) 1)"),
        ("joins", "(thread-join! sleeper)"),
        ("raises", "(let loop () (guard (e (#t (loop))) (raise 'again)))"),
        (
            "winds",
            "(dynamic-wind values (lambda () (thread-sleep! 1000)) (lambda () (set! wound (+ wound 1))))",
        ),
    ];
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        eval(
            &mut a,
            "(define wound 0)
             (define taken (make-mutex)) (mutex-lock! taken #f #f)
             (define sleeper (spawn (lambda () (thread-sleep! 1000)) 'sleeper))",
        );
        for (name, text) in STATES {
            for before in ["'runs", "(suspend {id})"] {
                let make =
                    format!("(define t (spawn (lambda () {text}) '{name})) (thread-sleep! 0.001)");
                eval(&mut a, &make);
                let id = number_of(&mut a, &page, name);
                eval(&mut a, &before.replace("{id}", &id));
                let kill = format!(
                    "(kill {id}) (guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! t))"
                );
                let ended = eval(&mut a, &kill);
                a.flush_output();
                assert_eq!(ended, "ended", "{name}, {before}: {}", page.text());
            }
        }
        assert_eq!(eval(&mut a, "wound"), "2");
        assert!(!page.text().contains("in thread"), "none of them failed: {}", page.text());
        drop(a);
        assert_eq!(ada.usage(), Usage::default());
    });
}

#[test]
fn looking_up_a_host_can_be_ended() {
    two(|system, ada, _| {
        let (mut a, _) = open(&system, &ada);
        let text = format!("(define t (spawn (lambda () (tcp-connect \"{}\" 80))))", silence::NAME);
        eval(&mut a, &text);
        while ada.usage().sockets == 0 {
            nap();
        }
        let ended = "(thread-terminate! t) (guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! t))";
        assert_eq!(eval(&mut a, ended), "ended");
        assert_eq!(ada.usage().sockets, 1, "it goes on, and counts");
        silence::end();
        while ada.usage().sockets > 0 {
            nap();
        }
        let again = format!("(tcp-connect \"{}\" 80)", silence::NAME);
        assert!(eval(&mut a, &again).contains("tcp-connect: silent.test"));
    });
}

#[test]
fn what_leaves_a_session_by_no_way_reaches_no_other() {
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        eval(
            &mut a,
            "(define k #f) (define p (make-parameter 1)) (+ 1 (call/cc (lambda (c) (set! k c) 1)))",
        );
        for text in [
            "k",
            "p",
            "(thread-specific (car (threads)))",
            "(%failure)",
            "(%threads)",
            "(%backtrace 1)",
        ] {
            let message = eval(&mut b, text);
            assert!(
                message.starts_with("error unbound variable") || message.is_empty(),
                "{text}: {message}"
            );
        }
        // A continuation of an evaluation that has ended is one of its own session still.
        assert_eq!(eval(&mut a, "(k 41)"), "42");
    });
}

#[test]
fn long_comparisons_hold_up_nobody() {
    const LONG: &str = "
        (define key (make-string 1000000 #\\a))
        (define other (string-append key \"b\"))
        (define wanted (string-append key \"c\"))
        (define l (make-list 500000 other))
        (define a (make-list 500000 (list other)))
        'ready";
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        assert_eq!(eval(&mut a, LONG), "ready");
        for text in
            ["(let loop () (member wanted l) (loop))", "(let loop () (assoc wanted a) (loop))"]
        {
            let interrupt = a.handle();
            let running = in_background(a, text);
            // Each collection has to wait for what cannot be interrupted.
            for _ in 0..20 {
                assert_eq!(eval(&mut b, "(gc) 'collected"), "collected", "beside {text}");
            }
            (a, _) = interrupted(&interrupt, running);
        }
    });
}
