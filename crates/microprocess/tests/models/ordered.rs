//! Orders to a microprocess that begins, parks, is woken, is suspended and ends. A kill ends it in
//! every state; a suspended one continues once it is resumed; no wake is lost; and an order reaches
//! only the microprocess for which it is meant.
//!
//! Inbox, attention and order word are real. The virtual processor is duplicated here, with the
//! actions of `dispatch.rs`, `orders.rs` and `schedule.rs`.

#[path = "../../src/processor/orders/word.rs"]
mod word;

use core::cell::Cell;

use loom::thread::spawn;

use crate::inbox::attention::{self, IDLE, INBOX, Sleeper, raise, rest, rise, take};
use crate::inbox::real::{Inbox, Posted, ask};
use crate::prim::atomic::{AtomicPtr, AtomicU32, Ordering, forget_orderings, order_stores};
use crate::record::State;
use crate::wait_word::WaitWord;
use crate::{explore, for_ever, must_fail};
use word::{Due, KILL, Orders, SUSPEND};

/// Bits of messages.
const WAKE: u32 = 2;
const ORDERS: u32 = 4;

const ID: u64 = 7;

struct Record {
    bits: AtomicU32,
    next: AtomicPtr<Self>,
    orders: Orders,
    // Used by the holder.
    state: Cell<State>,
    queued: Cell<bool>,
    /// A kill ended its wait.
    timed_out: Cell<bool>,
    has_waited: Cell<bool>,
}

impl Posted for Record {
    fn bits(&self) -> &AtomicU32 {
        &self.bits
    }

    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

/// How the microprocess ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    OfItself,
    Killed,
}

/// A virtual processor, and the microprocess that runs there.
struct Home {
    inbox: Inbox<Record>,
    attention: AtomicU32,
    wait_word: WaitWord,
    record: Record,
    /// What the microprocess waits for: 0 before the wait, 1 during the wait, 2 once a wake has
    /// come.
    awaited: AtomicU32,
    way: Way,
}

// SAFETY: only the holder uses the cells; loom runs all its threads on one kernel thread.
unsafe impl Sync for Home {}

/// How orders are given, and how the holder acts on them.
#[derive(Clone, Copy)]
struct Way {
    order: fn(&'static Home, u64, u64),
    due: fn(&Orders, State) -> Due,
}

const REAL: Way = Way { order: Home::order, due: Orders::due };

impl Home {
    fn new(way: Way) -> &'static Self {
        let word = || AtomicU32::new(0);
        let record = Record {
            bits: word(),
            next: AtomicPtr::new(core::ptr::null_mut()),
            orders: Orders::new(),
            state: Cell::new(State::Runnable),
            queued: Cell::new(true),
            timed_out: Cell::new(false),
            has_waited: Cell::new(false),
        };
        let (inbox, wait_word) = (Inbox::new(), WaitWord::new());
        let home = Self { inbox, attention: word(), wait_word, record, awaited: word(), way };
        // The first use of these words.
        home.inbox.drain(|_| ());
        take(&home.attention);
        home.wait_word.renew();
        home.record.orders.renew(ID);
        home.record.next.load(Ordering::Relaxed);
        for word in [&home.record.bits, &home.awaited] {
            word.load(Ordering::Relaxed);
        }
        for_ever(home)
    }

    // ----- called from outside

    fn post(&'static self, bits: u32) {
        let Some(link) = ask(&self.record, bits) else { return };
        assert!(self.inbox.put(link).is_ok(), "it is open");
        if raise(&self.attention, INBOX) == Some(Sleeper::Idle) {
            self.wait_word.rouse();
        }
    }

    fn order(&'static self, set: u64, clear: u64) {
        assert!(self.record.orders.change(ID, set, clear));
        self.post(ORDERS);
    }

    fn wake(&'static self) {
        if self.awaited.swap(2, Ordering::AcqRel) == 1 {
            self.post(WAKE);
        }
    }

    // ----- called by the holder

    fn serve(&'static self) {
        if take(&self.attention) & INBOX != 0 {
            self.inbox.drain(|link| self.handle(link.answer()));
        }
    }

    fn handle(&self, bits: u32) {
        let Record { state, orders, timed_out, .. } = &self.record;
        if bits & WAKE != 0 && state.get() == State::Parked {
            self.make_runnable();
        }
        if bits & ORDERS != 0 {
            match (self.way.due)(orders, state.get()) {
                Due::Resumes => self.make_runnable(),
                Due::WaitEnds => {
                    timed_out.set(true);
                    self.make_runnable();
                }
                Due::CallEnds => unreachable!("the microprocess makes no system call"),
                Due::Nothing => {}
            }
        }
    }

    fn make_runnable(&self) {
        self.record.state.set(State::Runnable);
        assert!(!self.record.queued.replace(true), "the microprocess is queued once");
    }

    /// The base: serves, runs the microprocess if it is queued, and sleeps if it is not, until it
    /// ends.
    fn dispatch(&'static self) -> End {
        loop {
            self.serve();
            if let Some(end) = self.run_next() {
                return end;
            }
        }
    }

    fn run_next(&'static self) -> Option<End> {
        if !self.record.queued.replace(false) {
            self.idle();
            None
        } else if self.record.orders.is_suspended() {
            self.record.state.set(State::Suspended);
            None
        } else {
            self.remind();
            self.run()
        }
    }

    fn idle(&self) {
        if rest(&self.attention, IDLE) {
            self.wait_word.idle(None);
            rise(&self.attention, IDLE);
        }
    }

    fn remind(&self) {
        if self.record.orders.is_killed() {
            self.attention.fetch_or(attention::ORDERS, Ordering::Relaxed);
        }
    }

    /// Serves attention bits; returns whether the microprocess must be suspended.
    fn attend(&'static self) -> bool {
        self.serve();
        self.remind();
        let stands_still = self.record.orders.is_suspended();
        if stands_still {
            self.record.state.set(State::Suspended);
        }
        stands_still
    }

    /// A kill point; returns whether the microprocess ends here.
    fn point(&self) -> bool {
        self.attention.load(Ordering::Relaxed) & attention::ORDERS != 0
            && self.record.orders.is_killed()
    }

    /// The microprocess: it waits once, and ends. `None`: it continues later.
    fn run(&'static self) -> Option<End> {
        if self.attention.load(Ordering::Relaxed) != 0 && self.attend() {
            return None;
        }
        if self.point() {
            return Some(End::Killed);
        }
        if self.record.has_waited.get() {
            assert!(!self.record.timed_out.get(), "only a kill ends a wait that has no time limit");
            assert_eq!(
                self.awaited.fetch_add(0, Ordering::AcqRel),
                2,
                "the microprocess continues when it is woken"
            );
            return Some(End::OfItself);
        }
        self.record.has_waited.set(true);
        self.record.state.set(State::Parked);
        if self.awaited.swap(1, Ordering::AcqRel) == 2 {
            self.awaited.swap(2, Ordering::AcqRel);
            self.make_runnable();
        }
        None
    }
}

/// Runs `others` beside the microprocess, each on a separate thread; the microprocess must end as
/// `expected`.
fn play(way: Way, others: &'static [fn(&'static Home)], expected: End) {
    order_stores();
    explore(Some(2), move || {
        let home = Home::new(way);
        let others: Vec<_> = others.iter().map(|other| spawn(move || other(home))).collect();
        assert_eq!(home.dispatch(), expected);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

fn kill(home: &'static Home) {
    (home.way.order)(home, KILL, SUSPEND);
}

fn suspend(home: &'static Home) {
    (home.way.order)(home, SUSPEND, 0);
}

fn suspend_and_resume(home: &'static Home) {
    suspend(home);
    (home.way.order)(home, 0, SUSPEND);
}

fn suspend_and_kill(home: &'static Home) {
    suspend(home);
    kill(home);
}

fn killed_while_suspended_by_another(way: Way) {
    play(way, &[kill, suspend_and_resume], End::Killed);
}

#[test]
fn kill_ends_a_microprocess_in_every_state() {
    play(REAL, &[kill], End::Killed);
}

#[test]
fn kill_ends_a_suspended_microprocess() {
    play(REAL, &[suspend_and_kill], End::Killed);
}

#[test]
fn kill_ends_a_microprocess_that_is_suspended_and_resumed() {
    killed_while_suspended_by_another(REAL);
}

#[test]
fn resumed_microprocess_continues_and_keeps_its_wake() {
    play(REAL, &[suspend_and_resume, Home::wake], End::OfItself);
}

#[test]
fn orders_with_relaxed_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        killed_while_suspended_by_another(REAL);
    });
}

/// Mutant: sends the message first, and sets the order only then.
fn orders_late(home: &'static Home, set: u64, clear: u64) {
    home.post(ORDERS);
    home.record.orders.change(ID, set, clear);
}

#[test]
fn an_order_after_its_message_is_caught() {
    must_fail(|| play(Way { order: orders_late, ..REAL }, &[kill], End::Killed));
}

/// Mutant: a kill does not end a wait.
fn leaves_who_is_parked(orders: &Orders, state: State) -> Due {
    if state == State::Parked { Due::Nothing } else { orders.due(state) }
}

#[test]
fn kill_that_misses_a_parked_microprocess_is_caught() {
    must_fail(|| play(Way { due: leaves_who_is_parked, ..REAL }, &[kill], End::Killed));
}

/// Mutant: a resume has no effect on a suspended microprocess.
fn leaves_who_stands_still(orders: &Orders, state: State) -> Due {
    if state == State::Suspended { Due::Nothing } else { orders.due(state) }
}

#[test]
fn resume_that_misses_a_suspended_microprocess_is_caught() {
    let way = Way { due: leaves_who_stands_still, ..REAL };
    must_fail(|| play(way, &[suspend_and_resume, Home::wake], End::OfItself));
}

/// Mutant: a parked microprocess continues at once when an order comes.
fn resumes_the_parked(orders: &Orders, state: State) -> Due {
    if state == State::Parked { Due::Resumes } else { orders.due(state) }
}

#[test]
fn a_resume_that_ends_a_wait_is_caught() {
    let way = Way { due: resumes_the_parked, ..REAL };
    must_fail(|| play(way, &[suspend_and_resume, Home::wake], End::OfItself));
}

/// Gives an order to the last user of a record, while the record is renewed for another one.
fn order_while_renewed(next_id: u64) {
    order_stores();
    explore(None, move || {
        let orders: &Orders = for_ever(Orders::new());
        orders.renew(ID);
        let killer = spawn(move || orders.change(ID, KILL, 0));
        orders.renew(next_id);
        let came_in_time = killer.join().unwrap();
        assert!(!orders.is_any(), "in time: {came_in_time}");
        assert!(orders.change(next_id, SUSPEND, 0) && orders.is_suspended());
    });
}

#[test]
fn an_order_never_reaches_the_next_user_of_a_record() {
    order_while_renewed(ID + 1);
}

#[test]
fn word_without_an_id_check_is_caught() {
    must_fail(|| order_while_renewed(ID));
}
