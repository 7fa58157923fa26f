//! Sessions that try to harm others. Each can be stopped, and the others continue.

use super::sessions::{SMALL, eval, in_background, interrupted, nap, open, two};
use super::silence;
use crate::kernel::session::thread::SAFE;
use kyocho_heap::account::{Account, Bounds, Usage};
use kyocho_syntax::symbol::Symbol;
use kyocho_sys::prim::atomic::Ordering;
use std::sync::Arc;

/// Evaluates each text in one session, and interrupts it once another session has answered.
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
fn expanding_macros_delays_no_collection_and_is_charged() {
    two(|system, ada, bob| {
        let ((a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        let bomb = "
            (let loop ()
              (guard (e ((not (equal? (error-object-message e) \"interrupted\")) 'too-many))
                (eval '(let () (define-syntax m (syntax-rules () ((_) (m)))) (m)) (interaction-environment)))
              (loop))";
        let (interrupt, running) = (a.handle(), in_background(a, bomb));
        let thread = loop {
            let started = system.kernel.threads.started();
            match started.into_iter().find(|it| Arc::ptr_eq(&it.session.account, &ada)) {
                Some(thread) => break thread,
                None => nap(),
            }
        };
        let ran_ns = || thread.ran_ns.load(Ordering::Relaxed);
        // Collections do not wait for a thread in this state.
        while thread.state.load(Ordering::SeqCst) != SAFE {
            assert!(ran_ns() < 2_000_000_000, "it expands outside Lisp");
            nap();
        }
        assert_eq!(eval(&mut b, "(gc) (gc) 'collected"), "collected");
        while ran_ns() < 200_000_000 {
            assert!(thread.outside_ns.load(Ordering::Relaxed) < 100_000_000, "it has not slept");
            nap();
        }
        interrupted(&interrupt, running);
    });
}

#[test]
fn procedures_end_on_circular_lists() {
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
fn endless_programs_can_be_stopped() {
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
fn collections_may_run_during_long_primitives() {
    two(|system, ada, bob| {
        let ((mut a, _), (b, _)) = (open(&system, &ada), open(&system, &bob));
        assert_eq!(eval(&mut a, "(define v (make-vector 2000000 1)) 'ready"), "ready");
        let (fills, collects) = (a.handle(), b.handle());
        let filling = in_background(a, "(let loop () (vector-fill! v 2) (loop))");
        let collecting = in_background(b, "(let loop () (gc) (loop))");
        let thread = loop {
            let started = system.kernel.threads.started();
            match started.into_iter().find(|it| Arc::ptr_eq(&it.session.account, &ada)) {
                Some(thread) => break thread,
                None => nap(),
            }
        };
        // It makes no system call.
        while thread.state.load(Ordering::SeqCst) != SAFE {
            let ran_ns = thread.ran_ns.load(Ordering::Relaxed);
            assert!(ran_ns < 20_000_000_000, "collections wait for it");
            core::hint::spin_loop();
        }
        interrupted(&fills, filling);
        interrupted(&collects, collecting);
    });
}

#[test]
fn symbols_are_charged_to_the_account_that_makes_them() {
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        let ends = |text: &str| {
            format!(
                "(guard (e ((error-object? e) (error-object-message e))) (do ((i 0 (+ i 1))) ((= i 200) 'done) {text}))"
            )
        };
        assert_eq!(eval(&mut a, "(define long (make-string 1000000 #\\s)) 'ready"), "ready");
        for text in [
            "(string->symbol (string-append long (number->string i)))",
            "(string->uninterned-symbol long)",
            "(symbol-append 'some (string->symbol (number->string i)) (generate-symbol))",
            "(gensym 'a-name-that-is-long-enough-to-be-used-up-soon-however-few-there-may-be-of-them)",
            "(read (open-input-string (string-append long \"r\" (number->string i))))",
        ] {
            assert_eq!(eval(&mut a, &ends(text)), "\"out of memory\"", "{text}");
        }
        assert_eq!(eval(&mut b, "(string->symbol \"a name of bob's\")"), "|a name of bob's|");
        // The same for names of files, of 4 KB each.
        let names = "(define (name i) (if (= i 0) (apply string-append \"/dev\" (append (make-list 1900 \"/.\") '(\"/null\"))) \
             (string-append (if (odd? i) \"/.\" \"//\") (name (quotient i 2))))) 'ready";
        let eve = Account::new("eve", Bounds { files: true, ..SMALL });
        let (mut e, _) = open(&system, &eve);
        assert_eq!(eval(&mut e, names), "ready");
        let reads = "(guard (e ((error-object? e) (error-object-message e))) (do ((i 1 (+ i 1))) ((= i 30000) 'done) \
             (let ((port (open-input-file (name i)))) (read port) (close-port port))))";
        assert_eq!(eval(&mut e, reads), "\"out of memory\"");
        assert_eq!(eval(&mut a, "(string->symbol \"car\")"), "car");
        // Symbols remain after their session has ended, and so does the charge for them. Otherwise
        // repeated sessions could fill the memory of the process.
        drop(a);
        assert_eq!(eval(&mut b, "(gc) (gc) 'collected"), "collected");
        assert!(Symbol::find(&("s".repeat(1_000_000) + "0")).is_some());
        let (mut a, _) = open(&system, &ada);
        let again = ends("(string->symbol (string-append \"again\" (number->string i)))");
        assert_eq!(eval(&mut a, &again), "\"out of memory\"");
    });
}

#[test]
fn an_exponential_regular_expression_can_be_interrupted() {
    can_be_stopped(
        "(import (srfi 115)) 'ready",
        &[
            "(regexp-matches '(: (* (* (* \"a\"))) \"b\") (make-string 2000 #\\a))",
            "(regexp-search '(: (+ (or \"a\" \"aa\")) \"c\") (make-string 2000 #\\a))",
        ],
    );
}

#[test]
fn looking_up_a_host_can_be_ended() {
    two(|system, ada, _| {
        silence::install();
        let (mut a, _) = open(&system, &ada);
        let text = format!("(define t (spawn (lambda () (tcp-connect \"{}\" 80))))", silence::NAME);
        eval(&mut a, &text);
        while ada.usage().sockets == 0 {
            nap();
        }
        let ended = "(thread-terminate! t) (guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! t))";
        assert_eq!(eval(&mut a, ended), "ended");
        assert_eq!(ada.usage().sockets, 1, "it continues, and is counted");
        silence::end();
        while ada.usage().sockets > 0 {
            nap();
        }
        let again = format!("(tcp-connect \"{}\" 80)", silence::NAME);
        assert!(eval(&mut a, &again).contains("tcp-connect: silent.test"));
    });
}

#[test]
fn values_of_a_session_cannot_be_reached_from_another() {
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        eval(
            &mut a,
            "(define k #f) (define p (make-parameter 1)) (+ 1 (call/cc (lambda (c) (set! k c) 1)))",
        );
        for (text, name) in [
            ("k", "k"),
            ("p", "p"),
            ("(%failure)", "%failure"),
            ("(%threads)", "%threads"),
            ("(%backtrace 1)", "%backtrace"),
        ] {
            let message = eval(&mut b, text);
            assert!(message.starts_with(&format!("error unbound variable: {name}")), "{message}");
        }
        // Only its own threads are listed, and none of them has a value.
        assert_eq!(eval(&mut b, "(thread-specific (car (threads)))"), "");
        // A continuation of an evaluation that has ended still belongs to its session.
        assert_eq!(eval(&mut a, "(k 41)"), "42");
    });
}

#[test]
fn long_comparisons_delay_no_other_thread() {
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
            // Each collection has to wait for work that cannot be interrupted.
            for _ in 0..20 {
                assert_eq!(eval(&mut b, "(gc) 'collected"), "collected", "beside {text}");
            }
            (a, _) = interrupted(&interrupt, running);
        }
    });
}

#[test]
fn macros_without_end_are_refused() {
    const BOMBS: &[(&str, &str)] = &[
        ("(define-syntax again (syntax-rules () ((_ x ...) (again x ...)))) (again 1)", "steps"),
        ("(define-syntax more (syntax-rules () ((_ x ...) (more 1 x ...)))) (more)", "steps"),
        ("(define-syntax twice (syntax-rules () ((_ x) (twice (x x))))) (twice 1)", ""),
        ("(define-syntax nest (syntax-rules () ((_ x) (list (nest x))))) (nest 1)", ""),
        ("(define-syntax fork (syntax-rules () ((_ x) (begin (fork x) (fork x))))) (fork 1)", ""),
        (
            "(define-syntax product (syntax-rules () ((_ (a ...) b) (quote ((a b b b b b b b b) ...)))))
             (define-syntax grow (syntax-rules () ((_ x ...) (grow x ... x ...)))) (grow 1)",
            "",
        ),
    ];
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        for (text, expected) in BOMBS {
            let interrupt = a.handle();
            let running = in_background(a, text);
            assert_eq!(eval(&mut b, "(gc) (length (iota 1000))"), "1000", "beside {text}");
            let message;
            (a, message) = match running.is_finished() {
                true => running.join().unwrap(),
                false => interrupted(&interrupt, running),
            };
            assert!(message.starts_with("error"), "{text}: {message}");
            assert!(message.contains(expected) || message.contains("interrupted"), "{message}");
            assert_eq!(eval(&mut a, "'on"), "on", "after {text}");
        }
    });
}

/// A named pipe that no process has open.
fn lonely_pipe(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("kyocho-{}-{name}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path.display().to_string()
}

#[test]
fn endless_files_delay_no_other_thread() {
    two(|system, ada, bob| {
        ada.set_bounds(Bounds { files: true, ..SMALL });
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        let pipe = lonely_pipe("endless");
        for text in [
            "(load \"$pipe\")",
            "(include \"$pipe\")",
            "(load-package \"$pipe\")",
            "(import (srfi 170)) (truncate-file \"$pipe\" 0)",
        ] {
            let text = text.replace("$pipe", &pipe);
            let message = eval(&mut a, &text);
            assert!(message.starts_with("error") && message.contains(&pipe), "{text}: {message}");
            assert_eq!(eval(&mut b, "(gc) 'collected"), "collected", "beside {text}");
        }
        std::fs::remove_file(pipe).unwrap();
    });
}

/// Output that is written and neither flushed nor read: the collector writes as much as possible
/// without blocking.
#[test]
fn unread_output_delays_no_collection() {
    const FULL: &str = "
        (define (stuff port)
          (let ((t (spawn (lambda () (let loop () (write-u8 1 port) (loop))))))
            (thread-sleep! 0.05)
            (thread-terminate! t)
            (guard (e ((terminated-thread-exception? e) 'stuffed)) (thread-join! t))))";
    const WAYS: &[&str] = &[
        "(stuff (cadr (start-programs '((\"sleep\" \"1000\")) #t #f #f '())))",
        "(let* ((l (unix-listen \"$pipe.socket\")) (s (unix-connect \"$pipe.socket\")))
           (stuff (socket-output-port s 'binary)))",
        "(stuff (open-binary-output-file \"$pipe\"))",
    ];
    two(|system, ada, bob| {
        ada.set_bounds(Bounds { files: true, ports_max: 50, ..SMALL });
        let pipe = lonely_pipe("stuffed");
        // Keeps the pipe open, but does not read from it.
        let _reader = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        eval(&mut a, FULL);
        for text in WAYS {
            assert_eq!(eval(&mut a, &text.replace("$pipe", &pipe)), "stuffed", "{text}");
            for _ in 0..3 {
                assert_eq!(eval(&mut b, "(gc) 'collected"), "collected", "after {text}");
            }
            // The process's own session flushes only its own ports.
            assert_eq!(eval(&mut system.session(), "'on"), "on", "after {text}");
        }
        drop(a);
        while ada.usage() != Usage::default() {
            nap();
        }
        std::fs::remove_file(format!("{pipe}.socket")).unwrap();
        std::fs::remove_file(pipe).unwrap();
    });
}
