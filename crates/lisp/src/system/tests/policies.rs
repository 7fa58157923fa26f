//! Policies written in Lisp: they decide; and when they misbehave in any way, the built-in ones
//! decide again.

use super::sessions::{eval, open, two};
use super::{boot, last, on, within_watchdog};
use crate::system::{Session, System};
use kyocho_heap::account::{Account, Bounds};

/// Used by all tests: a time limit that suffices on the busiest machine, and waiting until a policy
/// has been dismissed.
const TOOLS: &str = "
    (define patient 200)
    (define (seat kind) (let find ((l (policies)))
      (if (eq? (vector-ref (car l) 0) kind) (car l) (find (cdr l)))))
    ;; Why the policy was dismissed, when it is.
    (define (dismissal kind)
      (let wait ()
        (if (vector-ref (seat kind) 1) (begin (thread-sleep! 0.001) (wait)) (vector-ref (seat kind) 2))))
    (define (await ready?) (let wait () (if (not (ready?)) (begin (thread-sleep! 0.001) (wait)))))
    'ready";

fn with_tools(system: &System) -> Session {
    let mut session = system.session();
    assert_eq!(last(&mut session, TOOLS), "ready");
    session
}

#[test]
fn a_scheduler_in_lisp_decides_which_threads_run() {
    // On one virtual processor the thread with the lower priority gets almost nothing while the
    // other spins. Without the policy they take turns.
    within_watchdog(|| {
        let system = boot(on(1));
        let mut session = with_tools(&system);
        let text = "
            (define stop #f)
            (define counts (vector 0 0))
            (define (spinner i) (spawn (lambda ()
              (let loop () (if (not stop) (begin (vector-set! counts i (+ 1 (vector-ref counts i))) (loop)))))))
            (define behind (spinner 0))
            (define before (spinner 1))
            (thread-priority-set! (current-thread) 40)
            (define placed #f)
            (install-policy! 'scheduler
              (lambda (events)
                (if placed
                    '()
                    (begin (set! placed #t)
                           (list (cons (thread-number behind) 5) (cons (thread-number before) 20)))))
              patient)
            (await (lambda () placed))
            (define then (vector-copy counts))
            (await (lambda () (> (- (vector-ref counts 1) (vector-ref then 1)) 1000000)))
            (define gained (- (vector-ref counts 0) (vector-ref then 0)))
            (list (< gained 100000) (vector-ref (seat 'scheduler) 2))";
        assert_eq!(last(&mut session, text), "(#t #f)");
        let text = "
            (remove-policy! 'scheduler)
            (define then (vector-copy counts))
            (await (lambda () (> (- (vector-ref counts 0) (vector-ref then 0)) 100000)))
            (set! stop #t)
            (for-each thread-join! (list behind before))
            (vector-ref (seat 'scheduler) 1)";
        assert_eq!(last(&mut session, text), "#f");
    });
}

#[test]
fn a_scheduler_in_lisp_receives_the_events_of_threads() {
    within_watchdog(|| {
        let system = boot(on(2));
        let mut session = with_tools(&system);
        let text = "
            (define seen (make-hash-table equal?))
            (install-policy! 'scheduler
              (lambda (events)
                (for-each (lambda (e)
                    (hash-table-set! seen (cons (vector-ref e 0) (vector-ref e 2)) #t)
                    (if (> (vector-ref e 3) 0) (hash-table-set! seen (cons (vector-ref e 0) 'ran) #t)))
                  events)
                '())
              patient)
            (define gate (make-channel))
            (define t (spawn (lambda ()
              (channel-receive gate)
              (let loop ((i 0)) (if (< i 5000000) (loop (+ i 1)))))))
            (define (sees what) (await (lambda ()
              (hash-table-ref/default seen (cons (thread-number t) what) #f))))
            (sees 'blocked) (channel-send! gate 1) (sees 'ran) (thread-join! t) (sees 'ended)
            (hash-table-ref/default seen (cons (thread-number t) 'ready) 'never)";
        // Whether the state between two steps is seen is a matter of chance; the rest is not.
        assert!(["#t", "never"].contains(&&*last(&mut session, text)));
    });
}

/// Why a policy was dismissed that raised an error, or answered with an invalid order.
const ENDED: &str = "its thread has ended";

/// What a policy does, and the reported reason for its dismissal.
const MISBEHAVIOURS: &[(&str, &str)] = &[
    ("(let loop () (loop))", "no answer within 50ms"),
    // Whether its time or its memory is exhausted first is a matter of chance.
    ("(let loop ((l '())) (loop (cons l l)))", ""),
    ("(let loop ((l '())) (loop (cons (make-vector 100 0) l)))", ""),
    ("(let deeper ((n 0)) (+ 1 (deeper n)))", ""),
    ("(thread-sleep! 1000)", "no answer within 50ms"),
    ("(raw-sleep 1000)", "no answer within 50ms"),
    ("(channel-receive (make-channel))", "no answer within 50ms"),
    (
        "(begin (suspend (thread-number (current-thread))) (let loop () (loop)))",
        "no answer within 50ms",
    ),
    ("(let again () (with-exception-handler (lambda (e) (again)) (lambda () (again))))", ""),
    (
        "(dynamic-wind (lambda () 1) (lambda () (let loop () (loop))) (lambda () (let loop () (loop))))",
        "no answer within 50ms",
    ),
    ("(car 5)", ENDED),
    ("'nonsense", ENDED),
    ("'(1 2 3)", ENDED),
    ("'((1 . 62))", ENDED),
    ("'((live-bytes . 3))", ENDED),
    ("'((budget-bytes . -1))", ENDED),
    ("(let ((l (list (cons 1000000 5)))) (set-cdr! l l) l)", ENDED),
    ("(begin (thread-terminate! (current-thread)) '())", ENDED),
];

#[test]
fn the_built_in_policies_decide_again_when_one_in_lisp_misbehaves() {
    for count in [1, 2] {
        within_watchdog(move || {
            let system = boot(crate::options::Options { memory_max_bytes: 128 << 20, ..on(count) });
            let mut session = with_tools(&system);
            for &(body, reason) in MISBEHAVIOURS {
                misbehave(&mut session, "scheduler", body, reason);
                misbehave(&mut session, "collector", body, reason);
            }
        });
    }
}

fn misbehave(session: &mut Session, kind: &str, body: &str, reason: &str) {
    // A policy that answers incorrectly gets more time than one that does not answer, because the
    // machine may be busy.
    let seconds = if reason == ENDED { "patient" } else { "0.05" };
    let text = format!(
        "(install-policy! '{kind} (lambda (question) {body}) {seconds})
         (dismissal '{kind})"
    );
    let shown_text = last(session, &text);
    assert!(shown_text.contains(reason) && shown_text.len() > 2, "{kind}: {body}: {shown_text}");
    let alive = "(thread-join! (spawn (lambda () (gc) (length (make-list 1000)))))";
    assert_eq!(last(session, alive), "1000", "{kind}: {body}");
}

#[test]
fn a_thread_that_is_not_a_policy_cannot_answer_as_one() {
    within_watchdog(|| {
        let system = boot(on(2));
        let mut session = with_tools(&system);
        for kind in ["scheduler", "collector"] {
            let text = format!(
                "(define kept #f)
                 (install-policy! '{kind} (lambda (question) (call/cc (lambda (k) (set! kept k) '()))) patient)
                 (await (lambda () (if (eq? '{kind} 'collector) (gc)) kept))
                 (define answer (guard (e (#t 'refused)) (thread-join! (spawn (lambda () (kept '()))))))
                 (define seated (and (vector-ref (seat '{kind}) 1) #t))
                 (remove-policy! '{kind})
                 (list answer seated)"
            );
            assert_eq!(last(&mut session, &text), "(refused #t)", "{kind}");
        }
    });
}

#[test]
fn a_policy_ends_with_its_thread_its_session_and_its_successor() {
    within_watchdog(|| {
        let system = boot(on(2));
        let mut session = with_tools(&system);
        let killed = "
            (define t (install-policy! 'scheduler (lambda (events) '()) patient))
            (kill (thread-number t))
            (dismissal 'scheduler)";
        assert_eq!(last(&mut session, killed), "\"its thread has ended\"");
        let replaced = "
            (define first (install-policy! 'collector (lambda (question) '()) patient))
            (define second (install-policy! 'collector (lambda (question) '()) patient))
            (guard (e ((terminated-thread-exception? e) (eqv? (vector-ref (seat 'collector) 1) (thread-number second))))
              (thread-join! first))";
        assert_eq!(last(&mut session, replaced), "#t");
        let operator = Account::new("ada", Bounds { memory_bytes_max: 32 << 20, ..Bounds::NONE });
        let (mut other, page) = open(&system, &operator);
        let seated = "(install-policy! 'scheduler (lambda (events) (let loop () (loop))) 0.05)
            (let wait () (if (vector-ref (car (policies)) 1) (begin (thread-sleep! 0.001) (wait))))
            (thread-number (install-policy! 'scheduler (lambda (events) '()) 200))";
        let number = eval(&mut other, seated);
        assert!(number.parse::<u64>().is_ok(), "{number}");
        assert_eq!(last(&mut session, "(vector-ref (seat 'scheduler) 1)"), number);
        other.flush_output();
        let shown_text = page.text();
        assert!(shown_text.contains("scheduler policy: no answer within 50ms"), "{shown_text}");
        drop(other);
        assert_eq!(last(&mut session, "(dismissal 'scheduler)"), "\"its thread has ended\"");
    });
}

#[test]
fn a_collector_in_lisp_decides_when_and_how_much() {
    within_watchdog(|| {
        let system = boot(on(2));
        let mut session = with_tools(&system);
        let text = "
            (define questions '())
            (define (ask what) (cdr (assq what (car questions))))
            (define (garbage) (do ((i 0 (+ i 1))) ((= i 64)) (make-vector 131072 0)))
            (define (collections) (let find ((l (system-call-statistics)))
              (if (eq? (vector-ref (car l) 0) 'collection) (vector-ref (car l) 2) (find (cdr l)))))
            (define (during thunk) (let ((before (collections))) (thunk) (- (collections) before)))
            (define (refills) (let count ((l (system-call-statistics)) (n 0))
              (cond ((null? l) n)
                    ((and (eq? (vector-ref (car l) 0) 'cons) (not (eq? (vector-ref (car l) 1) 'cache)))
                     (count (cdr l) (+ n (vector-ref (car l) 2))))
                    (else (count (cdr l) n)))))
            (define (conses n) (let loop ((i 0) (l '())) (if (= i n) l (loop (+ i 1) (cons i l)))))
            (define seldom (during garbage))
            (install-policy! 'collector
              (lambda (question)
                (set! questions (cons question questions))
                '((budget-bytes . 2097152) (keep-bytes . 0) (refill-ns . 0)))
              patient)
            (await (lambda () (pair? questions)))
            (define resident (ask 'resident-bytes))
            (define often (during garbage))
            (define before (refills))
            (define kept (conses 100000))
            (define asked (- (refills) before))
            (gc) (gc)
            (await (lambda () (>= (ask 'collections) (collections))))
            (list (< seldom 8) (>= often 8) (>= asked 3000) (< (ask 'resident-bytes) resident))";
        assert_eq!(last(&mut session, text), "(#t #t #t #t)");
        let text = "
            (remove-policy! 'collector) (gc)
            (define before (refills))
            (define kept (conses 100000))
            (list (< (during garbage) 8) (< (- (refills) before) 3000))";
        assert_eq!(last(&mut session, text), "(#t #t)");
    });
}

#[test]
fn only_an_operator_may_install_policies() {
    two(|system, ada, _| {
        let (mut session, _) = open(&system, &ada);
        for text in
            ["(install-policy! 'scheduler (lambda (events) '()))", "(remove-policy! 'collector)"]
        {
            assert!(
                eval(&mut session, text).ends_with("ada is not an operator of the system"),
                "{text}"
            );
        }
        let wrong = eval(&mut system.session(), "(install-policy! 'memory (lambda (events) '()))");
        assert!(wrong.contains("`scheduler` or `collector`"), "{wrong}");
    });
}

#[test]
fn the_watchdog_of_policies_is_started_again() {
    within_watchdog(|| {
        let system = boot(on(1));
        let mut session = with_tools(&system);
        let watchdog = system.kernel.watchdog.microprocess();
        watchdog.kill().unwrap();
        let text = "(install-policy! 'collector (lambda (question) (let loop () (loop))) 0.05) (dismissal 'collector)";
        assert_eq!(last(&mut session, text), "\"no answer within 50ms\"");
    });
}

#[test]
fn the_example_of_policies_runs() {
    within_watchdog(|| {
        let system = boot(on(1));
        let operator = Account::new("ada", Bounds::NONE);
        let (mut session, page) = open(&system, &operator);
        // As in the example, but with time limits for a busy machine.
        let text = include_str!("../../../../../examples/policies.scm");
        let patient =
            text.replace("feedback)\n(", "feedback 200)\n(").replace("frugal)\n", "frugal 200)\n");
        eval(&mut session, &patient);
        session.flush_output();
        assert_eq!(page.text(), "the hog has sunk\n#(scheduler #f #f)\n#(collector #f #f)\n");
    });
}
