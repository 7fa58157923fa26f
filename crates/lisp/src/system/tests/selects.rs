//! Waiting for the first of several channels: many threads, deadlocks, leftovers. Single cases are
//! in `tests/scheme/select.scm`.

use super::sessions::open;
use super::{Options, boot, check, error, last, on, within_watchdog};
use kyocho_heap::account::{Account, Bounds, Usage};

const CROWD: &str = include_str!("selects/crowd.scm");

/// Runs many threads on one and on two virtual processors; nothing of them remains.
fn crowds(kills: &'static str) {
    for count in [1, 2] {
        within_watchdog(move || {
            let system = boot(on(count));
            let account = Account::new("ada", Bounds::NONE);
            let (mut session, page) = open(&system, &account);
            session.eval(CROWD, "crowd.scm").unwrap();
            for seed in 1..=10 {
                let outcome = last(&mut session, &format!("(crowd {seed} {kills})"));
                assert_eq!(outcome, "()", "seed {seed}, {count} processors: {}", page.text());
            }
            drop(session);
            assert_eq!(account.usage(), Usage::default());
        });
    }
}

#[test]
fn each_message_is_received_once_and_was_sent() {
    crowds("#f");
}

#[test]
fn a_thread_that_is_ended_takes_at_most_one_message() {
    crowds("#t");
}

#[test]
fn a_body_is_in_tail_position() {
    within_watchdog(|| {
        let options = Options { stack_max_bytes: 1 << 20, ..on(1) };
        let text = "
            (define (turns n)
              (if (= n 0) 'end
                  (select ((channel-receive (make-channel)) 'got)
                          ((n (channel-receive (let ((c (make-channel 1))) (channel-send! c (- n 1)) c))) (turns n)))))
            (turns 100000)";
        assert_eq!(last(&mut boot(options).session(), text), "end");
    });
}

#[test]
fn a_deadlock_report_includes_selects() {
    let report =
        error("(select ((channel-receive (make-channel)) 1) ((channel-send! (make-channel) 1) 2))");
    assert!(report.message().starts_with("deadlock"), "{report}");
    assert!(report.message().contains("waits for one of several channels"), "{report}");
    check(&[
        ("(define c (make-channel))", ""),
        ("(guard (e (#t 'caught)) (select ((channel-send! c 1) 'sent)))", "caught"),
        ("(select ((channel-receive c) 'got) (else 'gone))", "gone"),
    ]);
}

#[test]
fn a_wait_with_a_timeout_is_no_deadlock() {
    check(&[(
        "(let ((c (make-channel)))
           (spawn (lambda () (select ((channel-receive (make-channel)) 1) ((thread-sleep! 0.05) (channel-send! c 'late)))))
           (channel-receive c))",
        "late",
    )]);
}

#[test]
fn a_waiting_select_and_its_queue_entries_are_charged() {
    within_watchdog(|| {
        const CASES: usize = 1000;
        const THREADS: usize = 64;
        let system = boot(on(1));
        let account = Account::new("ada", Bounds::NONE);
        let (mut session, page) = open(&system, &account);
        let mut bytes_after = |text: &str| {
            assert_eq!(last(&mut session, text), "", "{}", page.text());
            assert_eq!(last(&mut session, "(gc) 'collected"), "collected");
            account.live_bytes()
        };
        let text = format!(
            "(define channels (list-tabulate {CASES} (lambda (i) (make-channel))))
             (define cases (map (lambda (c) (list 'send c 1)) channels))"
        );
        let idle = bytes_after(&text);
        let text = format!(
            "(define waiting (list-tabulate {THREADS} (lambda (i) (spawn (lambda () (channel-select cases))))))
             (define (count-waiting) (length (string-search-all \"several channels\" (with-output-to-string ps))))
             (let loop () (if (< (count-waiting) {THREADS}) (begin (thread-yield!) (loop))))"
        );
        let waiting = bytes_after(&text);
        // For each case: a word for its kind, a word for its channel, and an offer.
        assert!(waiting > idle + CASES * THREADS * 6 * size_of::<usize>(), "{waiting} from {idle}");
        // A thread that is woken in vain makes no second offer.
        let text = "(do ((i 0 (+ i 1))) ((= i 200))
               (with-output-to-string (lambda () (bt (thread-number (car waiting))))))";
        let woken = bytes_after(text);
        assert!(woken < waiting + (1 << 20), "{woken} from {waiting}");
        let text = "(for-each thread-terminate! waiting)
             (for-each (lambda (t) (guard (e (#t 'ended)) (thread-join! t))) waiting)
             (set! waiting #f)";
        let left = bytes_after(text);
        assert!(left > idle + CASES * THREADS * 4 * size_of::<usize>(), "{left} from {idle}");
        assert!(left < waiting, "{left} from {waiting}");
        let gone = bytes_after("(set! channels #f) (set! cases #f)");
        assert!(gone < idle, "{gone} from {idle}");
    });
}
