//! Per-CPU data with every mechanism, used by threads that migrate between CPUs.
#![expect(unsafe_code, reason = "links raw nodes")]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::ptr::NonNull;
#[cfg(target_arch = "x86_64")]
use std::process::Command;

use kyocho_sys::prim::thread::scope;
use kyocho_sys::scheduling::{CpuSet, affinity, set_affinity};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;
use kyocho_tst::{Link, Mechanism, PerCpu, PerCpuCounter, PerCpuList};

const THREADS: usize = 4;
const ROUNDS: usize = 20_000;

/// Every mechanism that this process can use.
fn mechanisms(name: &str) -> Vec<Mechanism> {
    let mut mechanisms = vec![Mechanism::Atomics];
    match Mechanism::Rseq.possible() {
        Ok(()) => mechanisms.push(Mechanism::Rseq),
        Err(why) => skip(name, &why),
    }
    mechanisms
}

/// Migrates the calling thread to another CPU, each in turn.
fn migrate(step: usize) {
    let allowed = affinity(ThreadId::current()).unwrap();
    let cpu = allowed.iter().nth(step % allowed.count()).unwrap();
    set_affinity(ThreadId::current(), &CpuSet::single(cpu)).unwrap();
    set_affinity(ThreadId::current(), &allowed).unwrap();
}

/// Runs `round` in several threads that migrate.
fn run_in_migrating_threads(round: impl Fn(usize) + Sync) {
    let migrating = |thread: usize, n: usize| {
        round(n);
        if n.is_multiple_of(100) {
            migrate(thread + n / 100);
        }
    };
    scope(|threads| {
        for thread in 0..THREADS {
            let migrating = &migrating;
            threads.spawn(move || (0..ROUNDS).for_each(|n| migrating(thread, n)));
        }
    });
}

#[test]
fn counter_loses_no_addition_when_threads_migrate() {
    for mechanism in mechanisms("counter_loses_no_addition_when_threads_migrate") {
        let counter = PerCpuCounter::with_mechanism(mechanism).unwrap();
        run_in_migrating_threads(|n| counter.add(n));
        assert_eq!(counter.sum(), THREADS * ROUNDS * (ROUNDS - 1) / 2, "{mechanism:?}");
    }
}

#[test]
fn list_loses_no_node_when_threads_migrate() {
    for mechanism in mechanisms("list_loses_no_node_when_threads_migrate") {
        let mut nodes: Vec<Link> =
            (0..4 * THREADS).map(|_| Link { next: core::ptr::dangling_mut() }).collect();
        let mut list = PerCpuList::with_mechanism(mechanism).unwrap();
        for node in &mut nodes {
            // SAFETY: the nodes outlive the list; also below.
            unsafe { list.push(NonNull::from(node)) };
        }
        run_in_migrating_threads(|_| {
            let taken = [list.pop(), list.pop()];
            for node in taken.into_iter().flatten() {
                // SAFETY: popped, so in no list.
                unsafe { list.push(node) };
            }
        });
        let mut left: Vec<_> = list.drain().collect();
        left.sort();
        left.dedup();
        assert_eq!(left.len(), nodes.len(), "{mechanism:?}: a node was lost or listed twice");
        assert_eq!(list.pop(), None);
    }
}

#[test]
fn best_mechanism_is_possible_and_the_obstacle_to_a_better_one_is_named() {
    let (mechanism, why) = Mechanism::best();
    assert_eq!(mechanism.possible(), Ok(()));
    assert_eq!(mechanism == Mechanism::Rseq, why.is_none());
    let data = PerCpu::new(|| 7);
    assert_eq!(data.mechanism(), mechanism);
    assert_eq!(data.with(|_, piece| Ok(*piece)), 7);
}

/// Runs these tests again without rseq registration by glibc, so that each thread registers itself.
#[cfg(target_arch = "x86_64")]
#[test]
fn tests_pass_without_rseq_registration_by_glibc() {
    const CHILD: &str = "KYOCHO_PER_CPU_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env(CHILD, "1").env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("4 passed"), "{text}");
}
