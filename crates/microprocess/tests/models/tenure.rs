//! A record is renewed for another microprocess, while the end of a run and a stale handle check
//! whether it still belongs to them.

#[path = "../../src/protocol/tenure.rs"]
mod real;

use loom::thread::spawn;

use crate::prim::atomic::{AtomicU64, Ordering, forget_orderings};
use crate::{explore, for_ever, must_fail};
use real::{NO_ID, begin, end, is_of_run, renew, while_it_is};

const FREE: u64 = 0;
const USED: u64 = 1;
const FINISHED: u64 = 2;
/// The home in the run that has ended, and in the run that continues.
const OLD_HOME: u64 = 1;
const NEW_HOME: u64 = 2;
/// The microprocess of each run.
const OLD: u64 = 7;
const NEW: u64 = 8;

/// The parts of a record that a renewal uses.
struct Record {
    id: AtomicU64,
    home: AtomicU64,
    state: AtomicU64,
    finished: AtomicU64,
}

impl Record {
    /// A record that belonged to `OLD`, or still does, depending on `state`.
    fn of_the_old_run(state: u64) -> &'static Self {
        let record = Self {
            id: AtomicU64::new(OLD),
            home: AtomicU64::new(OLD_HOME),
            state: AtomicU64::new(state),
            finished: AtomicU64::new(0),
        };
        // The first use of these words.
        for word in [&record.id, &record.home, &record.state, &record.finished] {
            word.load(Ordering::Relaxed);
        }
        for_ever(record)
    }

    fn set_home(&self) {
        self.home.store(NEW_HOME, Ordering::Relaxed);
    }

    fn set_state(&self) {
        self.state.store(USED, Ordering::Relaxed);
    }

    /// `Shared::take_records`: returns whether the end of the old run takes it.
    fn is_taken(&self) -> bool {
        let is_used = || self.state.load(Ordering::Relaxed) == USED;
        let is_ours = || self.home.load(Ordering::Relaxed) == OLD_HOME;
        is_of_run(is_used, is_ours) && end(&self.id, self.id.load(Ordering::Relaxed))
    }

    /// `Record::renew`.
    fn renew(&self) {
        renew(&self.id, || self.set_home(), || self.set_state());
        self.finished.store(0, Ordering::Relaxed);
        begin(&self.id, NEW);
    }

    /// Mutant: the state is set before the home.
    fn renew_state_first(&self) {
        self.set_state();
        self.finished.store(0, Ordering::Relaxed);
        self.set_home();
        begin(&self.id, NEW);
    }

    /// Mutant: the id of the former microprocess stays until there is a new one.
    fn renew_id_last(&self) {
        self.set_home();
        self.set_state();
        self.finished.store(0, Ordering::Relaxed);
        self.finished.store(1, Ordering::Relaxed);
        begin(&self.id, NEW);
    }
}

/// The slot is free, and another run takes it while the old one ends.
fn renewed_beside_a_walk(renew: fn(&Record)) {
    explore(None, move || {
        let record = Record::of_the_old_run(FREE);
        let walk = spawn(move || record.is_taken());
        renew(record);
        assert!(!walk.join().unwrap(), "the end of one run takes a microprocess of another");
        assert_eq!(record.id.load(Ordering::Relaxed), NEW);
    });
}

#[test]
fn end_of_a_run_takes_no_record_that_another_run_renews() {
    renewed_beside_a_walk(Record::renew);
}

#[test]
fn state_set_before_the_home_is_caught() {
    must_fail(|| renewed_beside_a_walk(Record::renew_state_first));
}

#[test]
fn renewals_whose_orderings_are_forgotten_are_caught() {
    must_fail(|| {
        forget_orderings();
        renewed_beside_a_walk(Record::renew);
    });
}

/// The microprocess has finished in a former run with the same virtual processors. Its handle gives
/// the slot back, and another run takes it, while the run that has those virtual processors now
/// ends.
fn given_back_beside_a_walk(renew: fn(&Record)) {
    explore(None, move || {
        let record = Record::of_the_old_run(FINISHED);
        let walk = spawn(move || record.is_taken());
        record.state.store(FREE, Ordering::Relaxed);
        renew(record);
        assert!(!walk.join().unwrap(), "the end of one run takes a microprocess of another");
        assert_eq!(record.id.load(Ordering::Relaxed), NEW);
    });
}

#[test]
fn end_of_a_run_takes_nothing_that_a_former_one_with_its_processors_left() {
    given_back_beside_a_walk(Record::renew);
}

#[test]
fn a_slot_of_a_former_run_in_use_before_it_has_an_id_is_caught() {
    must_fail(|| given_back_beside_a_walk(Record::renew_state_first));
}

/// What a former run with the same virtual processors abandoned has no id, and is not taken again.
#[test]
fn what_a_former_run_abandoned_is_not_taken_again() {
    explore(None, || {
        let record = Record::of_the_old_run(USED);
        assert!(record.is_taken());
        let walk = spawn(move || record.is_taken());
        assert!(!record.is_taken() && !walk.join().unwrap(), "it is taken once");
    });
}

/// The old run ends, another one takes the slot and finishes there, while a handle asks for the end
/// of the old one.
fn asked_by_a_stale_handle(change_hands: fn(&Record)) {
    explore(None, move || {
        let record = Record::of_the_old_run(USED);
        let handle =
            spawn(move || while_it_is(&record.id, OLD, || record.finished.load(Ordering::Relaxed)));
        change_hands(record);
        assert_ne!(handle.join().unwrap(), Some(1), "the old one has never finished");
    });
}

#[test]
fn stale_handle_does_not_report_the_end_of_another_microprocess() {
    asked_by_a_stale_handle(|record| {
        assert!(record.is_taken());
        assert_eq!(record.id.load(Ordering::Relaxed), NO_ID);
        record.renew();
        record.finished.store(1, Ordering::Relaxed);
    });
}

#[test]
fn id_that_is_not_cleared_first_is_caught() {
    must_fail(|| asked_by_a_stale_handle(Record::renew_id_last));
}
