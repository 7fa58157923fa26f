//! How long does it take to end a thread, depending on what it is doing?
//!
//! `cargo bench -p kyocho-lisp --bench kills [-- KILLS]`: starts a thread for each kill (200 by
//! default) and waits until it is in the state. The time runs from `thread-terminate!` to the
//! return of `thread-join!`. Unit: milliseconds; the target is 10 in each state. Baseline in the
//! same run: a thread that waits for a message and ends when it arrives. Checked: each thread was
//! terminated, and ran the last procedure of its `dynamic-wind`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench reports, and may fail")]

use kyocho_lisp::system::{Options, Session, System};

const KILLS: usize = 200;
const MARK_MS: f64 = 10.0;

const TOOLS: &str = "
    (define lasts 0)
    (define (port-of listener)
      (string->number (car (reverse (string-split (socket-address listener) #\\:)))))
    (define (ms-since begin) (* 1000 (- (time->seconds (current-time)) begin)))
    (define (now) (time->seconds (current-time)))
    (define (end-ms thunk)
      (let* ((begun (make-channel 1))
             (t (spawn (lambda ()
                  (dynamic-wind (lambda () #f)
                                (lambda () (channel-send! begun #t) (thunk))
                                (lambda () (set! lasts (+ lasts 1))))))))
        (channel-receive begun)
        (thread-sleep! 0.003)
        (let ((begin (now)))
          (thread-terminate! t)
          (guard (e ((terminated-thread-exception? e) (ms-since begin))) (thread-join! t)))))
    (define (told-ms)
      (let* ((told (make-channel)) (t (spawn (lambda () (channel-receive told)))))
        (thread-sleep! 0.003)
        (let ((begin (now))) (channel-send! told #t) (thread-join! t) (ms-since begin))))
    (define (all-ms count ms) (let loop ((n 0) (l '())) (if (= n count) l (loop (+ n 1) (cons (ms) l)))))
    (define long (iota 1000000))
    (define taken (make-mutex)) (mutex-lock! taken #f #f)
    (define sleeper (spawn (lambda () (thread-sleep! 1000000))))
    (define listener (tcp-listen \"127.0.0.1\" 0))
    (define client (tcp-connect \"127.0.0.1\" (port-of listener)))
    (define served (socket-accept listener))
    (define input (socket-input-port client))
    (define (dag n) (let loop ((n n) (x '())) (if (= n 0) x (loop (- n 1) (cons x x)))))";

const STATES: &[(&str, &str)] = &[
    ("a loop", "(let loop () (loop))"),
    ("allocation", "(let loop () (list 1 2 3) (loop))"),
    ("collections", "(let loop () (gc) (loop))"),
    ("exceptions", "(let loop () (guard (e (#t (loop))) (raise 'again)))"),
    ("member of a long list", "(let loop () (member 'x long) (loop))"),
    ("a vector of 8 MB filled", "(let loop () (vector-fill! (make-vector 1000000 0) 1) (loop))"),
    ("3 to the power of 100,000", "(let loop () (expt 3 100000) (loop))"),
    ("equal? of shared parts", "(let loop () (equal? (dag 60) (dag 60)) (loop))"),
    ("turns given away", "(let loop () (thread-yield!) (loop))"),
    ("sleep", "(thread-sleep! 1000)"),
    ("a mutex", "(mutex-lock! taken)"),
    (
        "a condition variable",
        "(let ((m (make-mutex))) (mutex-lock! m) (mutex-unlock! m (make-condition-variable)))",
    ),
    ("a channel to receive from", "(channel-receive (make-channel))"),
    ("a channel to send to", "(channel-send! (make-channel) 1)"),
    ("another thread's end", "(thread-join! sleeper)"),
    ("a call into the kernel", "(raw-sleep 1000)"),
    ("a socket to accept from", "(socket-accept listener)"),
    ("a socket to read from", "(read-char input)"),
    (
        "a program's end",
        "(program-wait (car (car (start-programs '((\"sleep\" \"1000\")) #f #f #f '()))))",
    ),
];

fn main() {
    let kills = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(KILLS);
    let system = System::boot(Options::default(), &mut |_| {}).unwrap();
    let mut session = system.session();
    session.eval(TOOLS, "bench").unwrap();
    println!("{kills} threads ended in each state, ms; the mark is {MARK_MS}");
    report(&mut session, "told by a message, ends itself", kills, "told-ms");
    for (name, body) in STATES {
        let before: usize = value(&mut session, "lasts").parse().unwrap();
        report(&mut session, name, kills, &format!("(lambda () (end-ms (lambda () {body})))"));
        let after: usize = value(&mut session, "lasts").parse().unwrap();
        assert_eq!(after - before, kills, "{name}: each ran its last procedure");
    }
}

fn value(session: &mut Session, text: &str) -> String {
    session.eval(text, "bench").unwrap().values.last().cloned().unwrap_or_default()
}

fn report(session: &mut Session, name: &str, kills: usize, ms: &str) {
    let list = value(session, &format!("(all-ms {kills} {ms})"));
    let numbers = list.trim_matches(['(', ')']).split_whitespace();
    let mut sorted: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
    assert_eq!(sorted.len(), kills, "{name}: {list}");
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted[((kills - 1) as f64 * part) as usize];
    let verdict = if at(0.99) <= MARK_MS { "" } else { "  beyond the mark" };
    println!(
        "{name:<32} p50 {:7.3}  p99 {:7.3}  longest {:7.3}{verdict}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
