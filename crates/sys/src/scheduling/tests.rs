//! CPU sets and classes.

use super::{
    Attributes, CPUS_MAX, Class, CpuSet, OnFork, affinity, class, cpus_possible, current_cpu, nice,
    set_affinity, set_attributes, set_class,
};
use crate::error::Errno;
use crate::prim::thread::scope;
use crate::skip::skip;
use crate::task::ThreadId;

#[test]
fn set_contains_the_inserted_cpus() {
    let mut set = CpuSet::single(0);
    set.insert(63);
    set.insert(64);
    set.insert(CPUS_MAX - 1);
    assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, CPUS_MAX - 1]);
    assert_eq!(set.count(), 4);
    assert!(!set.contains(CPUS_MAX) && !set.contains(1));
    assert_eq!(format!("{:?}", CpuSet::single(3)), "{3}");
}

#[test]
fn a_confined_thread_runs_on_its_cpu() {
    scope(|threads| {
        threads.spawn(|| {
            let me = ThreadId::current();
            let allowed = affinity(me).unwrap();
            let last = allowed.iter().last().unwrap();
            set_affinity(me, &CpuSet::single(last)).unwrap();
            assert_eq!(affinity(me), Ok(CpuSet::single(last)));
            assert_eq!(current_cpu(), last);
            assert_eq!(set_affinity(me, &CpuSet::EMPTY), Err(Errno::INVAL));
        });
    });
}

#[test]
fn a_thread_may_become_idle_and_its_children_are_too() {
    scope(|threads| {
        threads.spawn(|| {
            let me = ThreadId::current();
            assert_eq!(class(me), Ok(Some(Class::Normal)));
            set_class(me, Class::Idle).unwrap();
            assert_eq!(class(me), Ok(Some(Class::Idle)));
            scope(|inner| {
                inner.spawn(|| assert_eq!(class(ThreadId::current()), Ok(Some(Class::Idle))));
            });
        });
    });
}

/// Runs `body` on a new thread.
fn beside(body: impl FnOnce() + Send) {
    scope(|threads| {
        threads.spawn(body);
    });
}

#[test]
fn a_thread_may_always_become_nicer_and_its_children_are_too() {
    beside(|| {
        let me = ThreadId::current();
        let nicest = Attributes { class: Class::Normal, nice: 19, on_fork: OnFork::Inherit };
        set_attributes(me, nicest).unwrap();
        beside(|| assert_eq!(nice(ThreadId::current()), Ok(19)));
    });
}

#[test]
fn children_do_not_inherit_a_raised_class_with_reset_on_fork() {
    beside(|| {
        let me = ThreadId::current();
        let urgent = Attributes { class: Class::RoundRobin(3), nice: -5, on_fork: OnFork::Reset };
        match set_attributes(me, urgent) {
            Ok(()) => {}
            Err(Errno::PERM) => return skip("raised", "no permission"),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(class(me), Ok(Some(Class::RoundRobin(3))));
        beside(|| assert_eq!(class(ThreadId::current()), Ok(Some(Class::Normal))));
        set_attributes(me, Attributes { class: Class::Normal, ..urgent }).unwrap();
        assert_eq!((class(me), nice(me)), (Ok(Some(Class::Normal)), Ok(-5)));
        beside(|| assert_eq!(nice(ThreadId::current()), Ok(0)));
        set_attributes(me, Attributes { on_fork: OnFork::Inherit, ..urgent }).unwrap();
        beside(|| assert_eq!(class(ThreadId::current()), Ok(Some(Class::RoundRobin(3)))));
    });
}

#[test]
fn calls_on_a_missing_thread_fail_with_srch() {
    let absent = ThreadId::new(i32::MAX as u32);
    assert_eq!(affinity(absent), Err(Errno::SRCH));
    assert_eq!(class(absent), Err(Errno::SRCH));
    assert_eq!(set_class(absent, Class::Idle), Err(Errno::SRCH));
    let usual = Attributes { class: Class::Normal, nice: 0, on_fork: OnFork::Inherit };
    assert_eq!((nice(absent), set_attributes(absent, usual)), (Err(Errno::SRCH), Err(Errno::SRCH)));
}

#[test]
fn every_cpu_in_use_is_possible() {
    let greatest = affinity(ThreadId::current()).unwrap().iter().last().unwrap();
    assert!((greatest + 1..=CPUS_MAX).contains(&cpus_possible()));
}
