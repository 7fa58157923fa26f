//! Taking a parked microprocess from an idle holder, which wakes meanwhile: one of the two runs it,
//! once.

use loom::cell::UnsafeCell;
use loom::thread::spawn;

use crate::inbox::attention::{IDLE, INBOX, Sleeper, claim, raise, release, rest, rise, take};
use crate::inbox::real::{Inbox, Link, Posted, ask};
use crate::prim::atomic::{AtomicPtr, AtomicU32, Ordering, forget_orderings};
use crate::prim::cell::Cell;
use crate::wait_word::WaitWord;
use crate::{explore, for_ever, must_fail};

/// The poster's request.
const WAKE: u32 = 2;

/// The numbers of the virtual processors: the home of the parked microprocess, and the poster's.
const HOME: usize = 0;
const POSTER: usize = 1;

/// A microprocess. Its cells belong to its home.
struct Record {
    bits: AtomicU32,
    next: AtomicPtr<Self>,
    home: AtomicU32,
    is_parked: Cell<bool>,
    /// How often it was run. The thread that runs it is on its stack.
    stack: UnsafeCell<u32>,
}

impl Posted for Record {
    fn bits(&self) -> &AtomicU32 {
        &self.bits
    }

    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

impl Record {
    fn parked() -> &'static Self {
        let record = Self {
            bits: AtomicU32::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
            home: AtomicU32::new(HOME as u32),
            is_parked: Cell::new(true),
            stack: UnsafeCell::new(0),
        };
        // The first use of these words.
        record.bits.load(Ordering::Relaxed);
        record.next.load(Ordering::Relaxed);
        record.home.load(Ordering::Relaxed);
        record.is_parked.get();
        for_ever(record)
    }

    fn home(&self) -> usize {
        self.home.load(Ordering::Acquire) as usize
    }

    /// If it is parked: runs, and parks again.
    fn run_if_parked(&self) {
        if self.is_parked.replace(false) {
            // SAFETY: the model checks it.
            self.stack.with_mut(|runs| unsafe { *runs += 1 });
            self.is_parked.set(true);
        }
    }
}

/// The virtual processor where the microprocess is parked. Its holder falls asleep, and is woken by
/// its timer or by the poster.
struct Home {
    inbox: Inbox<Record>,
    attention: AtomicU32,
    wait_word: WaitWord,
}

impl Home {
    fn new() -> &'static Self {
        let (inbox, attention) = (Inbox::new(), AtomicU32::new(0));
        inbox.drain(|_| ());
        take(&attention);
        let wait_word = WaitWord::new();
        wait_word.renew();
        for_ever(Self { inbox, attention, wait_word })
    }

    /// As `Vp::receive`.
    fn receive(&self, link: Link<Record>) {
        assert!(self.inbox.put(link).is_ok(), "it is open");
        if raise(&self.attention, INBOX) == Some(Sleeper::Idle) {
            self.wait_word.rouse();
        }
    }

    /// The holder: idles; then a timer, or another microprocess there, wakes the parked one; then
    /// it serves its inbox.
    fn idle(&self, record: &'static Record, way: Way) {
        if rest(&self.attention, IDLE) {
            // The timer is due at once.
            (way.rise)(&self.attention, IDLE);
        }
        if record.home() == HOME {
            record.run_if_parked();
        }
        if take(&self.attention) & INBOX != 0 {
            self.inbox.drain(|link| {
                let record = link.record();
                link.answer();
                record.run_if_parked();
            });
        }
    }
}

/// How the two proceed.
#[derive(Clone, Copy)]
struct Way {
    /// Moves the record from `home` to the poster if it is parked there and `home` is idle; returns
    /// whether it did.
    moves: fn(&Home, &'static Record) -> bool,
    rise: fn(&AtomicU32, u32),
}

const REAL: Way = Way { moves, rise };

fn look_and_move(record: &'static Record) -> bool {
    let moves = record.home() == HOME && record.is_parked.get();
    if moves {
        record.home.store(POSTER as u32, Ordering::Release);
    }
    moves
}

/// As `Record::moves_to`.
fn moves(home: &Home, record: &'static Record) -> bool {
    let claimed = claim(&home.attention);
    let moves = claimed && look_and_move(record);
    if claimed {
        release(&home.attention);
    }
    moves
}

/// As `Record::post_from`.
fn post_from(home: &Home, record: &'static Record, way: Way) {
    let Some(link) = ask(record, WAKE) else { return };
    if (way.moves)(home, record) {
        link.answer();
        record.run_if_parked();
    } else {
        home.receive(link);
    }
}

fn poster_and_sleeper(way: Way) {
    explore(Some(3), move || {
        let (home, record) = (Home::new(), Record::parked());
        let poster = spawn(move || post_from(home, record, way));
        home.idle(record, way);
        poster.join().unwrap();
    });
}

#[test]
fn microprocess_parked_at_an_idle_home_is_run_by_one_of_two() {
    poster_and_sleeper(REAL);
}

/// Mutant: finds the home idle and uses the record, without keeping the holder from waking.
fn looks_without_a_claim(home: &Home, record: &'static Record) -> bool {
    home.attention.load(Ordering::SeqCst) == IDLE && look_and_move(record)
}

#[test]
fn check_without_a_claim_is_caught() {
    must_fail(|| poster_and_sleeper(Way { moves: looks_without_a_claim, ..REAL }));
}

/// Mutant: checks before the claim; the result is out of date after it.
fn looks_before_the_claim(home: &Home, record: &'static Record) -> bool {
    let idle = home.attention.load(Ordering::SeqCst) == IDLE;
    let moves = idle && record.home() == HOME && record.is_parked.get() && claim(&home.attention);
    if moves {
        record.home.store(POSTER as u32, Ordering::Release);
        release(&home.attention);
    }
    moves
}

#[test]
fn check_before_the_claim_is_caught() {
    must_fail(|| poster_and_sleeper(Way { moves: looks_before_the_claim, ..REAL }));
}

/// Mutant: the holder wakes although its virtual processor is claimed.
fn rises_at_once(word: &AtomicU32, bit: u32) {
    word.fetch_and(!bit, Ordering::SeqCst);
}

#[test]
fn a_holder_that_does_not_wait_for_a_claim_is_caught() {
    must_fail(|| poster_and_sleeper(Way { rise: rises_at_once, ..REAL }));
}

#[test]
fn claim_with_relaxed_orderings_is_caught() {
    must_fail(|| {
        forget_orderings();
        poster_and_sleeper(REAL);
    });
}
