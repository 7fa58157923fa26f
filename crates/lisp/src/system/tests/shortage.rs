//! A thread that handles an out-of-memory error continues, however often the error occurs and
//! whichever thread fills the heap.

use super::{boot, last, on, within_watchdog};
use crate::options::Options;

/// Procedures that fill the heap.
const FILLS: &str = "
    (define (pairs l) (pairs (cons 1 l)))
    (define (vectors v) (vectors (vector v v v v)))
    (define (strings l) (strings (cons (make-string 100 #\\a) l)))
    (define (large l) (large (cons (make-vector 30000 l) l)))
    (define (flonums l x) (flonums (cons (+ x 0.5) l) (+ x 1.0)))
    ;; The data is in a variable of a procedure that calls itself in tail position. So no call
    ;; returns, which would release the data, before the error is raised.
    (define (again fill n)
      (if (= n 0)
          'done
          (let ((caught (guard (e ((error-object? e) (error-object-message e))) (fill))))
            (if (equal? caught \"out of memory\") (again fill (- n 1)) caught))))
    (define (outcome thread)
      (guard (e ((uncaught-exception? e) (list 'ended (uncaught-exception-reason e)))) (thread-join! thread)))
    (define (together . fills)
      (map outcome (map (lambda (fill) (spawn (lambda () (again fill 8)))) fills)))";

/// The result of the text on a small heap.
fn check(counts: &'static [usize], text: &'static str, expected: &'static str) {
    for &count in counts {
        within_watchdog(move || {
            let system = boot(Options { memory_max_bytes: 24 << 20, ..on(count) });
            let mut session = system.session();
            assert_eq!(last(&mut session, FILLS), "");
            assert_eq!(last(&mut session, text), expected, "{text} on {count}");
            assert_eq!(last(&mut session, "(length (make-list 1000 0))"), "1000");
        });
    }
}

#[test]
fn a_thread_that_handles_a_shortage_continues() {
    check(
        &[1, 2],
        "(append (together (lambda () (pairs '())))
                 (together (lambda () (vectors '())))
                 (together (lambda () (strings '())))
                 (together (lambda () (large '())))
                 (together (lambda () (flonums '() 0.0))))",
        "(done done done done done)",
    );
}

#[test]
fn it_continues_while_another_thread_fills_the_heap_too() {
    check(&[1], "(together (lambda () (pairs '())) (lambda () (pairs '())))", "(done done)");
}
