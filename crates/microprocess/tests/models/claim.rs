//! The holder, a thread that the sentinel nominated, the monitor, and a thread that returns from
//! the kernel: no two use the queues at the same time.
//!
//! The kernel reports the state of a thread under the lock of its run queue. Here that is a mutex
//! around what the thread does.

#[path = "../../src/protocol/claim.rs"]
mod real;

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread::spawn;

use crate::prim::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::{explore, for_ever, must_fail};
pub(crate) use real::Hold;
use real::exclusively;

/// A virtual processor: the data of its holder, and how often it was used.
struct Processor {
    touched: UnsafeCell<u32>,
    taking: AtomicBool,
}

impl Processor {
    fn new() -> &'static Self {
        let vp = Self { touched: UnsafeCell::new(0), taking: AtomicBool::new(false) };
        vp.taking.load(Ordering::Relaxed);
        for_ever(vp)
    }

    /// Loom fails the model if two threads do this at the same time, or one without seeing the
    /// other's change.
    fn touch(&self) {
        // SAFETY: the model checks it.
        self.touched.with_mut(|count| unsafe { *count += 1 });
    }
}

/// What the kernel knows of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    Runs,
    Sleeps { in_sequence: bool },
}

/// A kernel thread.
struct Thread {
    hold: Hold<Processor>,
    /// The word that its restartable sequences read.
    word: AtomicPtr<Processor>,
    seen: Mutex<ThreadState>,
}

impl Thread {
    /// A thread that holds `vp` and runs a microprocess.
    fn holding(vp: &'static Processor) -> &'static Self {
        let word = core::ptr::from_ref(vp).cast_mut();
        let thread = Self {
            hold: Hold::new(word),
            word: AtomicPtr::new(word),
            seen: Mutex::new(ThreadState::Runs),
        };
        // The first use of these words.
        thread.hold.unmask();
        thread.hold.held();
        thread.word.load(Ordering::Relaxed);
        for_ever(thread)
    }

    /// A section: masks events, and uses the queues if it still holds the virtual processor.
    /// Returns whether it did.
    fn section(&self) -> bool {
        self.hold.mask();
        let held = self.hold.held().or_else(|| self.hold.settle_claim());
        if let Some(vp) = held {
            vp.touch();
            self.hold.unmask();
        }
        held.is_some()
    }

    /// Sleeps in the kernel for a moment.
    fn sleep(&self, in_sequence: bool) {
        *self.seen.lock().unwrap() = ThreadState::Sleeps { in_sequence };
        *self.seen.lock().unwrap() = ThreadState::Runs;
    }

    /// A restartable sequence with a page fault before its last store.
    fn sequence(&self, vp: &'static Processor) {
        if core::ptr::eq(self.word.load(Ordering::Acquire), vp) {
            self.sleep(true);
            vp.touch();
        }
    }

    /// The check of a sleeper: where it may lose its virtual processor.
    fn look(&self) -> Option<()> {
        let seen = *self.seen.lock().unwrap();
        (seen == ThreadState::Sleeps { in_sequence: false }).then_some(())
    }

    fn take(&self, vp: &'static Processor, look: impl FnOnce() -> Option<()>) -> bool {
        let tell = |told| self.word.store(told, Ordering::SeqCst);
        let taken = self.hold.take(vp, tell, look).is_some();
        if taken {
            self.hold.lose();
        }
        taken
    }
}

/// How a taker proceeds.
type Taker = fn(&'static Thread, &'static Processor) -> bool;

fn real(holder: &'static Thread, vp: &'static Processor) -> bool {
    let taken = exclusively(&vp.taking, || holder.take(vp, || holder.look()).then_some(()));
    taken.is_some()
}

/// Mutant: checks first, and then claims.
fn claims_after_the_look(holder: &'static Thread, vp: &'static Processor) -> bool {
    let may = holder.look().is_some() && !holder.hold.is_masked();
    let taken = may && holder.hold.claim(vp);
    if taken {
        holder.hold.lose();
    }
    taken
}

/// Mutant: ignores that the sleeper is in a section.
fn ignores_the_mask(holder: &'static Thread, vp: &'static Processor) -> bool {
    let taken = holder.hold.claim(vp) && holder.look().is_some();
    if taken {
        holder.hold.lose();
    }
    taken
}

/// Mutant: ignores that the sleeper is in a restartable sequence.
fn ignores_the_program_counter(holder: &'static Thread, vp: &'static Processor) -> bool {
    holder.take(vp, || (*holder.seen.lock().unwrap() != ThreadState::Runs).then_some(()))
}

/// A holder that uses the queues, sleeps, and uses them again; and a taker that would take the
/// virtual processor for itself meanwhile.
fn holder_and_taker(taker: Taker) {
    explore(None, move || {
        let vp = Processor::new();
        let holder = Thread::holding(vp);
        let sentinel = spawn(move || {
            let taken = taker(holder, vp);
            if taken {
                vp.touch();
            }
            taken
        });
        assert!(holder.section(), "the virtual processor is taken only from a sleeper");
        holder.sleep(false);
        let kept = holder.section();
        let taken = sentinel.join().unwrap();
        assert!(kept != taken, "the virtual processor has exactly one holder");
    });
}

#[test]
fn processor_is_taken_only_from_a_sleeper() {
    holder_and_taker(real);
}

#[test]
fn check_before_the_claim_is_caught() {
    must_fail(|| holder_and_taker(claims_after_the_look));
}

/// A holder that sleeps inside a section, as for a page of its queues.
fn section_that_sleeps(taker: Taker) {
    explore(None, move || {
        let vp = Processor::new();
        let holder = Thread::holding(vp);
        let sentinel = spawn(move || {
            if taker(holder, vp) {
                vp.touch();
            }
        });
        holder.hold.mask();
        if let Some(vp) = holder.hold.held().or_else(|| holder.hold.settle_claim()) {
            holder.sleep(false);
            vp.touch();
        }
        holder.hold.unmask();
        sentinel.join().unwrap();
    });
}

#[test]
fn a_processor_is_not_taken_inside_a_section() {
    section_that_sleeps(real);
}

#[test]
fn check_that_ignores_the_mask_is_caught() {
    must_fail(|| section_that_sleeps(ignores_the_mask));
}

/// A holder whose restartable sequence sleeps for a page.
fn sequence_that_sleeps(taker: Taker) {
    explore(None, move || {
        let vp = Processor::new();
        let holder = Thread::holding(vp);
        let sentinel = spawn(move || {
            if taker(holder, vp) {
                vp.touch();
            }
        });
        holder.sequence(vp);
        sentinel.join().unwrap();
    });
}

#[test]
fn a_processor_is_not_taken_inside_a_sequence() {
    sequence_that_sleeps(real);
}

#[test]
fn check_that_ignores_the_program_counter_is_caught() {
    must_fail(|| sequence_that_sleeps(ignores_the_program_counter));
}

/// Two takers: the monitor, and a thread that returns. At most one gets the virtual processor.
#[test]
fn two_takers_do_not_both_get_it() {
    explore(Some(3), || {
        let vp = Processor::new();
        let holder = Thread::holding(vp);
        let monitor = spawn(move || {
            real(holder, vp) && {
                vp.touch();
                true
            }
        });
        let returning = spawn(move || {
            real(holder, vp) && {
                vp.touch();
                true
            }
        });
        holder.sleep(false);
        let kept = holder.section();
        let taken = [monitor, returning].map(|taker| usize::from(taker.join().unwrap()));
        assert_eq!(
            usize::from(kept) + taken[0] + taken[1],
            1,
            "the virtual processor has exactly one holder"
        );
    });
}
