//! Each microprocess has its own values, keeps them on all kernel threads, and leaves none behind.
#![expect(unsafe_code, reason = "ends a microprocess in the middle of a function")]
#![expect(clippy::excessive_nesting, reason = "a scenario nests: runtime, microprocess, loop")]

use core::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use super::OutsideError;
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{Stackless, Step, exit, spawn};

local! {
    static COUNT: Cell<usize> = Cell::new(0);
    static NAMES: RefCell<Vec<String>> = RefCell::new(Vec::new());
    static LAST: RefCell<Option<SendsOnDrop>> = RefCell::new(None);
    static NESTED: usize = COUNT.get() + 1;
    static ITSELF: usize = if COUNT.get() == 0 { COUNT.set(1); ITSELF.with(|value| value + 10) } else { 1 };
}

/// Sends its number when it is dropped; its destructor may make another one.
struct SendsOnDrop(Sender<u32>, u32);

impl Drop for SendsOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
        if self.1 < 10 {
            let next = Self(self.0.clone(), self.1 + 1);
            LAST.with_borrow_mut(|last| *last = Some(next));
        }
    }
}

#[test]
fn values_stay_with_their_microprocess() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let workers: Vec<_> = (0..100_usize)
                .map(|number| {
                    spawn(move || {
                        for turn in 0..=number {
                            assert_eq!(COUNT.get(), turn);
                            COUNT.set(turn + 1);
                            NAMES.with_borrow_mut(|names| names.push(turn.to_string()));
                            yield_now();
                        }
                        NAMES.with_borrow(Vec::len)
                    })
                })
                .collect();
            for (number, worker) in workers.into_iter().enumerate() {
                assert_eq!(worker.join().unwrap(), number + 1);
            }
            assert_eq!(COUNT.get(), 0);
        });
    }
}

#[test]
fn reused_slot_starts_without_values() {
    on_processors(1, || {
        for _ in 0..3 {
            spawn(|| assert_eq!(COUNT.with(|count| count.replace(7)), 0)).join().unwrap();
        }
    });
}

#[test]
fn making_a_value_may_use_other_values_and_itself() {
    on_processors(1, || {
        assert_eq!(NESTED.with(|value| *value), 1);
        assert_eq!(ITSELF.with(|value| *value), 1);
        assert_eq!(ITSELF.with(|value| *value), 1);
    });
}

#[test]
fn values_are_dropped_at_every_kind_of_end() {
    on_processors(1, || {
        let (tell, told) = channel();
        let set = move |number: u32| {
            let value = SendsOnDrop(tell.clone(), number);
            LAST.with_borrow_mut(|last| *last = Some(value));
        };
        let (by_panic, by_exit, by_return) = (set.clone(), set.clone(), set);
        let panicked = spawn(move || {
            by_panic(20);
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(panicked.join().is_err());
        assert_eq!(told.recv(), Ok(20));
        let exited = spawn(move || -> u32 {
            by_exit(30);
            drop(by_exit);
            // SAFETY: this closure returns a `u32` and holds nothing.
            unsafe { exit(5_u32, || ()) }
        });
        assert_eq!(exited.join().unwrap(), 5);
        assert_eq!(told.recv(), Ok(30));
        spawn(move || by_return(40)).join().unwrap();
        assert_eq!(told.recv(), Ok(40));
        assert_eq!(told.try_recv().ok(), None);
    });
}

#[test]
fn values_that_make_values_end_after_four_rounds() {
    on_processors(1, || {
        let (tell, told) = channel();
        spawn(move || LAST.with_borrow_mut(|last| *last = Some(SendsOnDrop(tell, 0))))
            .join()
            .unwrap();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    });
}

struct Steps(Arc<AtomicUsize>);

impl Stackless for Steps {
    fn step(&mut self) -> Step {
        COUNT.set(COUNT.get() + 1);
        self.0.store(COUNT.get(), Ordering::Relaxed);
        if COUNT.get() < 5 { Step::Yield } else { Step::Done }
    }
}

#[test]
fn steps_of_one_machine_share_its_values() {
    on_processors(1, || {
        let seen = Arc::new(AtomicUsize::new(0));
        let machine = Box::new(Steps(Arc::clone(&seen)));
        crate::Builder::new().spawn_stackless(machine).unwrap();
        while seen.load(Ordering::Relaxed) < 5 {
            yield_now();
        }
    });
}

#[test]
fn kernel_thread_outside_any_runtime_has_no_values() {
    assert_eq!(COUNT.try_with(Cell::get), Err(OutsideError));
}
