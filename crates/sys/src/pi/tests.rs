use std::sync::mpsc;

use super::{DonationEnd, donate, end_donations, name};
use crate::clock::monotonic_ns;
use crate::prim::atomic::{AtomicU32, Ordering};
use crate::prim::thread::{scope, yield_now};
use crate::scheduling::{Class, class, set_class};
use crate::skip::skip;
use crate::task::ThreadId;

/// A deadline that a working test never reaches.
fn far_ns() -> u64 {
    monotonic_ns() + 60_000_000_000
}

/// The kernel's priority of a thread: -1 - level in a real-time class, at least 0 in time sharing.
fn level(thread: ThreadId) -> i32 {
    let stat =
        std::fs::read_to_string(format!("/proc/self/task/{}/stat", thread.number())).unwrap();
    // After the name in parentheses come field 3 (the state) and the following ones; the priority
    // is field 18.
    stat.rsplit(')').next().unwrap().split_whitespace().nth(15).unwrap().parse().unwrap()
}

#[test]
fn recipient_runs_in_the_donors_class_until_it_ends_the_donation() {
    let word = AtomicU32::new(0);
    scope(|threads| {
        let (send, received) = mpsc::channel();
        let word = &word;
        let recipient = threads.spawn(move || {
            let me = ThreadId::current();
            send.send(me).unwrap();
            // Until a thread waits.
            while word.load(Ordering::SeqCst) & libc::FUTEX_WAITERS == 0 {
                yield_now();
            }
            let donated = level(me);
            end_donations(word, me);
            (donated, level(me))
        });
        let recipient_id = received.recv().unwrap();
        let donor = threads.spawn(move || {
            let may = set_class(ThreadId::current(), Class::Fifo(20)).is_ok();
            (may, donate(name(word, recipient_id), far_ns()))
        });
        let (may, donation) = donor.join().unwrap();
        assert_eq!(donation, DonationEnd::Ended);
        let (donated, after) = recipient.join().unwrap();
        assert!(after >= 0, "the class must be restored");
        if may {
            assert_eq!(donated, -21, "level 20 must be donated");
        } else {
            skip("the level that is donated", "real-time scheduling needs CAP_SYS_NICE");
        }
    });
    assert_eq!(word.load(Ordering::SeqCst), 0, "the word must be free");
    assert_eq!(class(ThreadId::current()), Ok(Some(Class::Normal)));
}

#[test]
fn donation_ends_at_its_deadline_and_with_its_recipient() {
    let word = AtomicU32::new(0);
    scope(|threads| {
        let (send, received) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let recipient = threads.spawn(move || {
            send.send(ThreadId::current()).unwrap();
            may_end.recv().unwrap();
        });
        let id = received.recv().unwrap();
        assert_eq!(donate(name(&word, id), monotonic_ns() + 1_000_000), DonationEnd::TimedOut);
        end.send(()).unwrap();
        // Ended by its death, or refused because it has ended already.
        assert_ne!(donate(name(&word, id), far_ns()), DonationEnd::TimedOut);
        recipient.join().unwrap();
        assert_eq!(donate(name(&word, id), far_ns()), DonationEnd::Refused);
    });
}

#[test]
fn word_that_names_no_other_thread_is_refused() {
    let me = ThreadId::current();
    let word = AtomicU32::new(0);
    assert_eq!(
        donate(name(&word, me), far_ns()),
        DonationEnd::Refused,
        "a thread cannot donate to itself"
    );
    word.store(u32::MAX, Ordering::SeqCst);
    end_donations(&word, me);
    let named = name(&word, ThreadId::new(libc::FUTEX_TID_MASK));
    assert_eq!(donate(named, far_ns()), DonationEnd::Refused, "no thread has this number");
}
