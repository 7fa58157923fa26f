//! Per-CPU data under every way to keep it, by threads that the host moves from CPU to CPU.
#![expect(unsafe_code, reason = "links raw nodes")]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::ptr::NonNull;
#[cfg(target_arch = "x86_64")]
use std::process::Command;

use kyocho_sys::prim::thread::scope;
use kyocho_sys::scheduling::{CpuSet, affinity, set_affinity};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;
use kyocho_tst::{Kept, Link, PerCpu, PerCpuCounter, PerCpuList};

const THREADS: usize = 4;
const ROUNDS: usize = 20_000;

/// Every way that this process has.
fn ways(name: &str) -> Vec<Kept> {
    let mut ways = vec![Kept::ByAtomics];
    match Kept::ByRseq.possible() {
        Ok(()) => ways.push(Kept::ByRseq),
        Err(why) => skip(name, &why),
    }
    ways
}

/// Sends the calling thread to another of its CPUs, one after the other.
fn wander(step: usize) {
    let allowed = affinity(ThreadId::current()).unwrap();
    let cpu = allowed.iter().nth(step % allowed.count()).unwrap();
    set_affinity(ThreadId::current(), &CpuSet::single(cpu)).unwrap();
    set_affinity(ThreadId::current(), &allowed).unwrap();
}

/// Runs `round` in several threads that wander.
fn crowd(round: impl Fn(usize) + Sync) {
    let wandering = |thread: usize, n: usize| {
        round(n);
        if n.is_multiple_of(100) {
            wander(thread + n / 100);
        }
    };
    scope(|threads| {
        for thread in 0..THREADS {
            let wandering = &wandering;
            threads.spawn(move || (0..ROUNDS).for_each(|n| wandering(thread, n)));
        }
    });
}

#[test]
fn a_counter_loses_nothing() {
    for kept in ways("a_counter_loses_nothing") {
        let counter = PerCpuCounter::kept(kept).unwrap();
        crowd(|n| counter.add(n));
        assert_eq!(counter.sum(), THREADS * ROUNDS * (ROUNDS - 1) / 2, "{kept:?}");
    }
}

#[test]
fn a_list_loses_nothing() {
    for kept in ways("a_list_loses_nothing") {
        let mut nodes: Vec<Link> =
            (0..4 * THREADS).map(|_| Link { next: core::ptr::dangling_mut() }).collect();
        let mut list = PerCpuList::kept(kept).unwrap();
        for node in &mut nodes {
            // SAFETY: the nodes outlive the list; so below.
            unsafe { list.push(NonNull::from(node)) };
        }
        crowd(|_| {
            let taken = [list.pop(), list.pop()];
            for node in taken.into_iter().flatten() {
                // SAFETY: popped, so in no list.
                unsafe { list.push(node) };
            }
        });
        let mut left: Vec<_> = list.drain().collect();
        left.sort();
        left.dedup();
        assert_eq!(left.len(), nodes.len(), "{kept:?}: a node was lost or listed twice");
        assert_eq!(list.pop(), None);
    }
}

#[test]
fn the_best_way_is_a_possible_one_or_says_why_not() {
    let (kept, why) = Kept::best();
    assert_eq!(kept.possible(), Ok(()));
    assert_eq!(kept == Kept::ByRseq, why.is_none());
    let data = PerCpu::new(|| 7);
    assert_eq!(data.way(), kept);
    assert_eq!(data.with(|_, piece| Ok(*piece)), 7);
}

/// The same tests where glibc leaves rseq alone, so that each thread registers itself.
#[cfg(target_arch = "x86_64")]
#[test]
fn all_of_it_without_the_c_librarys_registration() {
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
