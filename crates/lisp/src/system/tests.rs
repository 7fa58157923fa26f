//! Complete systems: threads in every state, several virtual processors, limits, reports.

mod collector;
mod collector_faults;
mod compiler;
mod debugger;
mod handshake;
mod hostile;
mod kills;
mod libraries;
mod locations;
mod machine;
mod outside;
mod policies;
mod prelude;
mod procedures;
mod process;
mod selects;
mod sessions;
mod shortage;
mod silence;
mod tools;

use super::{CellCache, Completeness, Options, Report, Session, System, completeness};
use core::time::Duration;
use std::sync::mpsc;

/// A test that takes longer hangs, even if ten other tests compete for each processor.
const WATCHDOG: Duration = Duration::from_secs(240);

pub(crate) fn within_watchdog<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let started = kyocho_sys::thread::start("test", 1 << 20, move || done.send(body()).unwrap());
    let handle = started.unwrap();
    match wait.recv_timeout(WATCHDOG) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(handle.join().unwrap_err())
        }
    }
}

pub(crate) fn boot(options: Options) -> System {
    System::boot(options, &mut |_| {}).unwrap()
}

pub(crate) fn on(virtual_processors: usize) -> Options {
    Options { virtual_processors: Some(virtual_processors), ..Options::default() }
}

fn last(session: &mut Session, text: &str) -> String {
    match session.eval(text, "test") {
        Ok(evaluation) => evaluation.values.last().cloned().unwrap_or_default(),
        Err(report) => format!("error {report}"),
    }
}

/// Evaluates the texts, each in one session, on one and on two virtual processors.
fn check(programs: &'static [(&str, &str)]) {
    for count in [1, 2] {
        within_watchdog(move || {
            let system = boot(on(count));
            let mut session = system.session();
            for (text, expected) in programs {
                assert_eq!(last(&mut session, text), *expected, "{text} on {count}");
            }
        });
    }
}

fn error(text: &'static str) -> Report {
    within_watchdog(move || boot(on(1)).session().eval(text, "test.scm").unwrap_err())
}

#[test]
fn joining_a_thread_returns_its_result_or_raises_its_exception() {
    check(&[
        ("(thread-join! (spawn (lambda () (* 6 7))))", "42"),
        ("(thread-join! (thread-start! (make-thread (lambda () 'started) 'name)))", "started"),
        ("(thread-name (make-thread (lambda () 1) 'name))", "name"),
        (
            "(guard (e ((uncaught-exception? e) (uncaught-exception-reason e)))
               (thread-join! (spawn (lambda () (raise 'reason)))))",
            "reason",
        ),
        (
            "(guard (e ((join-timeout-exception? e) 'late))
               (thread-join! (spawn (lambda () (thread-sleep! 30))) 0.001))",
            "late",
        ),
        ("(thread-join! (spawn (lambda () (thread-sleep! 30))) 0.001 'default)", "default"),
        ("(let ((t (spawn current-thread))) (eq? t (thread-join! t)))", "#t"),
        ("(define p (make-parameter 1)) (parameterize ((p 2)) (thread-join! (spawn p)))", "2"),
    ]);
}

#[test]
fn a_thread_terminated_before_it_begins_never_begins() {
    check(&[(
        "(define begun #f)
         (let ((t (make-thread (lambda () (set! begun #t))))) (thread-terminate! t)
           (guard (e ((terminated-thread-exception? e) (list 'never begun))) (thread-join! t)))",
        "(never #f)",
    )]);
}

#[test]
fn a_thread_terminated_while_it_enters_the_kernel_does_not_stay_there() {
    check(&[
        ("(define listener (tcp-listen \"127.0.0.1\" 0)) 'up", "up"),
        ("(define port (string->number (car (reverse (string-split (socket-address listener) #\\:)))))
          (define input (socket-input-port (tcp-connect \"127.0.0.1\" port))) 'up", "up"),
        (
            "(define (end turn)
               (let ((t (spawn (lambda () (read-char input)))))
                 (let wait ((n (modulo turn 50))) (if (> n 0) (begin (thread-yield!) (wait (- n 1)))))
                 (thread-terminate! t)
                 (guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! t))))
             (let loop ((turn 0))
               (cond ((= turn 2000) 'all) ((eq? (end turn) 'ended) (loop (+ turn 1))) (else turn)))",
            "all",
        ),
    ]);
}

#[test]
fn a_terminated_thread_ends_whatever_its_after_procedures_do() {
    const LAST: &str = "
        (define m (make-mutex))
        (define (kill last)
          (let* ((ready (make-channel 1))
                 (t (spawn (lambda ()
                      (mutex-lock! m)
                      (dynamic-wind
                        (lambda () #f)
                        (lambda () (channel-send! ready #t) (thread-sleep! 1000))
                        last)))))
            (channel-receive ready)
            (thread-terminate! t)
            (list (guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! t 200))
                  (guard (e ((abandoned-mutex-exception? e) (mutex-unlock! m) 'abandoned)) (mutex-lock! m)))))
        'ready";
    check(&[
        (LAST, "ready"),
        ("(kill (lambda () (let loop () (loop))))", "(ended abandoned)"),
        ("(kill (lambda () (thread-sleep! 1000)))", "(ended abandoned)"),
        ("(kill (lambda () (raw-sleep 1000)))", "(ended abandoned)"),
        ("(kill (lambda () (channel-receive (make-channel))))", "(ended abandoned)"),
        (
            "(kill (lambda () (suspend (thread-number (current-thread))) (let loop () (loop))))",
            "(ended abandoned)",
        ),
        ("(length (threads))", "1"),
    ]);
}

#[test]
fn a_joined_thread_is_not_listed_any_more() {
    check(&[(
        "(let loop ((n 0))
           (let ((t (spawn list))) (let poll () (if (eq? 'runs (thread-join! t 0 'runs)) (poll))))
           (cond ((> (length (threads)) 1) n) ((= n 300) 'gone) (else (loop (+ n 1)))))",
        "gone",
    )]);
}

#[test]
fn mutexes_and_condition_variables() {
    check(&[
        (
            "(define m (make-mutex)) (define n 0)
             (define (work) (do ((i 0 (+ i 1))) ((= i 2000))
               (mutex-lock! m) (let ((old n)) (if (= 0 (modulo i 100)) (thread-yield!)) (set! n (+ old 1)))
               (mutex-unlock! m)))
             (for-each thread-join! (map (lambda (_) (spawn work)) '(1 2 3 4)))
             n",
            "8000",
        ),
        ("(mutex-lock! m) (list (mutex-lock! m 0.001) (begin (mutex-unlock! m) (mutex-state m)))",
         "(#f not-abandoned)"),
        (
            "(define c (make-condition-variable)) (define ready #f)
             (define waiter (spawn (lambda ()
               (mutex-lock! m)
               (let wait () (if (not ready) (begin (mutex-unlock! m c) (mutex-lock! m) (wait))))
               (mutex-unlock! m) 'went)))
             (mutex-lock! m) (set! ready #t) (condition-variable-broadcast! c) (mutex-unlock! m)
             (thread-join! waiter)",
            "went",
        ),
        ("(mutex-lock! m) (mutex-unlock! m c 0.001)", "#f"),
    ]);
}

#[test]
fn channels_keep_order_and_count() {
    check(&[
        (
            "(define c (make-channel))
             (define t (spawn (lambda () (do ((i 0 (+ i 1))) ((= i 1000)) (channel-send! c i)) (channel-close! c))))
             (let loop ((n 0)) (let ((v (channel-receive c 'end))) (if (eq? v 'end) n (if (= v n) (loop (+ n 1)) 'disorder))))",
            "1000",
        ),
        (
            "(define b (make-channel 3))
             (define senders (map (lambda (k) (spawn (lambda () (do ((i 0 (+ i 1))) ((= i 100)) (channel-send! b 1))))) '(1 2 3)))
             (let loop ((n 0)) (if (= n 300) n (loop (+ n (channel-receive b)))))",
            "300",
        ),
        ("(guard (e (#t (error-object-message e))) (channel-send! c 1))", "\"the channel is closed\""),
    ]);
}

#[test]
fn threads_allocate_in_parallel_while_collections_run() {
    for (cell_cache, count) in [(CellCache::Off, 1), (CellCache::Fixed(7), 2), (CellCache::Auto, 2)]
    {
        within_watchdog(move || {
            let memory_max_bytes = 64 << 20;
            let system = boot(Options { cell_cache, memory_max_bytes, ..on(count) });
            let text = "
                (define (build n) (let loop ((i 0) (l '())) (if (= i n) l (loop (+ i 1) (cons (vector i) l)))))
                (define (total l) (let loop ((l l) (s 0)) (if (null? l) s (loop (cdr l) (+ s (vector-ref (car l) 0))))))
                (define (work) (let loop ((k 0) (s 0)) (if (= k 20) s (loop (+ k 1) (+ s (total (build 1000)))))))
                (map thread-join! (map (lambda (_) (spawn work)) '(1 2 3)))
                (gc)
                (map thread-join! (map (lambda (_) (spawn work)) '(1 2 3)))";
            let expected = "(9990000 9990000 9990000)";
            assert_eq!(last(&mut system.session(), text), expected, "{cell_cache:?} on {count}");
        });
    }
}

#[test]
fn out_of_memory_is_raised_in_the_thread_that_asked() {
    within_watchdog(|| {
        let system = boot(Options { memory_max_bytes: 24 << 20, ..on(2) });
        let mut session = system.session();
        let text = "
            (define others (spawn (lambda () (let loop ((i 0)) (if (< i 200000) (begin (cons i i) (loop (+ i 1))) 'fine)))))
            (define greedy (spawn (lambda () (let loop ((l '())) (loop (cons 1 l))))))
            (define vectors (spawn (lambda () (let loop ((l '())) (loop (cons (make-vector 10000 0) l))))))
            (list (thread-join! others)
                  (guard (e ((uncaught-exception? e) (error-object-message (uncaught-exception-reason e)))) (thread-join! greedy))
                  (guard (e ((uncaught-exception? e) (error-object-message (uncaught-exception-reason e)))) (thread-join! vectors)))";
        assert_eq!(last(&mut session, text), "(fine \"out of memory\" \"out of memory\")");
        assert_eq!(last(&mut session, "(length (make-list 1000 0))"), "1000");
    });
}

#[test]
fn a_deadlock_is_raised_in_the_main_thread() {
    let report = error(
        "(define m (make-mutex)) (mutex-lock! m) (spawn (lambda () (mutex-lock! m)))
                        (channel-receive (make-channel))",
    );
    assert!(report.message().starts_with("deadlock"), "{report}");
    assert!(report.message().contains("waits for a mutex"), "{report}");
    check(&[("(guard (e (#t 'caught)) (channel-receive (make-channel)))", "caught")]);
}

#[test]
fn reports_contain_position_cause_and_callers() {
    let report = error("(define (f x)\n  (+ 1 (car x)))\n(define (g) (+ 1 (f 5)))\n(display (g))")
        .to_string();
    assert!(report.starts_with("test.scm:2:"), "{report}");
    assert!(report.contains("car: first argument must be a pair: 5"), "{report}");
    assert!(
        report.contains("in f at test.scm:2:") && report.contains("in g at test.scm:3:"),
        "{report}"
    );
    let report = error("(define velocity 1)\n(display velocty)").to_string();
    assert!(report.starts_with("test.scm:2:"), "{report}");
    assert!(report.contains("velocty") && report.contains("did you mean velocity?"), "{report}");
    // `%missing` exists, but not for programs.
    assert!(
        !error("(missing 1)").to_string().contains("mean %"),
        "names of the system are not suggested"
    );
    let report = error("(define (f x) x)\n(f 1 2)").to_string();
    assert!(report.contains("f takes 1 argument, got 2"), "{report}");
    let report = error("(list 1)\n(let ((x 1) (y)) x)").to_string();
    assert!(report.starts_with("test.scm:2:"), "{report}");
    let report = error("(display (quote 1)").to_string();
    assert!(report.starts_with("test.scm:1:"), "{report}");
    for (raised, message) in [
        ("(error \"said\" 1 \"two\")", "said: 1 \"two\""),
        ("(error 5)", "5"),
        ("(error 'f \"said\" 1)", "f: \"said\" 1"),
    ] {
        assert_eq!(error(raised).message(), message);
    }
}

#[test]
fn an_interrupt_ends_the_evaluation_and_keeps_the_session() {
    for text in [
        "(let loop () (loop))",
        "(thread-sleep! 60)",
        "(channel-receive (make-channel))",
        "(raw-sleep 60)",
    ] {
        within_watchdog(move || {
            let system = boot(on(2));
            let mut session = system.session();
            last(
                &mut session,
                "(define x 5) (define other (spawn (lambda () (thread-sleep! 60))))",
            );
            let interrupt = session.handle();
            let (stop, stopped) = mpsc::channel::<()>();
            // Interrupts repeatedly, because the evaluation may not have begun at the first
            // interrupt.
            let again = kyocho_sys::thread::start("interrupter", 1 << 16, move || {
                let again = || stopped.recv_timeout(Duration::from_millis(5)).is_err();
                let calls = core::iter::repeat_with(again).take_while(|&go_on| go_on);
                calls.map(|_| interrupt.interrupt()).last()
            });
            let report = session.eval(text, "test").unwrap_err();
            stop.send(()).unwrap();
            again.unwrap().join().unwrap();
            assert_eq!(report.message(), "interrupted", "{text}");
            assert_eq!(last(&mut session, "x"), "5");
        });
    }
}

#[test]
fn sessions_answer_the_queries_of_a_prompt() {
    within_watchdog(|| {
        let system = boot(on(1));
        let mut session = system.session();
        assert_eq!(last(&mut session, "(define (square x) (* x x)) (square 5)"), "25");
        assert_eq!(session.eval("(values 1 2)", "p").unwrap().values, ["1", "2"]);
        assert!(session.names("squa").contains(&"square".to_owned()));
        assert!(matches!(completeness("(+ 1"), Completeness::Incomplete));
        assert!(matches!(completeness("(+ 1 2)"), Completeness::Complete));
        assert!(matches!(completeness(")"), Completeness::Wrong(_)));
        assert_eq!(last(&mut session, "(eval '(* 2 21) (environment '(scheme base)))"), "42");
        assert_eq!(session.exit_code(), None);
        last(
            &mut session,
            "(dynamic-wind (lambda () 1) (lambda () (exit 7)) (lambda () (display \"\")))",
        );
        assert_eq!(session.exit_code(), Some(7));
    });
}

#[test]
fn many_parked_threads_all_answer() {
    check(&[(
        "(define gate (make-channel))
         (define threads (let loop ((i 0) (l '())) (if (= i 5000) l (loop (+ i 1) (cons (spawn (lambda () (channel-receive gate))) l)))))
         (gc)
         (for-each (lambda (t) (channel-send! gate 1)) threads)
         (apply + (map thread-join! threads))",
        "5000",
    )]);
}

#[test]
fn recursion_without_end_is_caught_in_a_small_heap() {
    within_watchdog(|| {
        let options = Options { memory_max_bytes: 32 << 20, ..on(2) };
        let system = boot(options);
        let mut session = system.session();
        let text = "(define (deep f) (f (cons 1 (deep f))))
(define (caught thunk) (guard (e ((error-object? e) (error-object-message e))) (thunk)))
(map (lambda (f) (caught (lambda () (deep f)))) (list car cdr list))";
        let caught = "(\"recursion too deep\" \"recursion too deep\" \"recursion too deep\")";
        assert_eq!(last(&mut session, text), caught);
    });
}

#[test]
fn a_full_heap_can_be_handled_repeatedly_whatever_fills_it() {
    within_watchdog(|| {
        for memory_mib in [16, 64] {
            let options = Options { memory_max_bytes: memory_mib << 20, ..on(2) };
            let system = boot(options);
            let mut session = system.session();
            let text = "(define (pairs l) (pairs (cons 1 l)))
(define (vectors v) (vectors (vector v v v v)))
(define (strings l) (strings (cons (make-string 100 #\\a) l)))
(define (large l) (large (cons (make-vector 30000 l) l)))
(define circle (list 1 2 3))
(set-cdr! (cddr circle) circle)
(define (mapped l) (map list circle))
(define (caught f) (guard (e ((error-object? e) (error-object-message e))) (f '())))
(map caught (list pairs vectors vectors strings large mapped pairs))";
            let message = "\"out of memory\"";
            assert_eq!(last(&mut session, text), format!("({})", [message; 7].join(" ")));
            assert_eq!(last(&mut session, "(+ 1 2)"), "3");
        }
    });
}

#[test]
fn a_service_that_is_killed_is_started_again() {
    within_watchdog(|| {
        let system = boot(on(1));
        let mut session = system.session();
        let (service, collector) = (&system.kernel.system_call, &system.kernel.collector);
        for round in 0..5 {
            for service in [service.microprocess(), collector.microprocess()] {
                // The killed service may not have been restarted yet.
                let _gone = service.kill();
            }
            let text = "(gc) (length (let loop ((i 0) (l '())) (if (< i 100000) (loop (+ i 1) (cons i l)) l)))";
            assert_eq!(last(&mut session, text), "100000", "round {round}");
        }
    });
}
