//! Tracing of calls, profiling, counting of system calls.

use super::debugger::shown;
use super::sessions::{eval, open, two};

#[test]
fn a_traced_procedure_reports_its_calls() {
    two(|system, ada, bob| {
        let ((mut a, page), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        eval(&mut a, "(define (count n) (if (= n 0) (values 'done \"x\") (count (- n 1))))");
        eval(&mut a, "(define (double n) (* 2 n)) (trace count double) (trace double)");
        let shown_text = shown(&mut a, &page, "(call-with-values (lambda () (count 1)) list)");
        assert_eq!(shown_text, "| (count 1)\n| | (count 0)\n| | => done \"x\"\n| => done \"x\"\n");
        let deep = shown(&mut a, &page, "(count 40)");
        assert!(deep.contains(&format!("\n{}(count 20)\n", "| ".repeat(21))), "{deep}");
        assert!(deep.contains(&format!("\n{}40 (count 0)\n", "| ".repeat(21))), "{deep}");
        assert_eq!(shown(&mut a, &page, "(+ 1 (double 2))"), "| (double 2)\n| => 4\n");
        assert_eq!(eval(&mut a, "(list-sort symbol<? (trace))"), "(count double)");
        assert_eq!(eval(&mut b, "(trace)"), "()", "each session traces for itself");
        let shown_text = shown(&mut a, &page, "(thread-join! (spawn (lambda () (double 5))))");
        assert_eq!(shown_text, "| (double 5)\n| => 10\n");
        assert_eq!(shown(&mut a, &page, "(untrace count double) (count (double 1))"), "");
        assert_eq!(eval(&mut a, "(trace)"), "()");
        let long = shown(&mut a, &page, "(trace double) (guard (e (#t 1)) (double (iota 1000)))");
        assert!(long.len() < 300 && long.ends_with(" ...\n"), "{long}");
        assert!(eval(&mut a, "(trace car)").contains("car"), "imported names are not changed");
        assert!(eval(&mut a, "(define five 5) (trace five)").contains("procedure"));
    });
}

/// A program that spends almost all of its time in one of two procedures.
const BUSY: &str = "
    (define (busy n) (let loop ((i 0) (s 0)) (if (< i n) (loop (+ i 1) (+ s (remainder i 7))) s)))
    (define (idle) (thread-sleep! 0.001))
    (define (work rounds) (do ((i 0 (+ i 1))) ((= i rounds) 'worked) (list (busy 100000)) (list (idle))))
    (define (looks p) (apply + (map car p)))
    (define (until-seen) (let ((p (profile (lambda () (work 50))))) (if (> (looks p) 20) p (until-seen))))";

#[test]
fn the_profiler_finds_the_running_procedure() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        eval(&mut a, BUSY);
        eval(&mut a, "(define p (until-seen))");
        let met = "(apply + (map car (filter (lambda (e) (member name (cddr e))) p)))";
        let share = |name: &str| format!("(let ((name \"{name}\")) (>= (* 2 {met}) (looks p)))");
        assert_eq!(eval(&mut a, &share("busy")), "#t", "{}", eval(&mut a, "p"));
        assert_eq!(eval(&mut a, &share("idle")), "#f", "{}", eval(&mut a, "p"));
        let folded = eval(&mut a, "(profile->folded p)");
        assert!(folded.contains("main;") && folded.contains(";work;busy "), "{folded}");
        let svg = eval(&mut a, "(profile->svg p)");
        assert!(svg.contains("<svg") && svg.contains("busy ("), "{svg}");
        let report = shown(&mut a, &page, "(profile-report p)");
        assert!(report.lines().any(|line| line.ends_with("  busy")), "{report}");
        assert_eq!(ada.usage().threads, 0, "its thread has ended");
    });
}

#[test]
fn invalid_profiles_are_errors() {
    two(|system, ada, _| {
        let (mut a, _) = open(&system, &ada);
        assert!(eval(&mut a, "(profile-stop! 5)").contains("profiler"));
        for interval in ["0", "-1", "'often", "+nan.0"] {
            let message = eval(&mut a, &format!("(profile-start! {interval})"));
            assert!(message.contains("positive number of seconds"), "{message}");
        }
        assert!(eval(&mut a, "(profile->svg '())").starts_with("error profile->svg: "));
        let message = eval(&mut a, "(profile (lambda () (car 5)))");
        assert!(message.contains("car: first argument must be a pair"), "{message}");
        assert!(eval(&mut a, "(profile-report '())").is_empty());
        let huge = "(profile->svg (list (list 1 \"main\" (make-string 2000000 #\\x))))";
        assert!(eval(&mut a, huge).contains("more than 1048576 bytes"));
    });
}

#[test]
fn system_calls_are_counted() {
    const TIMES: &str = "
        (define (times name how)
          (let ((row (find (lambda (row) (and (eq? name (vector-ref row 0)) (eq? how (vector-ref row 1))))
                           (system-call-statistics))))
            (and row (vector-ref row 2))))
        (define (more name how thunk) (let ((before (times name how))) (thunk) (- (times name how) before)))";
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        eval(&mut a, TIMES);
        let locks = "(let ((m (make-mutex))) (more 'mutex-lock! 'step
            (lambda () (do ((i 0 (+ i 1))) ((= i 100)) (mutex-lock! m) (mutex-unlock! m)))))";
        assert_eq!(eval(&mut a, locks), "100");
        // With two virtual processors the callers serve their own requests. Each request gets many
        // cells.
        let conses = "(define (conses) (let loop ((i 0) (l '())) (if (< i 100000) (loop (+ i 1) (cons i l)) l)))";
        eval(&mut a, conses);
        let asked: u64 = eval(&mut a, "(more 'cons 'caller conses)").parse().unwrap();
        let cached: u64 = eval(&mut a, "(more 'cons 'cache conses)").parse().unwrap();
        assert!((1..10_000).contains(&asked), "{asked}");
        assert!(cached > 90_000, "{cached}");
        assert_eq!(
            eval(&mut a, "(more 'cons 'message conses)"),
            "error -: first argument must be a number: #f"
        );
        assert_eq!(eval(&mut a, "(> (more 'collection 'message gc) 0)"), "#t");
        assert_eq!(eval(&mut a, "(> (more 'host 'outside (lambda () (raw-sleep 0.001))) 0)"), "#t");
        let table = shown(&mut a, &page, "(system-calls)");
        assert!(table.lines().any(|line| line.ends_with("  step     mutex-lock!")), "{table}");
        assert!(!table.contains('%'), "{table}");
    });
}
