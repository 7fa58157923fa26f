use super::{Marker, Role};
use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator, Torture};
use crate::value::Value;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::thread;
use std::sync::Arc;

const VECTORS: usize = 100;
const LENGTH: usize = 50;

/// A heap with a team, and roots to which nothing else refers.
fn with_roots() -> (Mutator, Vec<Value>) {
    let torture = Torture { every: 1 << 40, phase: 0, concurrent: false };
    let limits = Limits {
        bytes_max: 16 << 20,
        helpers_max: 2,
        shared_every: 1,
        torture: Some(torture),
        ..Limits::default()
    };
    let m = Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default());
    let roots = (0..VECTORS).map(|i| m.vector(LENGTH, Value::fixnum(i as i64)).unwrap()).collect();
    (m, roots)
}

fn assert_all_marked(live_bytes: usize) {
    assert_eq!(live_bytes, VECTORS * (LENGTH + 2) * 8);
}

#[test]
fn work_that_no_helper_takes_stays_with_its_marker() {
    let (m, roots) = with_roots();
    let done = m.heap.collect(|marker: &mut Marker| {
        roots.iter().for_each(|&root| marker.mark(root));
        let Role::Maker { team, .. } = &marker.role else { panic!("there is a team") };
        let team = Arc::clone(team);
        // Two packets wait; further ones are refused.
        (0..5).for_each(|_| marker.share_with(&team));
    });
    assert_all_marked(done.live_bytes);
}

#[test]
fn the_maker_is_not_done_while_a_helper_has_work() {
    let (m, roots) = with_roots();
    let (is_held, may_go) = (AtomicBool::new(false), AtomicBool::new(false));
    let until = |flag: &AtomicBool| {
        while !flag.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    };
    let done = thread::scope(|scope| {
        let heap = &m.heap;
        scope.spawn(|| {
            let hold = || {
                is_held.store(true, Ordering::SeqCst);
                until(&may_go);
            };
            while !heap.help(hold) {
                thread::yield_now();
            }
        });
        heap.collect(|marker| {
            roots.iter().for_each(|&root| marker.mark(root));
            // One packet, and no marking until the helper has taken it.
            let Role::Maker { team, .. } = &marker.role else { panic!("there is a team") };
            let team = Arc::clone(team);
            marker.share_with(&team);
            until(&is_held);
            let is_done = marker.run_for(usize::MAX);
            may_go.store(true, Ordering::SeqCst);
            assert!(!is_done, "a helper still has work");
        })
    });
    assert_all_marked(done.live_bytes);
    assert!(done.helped_bytes > 0, "{done:?}");
}
