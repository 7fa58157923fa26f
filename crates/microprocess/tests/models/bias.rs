//! A virtual processor that is alone takes no lock; one that enters beside another makes both take
//! it. No two access the object at the same time.
//!
//! The memory barrier that the host executes in every thread is part of each section here, between
//! setting the mask and reading the bias.

#[path = "../../src/protocol/bias.rs"]
mod real;

use core::cell::Cell;

use loom::cell::UnsafeCell;
use loom::sync::atomic::fence;
use loom::thread::{spawn, yield_now};

use crate::claim::Hold;
use crate::prim::atomic::{AtomicBool, Ordering, forget_orderings, order_stores};
use crate::{explore, for_ever, must_fail};
use real::{Bias, Member, Presence};

thread_local! {
    // Loom runs all its threads on one kernel thread.
    static MUTANT: Cell<Mutant> = const { Cell::new(Mutant::None) };
}

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    None,
    /// A member that enters does not wait for sections.
    NeverInSection,
    /// Sections read the bias without a barrier after setting their mask.
    NoBarrier,
}

fn is(mutant: Mutant) -> bool {
    MUTANT.get() == mutant
}

/// A virtual processor and its holder.
struct Processor {
    hold: Hold<()>,
    presence: Presence<Self>,
}

// SAFETY: the model checks it.
unsafe impl Sync for Processor {}

impl Member for Processor {
    fn presence(&self) -> &Presence<Self> {
        &self.presence
    }

    fn may_be_in_section(&self) -> bool {
        !is(Mutant::NeverInSection) && self.hold.is_masked()
    }
}

/// An object and its lock, and the two that use it.
struct World {
    bias: Bias<Processor>,
    lock: AtomicBool,
    object: UnsafeCell<u32>,
    processors: [Processor; 2],
}

// SAFETY: the model checks it.
unsafe impl Sync for World {}

impl World {
    fn new() -> &'static Self {
        let processor =
            || Processor { hold: Hold::new(core::ptr::null_mut()), presence: Presence::new() };
        let world = Self {
            bias: Bias::new(),
            lock: AtomicBool::new(false),
            object: UnsafeCell::new(0),
            processors: [processor(), processor()],
        };
        let world = for_ever(world);
        // The first use of these words.
        world.lock.load(Ordering::Relaxed);
        world.bias.is_revoked();
        for processor in &world.processors {
            world.bias.enter(processor, || {});
            world.bias.leave(processor);
            processor.hold.unmask();
        }
        world
    }

    fn enter(&'static self, number: usize) {
        self.bias.enter(&self.processors[number], || fence(Ordering::SeqCst));
    }

    fn leave(&'static self, number: usize) {
        self.bias.leave(&self.processors[number]);
    }

    /// A section that changes the object.
    fn change(&self, number: usize) {
        let hold = &self.processors[number].hold;
        hold.mask();
        if !is(Mutant::NoBarrier) {
            fence(Ordering::SeqCst);
        }
        let locks = self.bias.is_revoked();
        while locks && self.lock.swap(true, Ordering::Acquire) {
            yield_now();
        }
        // SAFETY: the model checks it.
        self.object.with_mut(|count| unsafe { *count += 1 });
        if locks {
            self.lock.store(false, Ordering::Release);
        }
        hold.unmask();
    }
}

/// One is inside and another enters. Both change the object and leave.
fn one_joins() {
    order_stores();
    explore(Some(3), || {
        let world = World::new();
        world.enter(0);
        let other = spawn(move || {
            world.enter(1);
            world.change(1);
            world.leave(1);
        });
        world.change(0);
        world.leave(0);
        other.join().unwrap();
    });
}

/// Two are inside. One leaves, and the other one is alone with what that one did.
fn one_leaves() {
    order_stores();
    explore(Some(3), || {
        let world = World::new();
        world.enter(0);
        world.enter(1);
        let other = spawn(move || {
            world.change(1);
            world.leave(1);
        });
        world.change(0);
        world.change(0);
        other.join().unwrap();
        assert!(!world.bias.is_revoked(), "a virtual processor that is alone takes no locks");
    });
}

#[test]
fn joining_processor_meets_none_that_omits_locks() {
    one_joins();
}

#[test]
fn remaining_processor_sees_the_writes_of_the_one_that_left() {
    one_leaves();
}

#[test]
fn entering_without_waiting_for_sections_is_caught() {
    must_fail(|| {
        MUTANT.set(Mutant::NeverInSection);
        one_joins();
    });
}

#[test]
fn section_without_a_barrier_is_caught() {
    must_fail(|| {
        MUTANT.set(Mutant::NoBarrier);
        one_joins();
    });
}

#[test]
fn forgotten_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        one_leaves();
    });
}
