//! Members, their results and their panics.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use super::scope;
use crate::Killed;
use crate::wait::sync::tests::on_processors;
use crate::yield_now;

#[path = "../../../tests/support/quiet.rs"]
mod quiet;
use quiet::quiet;

/// Counts how often it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn members_borrow_and_return_results() {
    for virtual_processors in [1, 2] {
        let sum = on_processors(virtual_processors, || {
            let numbers: Vec<usize> = (0..100).collect();
            scope(|scope| {
                let parts: Vec<_> = numbers
                    .chunks(7)
                    .map(|part| scope.spawn(move || part.iter().sum::<usize>()))
                    .collect();
                parts.into_iter().map(|part| part.join().unwrap()).sum::<usize>()
            })
        });
        assert_eq!(sum, 4950);
    }
}

#[test]
fn scope_waits_for_members_and_members_of_members() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let ended = AtomicUsize::new(0);
            scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| {
                        yield_now();
                        scope.spawn(|| {
                            yield_now();
                            ended.fetch_add(1, Ordering::Relaxed);
                        });
                        ended.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(ended.into_inner(), 20);
        });
    }
}

#[test]
fn unwanted_result_is_dropped_before_the_scope_ends() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let dropped = AtomicUsize::new(0);
            scope(|scope| {
                for turn in 0..50 {
                    let dropped = &dropped;
                    let handle = scope.spawn(move || {
                        if turn % 2 == 0 {
                            yield_now();
                        }
                        Counted(dropped)
                    });
                    if turn % 3 == 0 {
                        yield_now();
                    }
                    drop(handle);
                }
            });
            assert_eq!(dropped.into_inner(), 50);
        });
    }
}

#[test]
fn panic_of_a_member_reaches_its_joiner_or_the_scope() {
    quiet("a scoped microprocess panicked");
    on_processors(1, || {
        let joined = scope(|scope| scope.spawn(|| resume_unwind(Box::new("on purpose"))).join());
        assert!(joined.is_err());
        let scoped = catch_unwind(AssertUnwindSafe(|| {
            scope(|scope| {
                scope.spawn(|| resume_unwind(Box::new("on purpose")));
            });
        }));
        assert!(scoped.is_err());
    });
}

#[test]
fn a_member_that_is_killed_before_it_begins_leaves() {
    on_processors(1, || {
        let mut borrowed = 0;
        let ended = scope(|scope| {
            let member = scope.spawn(|| borrowed += 1);
            member.microprocess().kill().unwrap();
            member.join()
        });
        assert!(ended.unwrap_err().is::<Killed>());
        assert_eq!(borrowed, 0);
    });
}
