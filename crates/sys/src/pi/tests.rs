use std::sync::mpsc;

use super::{Loan, lend, name, repay};
use crate::clock::monotonic_ns;
use crate::prim::atomic::{AtomicU32, Ordering};
use crate::prim::thread::{scope, yield_now};
use crate::scheduling::{Class, class, set_class};
use crate::skip::skip;
use crate::task::ThreadId;

/// A deadline that a test which works never sees.
fn far_ns() -> u64 {
    monotonic_ns() + 60_000_000_000
}

/// The level at which the kernel runs a thread: -100 + 99 - level in a real-time class, 0 and more in time sharing.
fn level(thread: ThreadId) -> i32 {
    let stat =
        std::fs::read_to_string(format!("/proc/self/task/{}/stat", thread.number())).unwrap();
    // Behind the name in brackets: state, then fields 4 and on; the level is field 18.
    stat.rsplit(')').next().unwrap().split_whitespace().nth(15).unwrap().parse().unwrap()
}

#[test]
fn debtor_runs_in_the_lenders_class_until_it_repays() {
    let word = AtomicU32::new(0);
    scope(|threads| {
        let (tell, told) = mpsc::channel();
        let word = &word;
        let debtor = threads.spawn(move || {
            let me = ThreadId::current();
            tell.send(me).unwrap();
            // Somebody waits.
            while word.load(Ordering::SeqCst) & libc::FUTEX_WAITERS == 0 {
                yield_now();
            }
            let lent = level(me);
            repay(word, me);
            (lent, level(me))
        });
        let debtor_id = told.recv().unwrap();
        let lender = threads.spawn(move || {
            let may = set_class(ThreadId::current(), Class::Fifo(20)).is_ok();
            (may, lend(name(word, debtor_id), far_ns()))
        });
        let (may, loan) = lender.join().unwrap();
        assert_eq!(loan, Loan::Repaid);
        let (lent, after) = debtor.join().unwrap();
        assert!(after >= 0, "it is as it was");
        if may {
            assert_eq!(lent, -21, "level 20 is lent");
        } else {
            skip("the level that is lent", "real-time scheduling needs CAP_SYS_NICE");
        }
    });
    assert_eq!(word.load(Ordering::SeqCst), 0, "nobody has it");
    assert_eq!(class(ThreadId::current()), Ok(Some(Class::Normal)));
}

#[test]
fn loan_ends_by_its_deadline_and_with_its_debtor() {
    let word = AtomicU32::new(0);
    scope(|threads| {
        let (tell, told) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let debtor = threads.spawn(move || {
            tell.send(ThreadId::current()).unwrap();
            may_end.recv().unwrap();
        });
        let id = told.recv().unwrap();
        assert_eq!(lend(name(&word, id), monotonic_ns() + 1_000_000), Loan::TimedOut);
        end.send(()).unwrap();
        // Repaid by its death, or refused because it is gone already.
        assert_ne!(lend(name(&word, id), far_ns()), Loan::TimedOut);
        debtor.join().unwrap();
        assert_eq!(lend(name(&word, id), far_ns()), Loan::Refused);
    });
}

#[test]
fn nonsense_in_the_word_is_refused() {
    let me = ThreadId::current();
    let word = AtomicU32::new(0);
    assert_eq!(lend(name(&word, me), far_ns()), Loan::Refused, "nobody lends to himself");
    word.store(u32::MAX, Ordering::SeqCst);
    repay(&word, me);
    let named = name(&word, ThreadId::new(libc::FUTEX_TID_MASK));
    assert_eq!(lend(named, far_ns()), Loan::Refused, "no thread has that number");
}
