//! One conformance suite for every mechanism.
#![expect(
    unsafe_code,
    reason = "pretends to hold a virtual processor; links raw nodes; installs a handler"
)]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::ptr::NonNull;

use kyocho_arch::set_current_vp;
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use kyocho_sys::prim::thread::{scope, yield_now};
use kyocho_sys::signal::{HandlerOptions, Info, Signal, install, send};
use kyocho_sys::task::ThreadId;
use kyocho_tst::{
    Atomics, Counter, FreeList, Lamport, Link, Links, Method, Queue, Refusal, Restartable, Section,
    SignalsBlocked, SystemCall, TryLock,
};

/// A name of a virtual processor. It is never dereferenced.
fn vp(number: usize) -> NonNull<()> {
    NonNull::new(core::ptr::without_provenance_mut(number * 64)).unwrap()
}

/// Runs `body` while this thread's word names the virtual processor.
fn holding<T>(vp: NonNull<()>, body: impl FnOnce() -> T) -> T {
    // SAFETY: no other thread of these tests uses words of the same virtual processor.
    unsafe { set_current_vp(vp.as_ptr()) };
    let value = body();
    // SAFETY: as above.
    unsafe { set_current_vp(core::ptr::null_mut()) };
    value
}

fn links(count: usize) -> Vec<Link> {
    // The first `next` is garbage: no operation may dereference it.
    (0..count).map(|_| Link { next: core::ptr::dangling_mut() }).collect()
}

fn a_lock_is_taken_once_until_it_is_free<M: Links>(mechanism: M) {
    let lock = TryLock::new(mechanism, 1);
    let mut guard = lock.try_lock().unwrap();
    *guard += 1;
    assert_eq!(lock.try_lock().err(), Some(Refusal::Busy));
    drop(guard);
    assert_eq!(*lock.try_lock().unwrap(), 2);
    assert_eq!(*lock.try_lock().unwrap(), 2);
}

fn a_word_is_swapped_when_it_is_as_expected<M: Links>(mechanism: M) {
    let word = AtomicUsize::new(5);
    assert_eq!(mechanism.compare_and_swap(&word, 4, 9), Ok(5));
    assert_eq!(word.load(Ordering::Relaxed), 5);
    assert_eq!(mechanism.compare_and_swap(&word, 5, 9), Ok(5));
    assert_eq!(word.load(Ordering::Relaxed), 9);
}

fn a_counter_counts_and_wraps<M: Links>(mechanism: M) {
    let counter = Counter::new(mechanism);
    assert_eq!(counter.add(usize::MAX), Ok(0));
    assert_eq!(counter.add(3), Ok(usize::MAX));
    assert_eq!(counter.get(), 2);
}

/// Applies random operations of a seed to list and queue, and to `Vec` and `VecDeque`, which must
/// agree.
fn lists_agree_with_the_standard_library<M: Links>([first, second]: [M; 2], seed: u64) {
    let mut nodes = links(8);
    let mut idle: Vec<NonNull<Link>> = nodes.iter_mut().map(NonNull::from).collect();
    let (list, queue) = (FreeList::new(first), Queue::new(second));
    let (mut stack, mut line) = (Vec::new(), std::collections::VecDeque::new());
    let mut random = seed;
    for step in 0..10_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let choice = random >> 61;
        match (choice % 4, idle.pop()) {
            (0, Some(node)) => {
                // SAFETY: the nodes outlive the test, and those in `idle` are in no list; also
                // below.
                unsafe { list.push(node) }.unwrap();
                stack.push(node);
            }
            (1, Some(node)) => {
                // SAFETY: as above.
                unsafe { queue.push(node) }.unwrap();
                line.push_back(node);
            }
            (kind, node) => {
                idle.extend(node);
                let from_list = kind.is_multiple_of(2);
                let popped = if from_list { list.pop() } else { queue.pop() }.unwrap();
                let expected = if from_list { stack.pop() } else { line.pop_front() };
                assert_eq!(popped, expected, "seed {seed}, step {step}");
                idle.extend(popped);
            }
        }
    }
}

/// Runs the whole suite over a mechanism.
fn conforms<M: Links>(mechanism: impl Fn() -> M) {
    a_lock_is_taken_once_until_it_is_free(mechanism());
    a_word_is_swapped_when_it_is_as_expected(mechanism());
    a_counter_counts_and_wraps(mechanism());
    for seed in 1..=20 {
        lists_agree_with_the_standard_library([mechanism(), mechanism()], seed);
    }
}

#[test]
fn atomics_conform() {
    conforms(|| Atomics);
    conforms(|| Method::Atomics(Atomics));
}

#[test]
fn restartable_sequences_conform() {
    holding(vp(1), || {
        assert_eq!(Restartable::current(), Some(Restartable::new(vp(1))));
        conforms(|| Restartable::new(vp(1)));
        conforms(|| Method::Restartable(Restartable::new(vp(1))));
    });
}

#[test]
fn critical_sections_conform() {
    conforms(SystemCall::new);
    conforms(|| SignalsBlocked);
    conforms(|| Lamport::new(3));
}

/// Tries every operation of a mechanism whose virtual processor this thread does not hold.
fn assert_refuses<M: Links + Copy>(mechanism: M) {
    let lock = TryLock::new(mechanism, ());
    let counter = Counter::new(mechanism);
    let (list, queue) = (FreeList::new(mechanism), Queue::new(mechanism));
    let mut nodes = links(1);
    let node = NonNull::from(&mut nodes[0]);
    assert_eq!(lock.try_lock().err(), Some(Refusal::NotHeld));
    assert_eq!(counter.add(1), Err(Refusal::NotHeld));
    let word = AtomicUsize::new(5);
    assert_eq!(mechanism.compare_and_swap(&word, 5, 9), Err(Refusal::NotHeld));
    assert_eq!(word.load(Ordering::Relaxed), 5);
    // SAFETY: the node outlives both, and the operation is refused.
    assert_eq!(unsafe { list.push(node) }, Err(Refusal::NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { queue.push(node) }, Err(Refusal::NotHeld));
    assert_eq!(list.pop(), Err(Refusal::NotHeld));
    assert_eq!(queue.pop(), Err(Refusal::NotHeld));
    assert_eq!(counter.get(), 0);
}

#[test]
fn restartable_sequences_refuse_without_their_virtual_processor() {
    assert_eq!(Restartable::current(), None);
    assert_refuses(Restartable::new(vp(2)));
    holding(vp(3), || assert_refuses(Restartable::new(vp(2))));
}

#[test]
fn a_guard_may_be_dropped_on_another_kernel_thread() {
    let lock = TryLock::new(Restartable::new(vp(4)), 7);
    holding(vp(4), || {
        let guard = lock.try_lock().unwrap();
        scope(|threads| {
            threads.spawn(|| {
                assert_eq!(lock.try_lock().err(), Some(Refusal::NotHeld));
                drop(guard);
            });
        });
        assert_eq!(*lock.try_lock().unwrap(), 7);
    });
}

const THREADS: usize = 4;
const ROUNDS: usize = 20_000;

/// Retries an operation while another thread uses its word.
fn until_free<T>(mut operation: impl FnMut() -> Result<T, Refusal>) -> T {
    loop {
        match operation() {
            Ok(value) => return value,
            Err(refusal) => assert_eq!(refusal, Refusal::Busy),
        }
        yield_now();
    }
}

/// Kernel threads use one lock, counter, list and queue concurrently, each thread after `prepare`.
/// Nothing may be lost.
fn nothing_is_lost_between_kernel_threads<M: Links + Sync + Send>(
    mechanism: impl Fn() -> M,
    prepare: impl Fn() + Sync,
) {
    prepare();
    let lock = TryLock::new(mechanism(), 0_usize);
    let counter = Counter::new(mechanism());
    let (list, queue) = (FreeList::new(mechanism()), Queue::new(mechanism()));
    let mut nodes = links(THREADS);
    for node in &mut nodes {
        // SAFETY: the nodes outlive list and queue.
        unsafe { list.push(NonNull::from(node)) }.unwrap();
    }
    let round = || {
        *until_free(|| lock.try_lock()) += 1;
        until_free(|| counter.add(1));
        if let Some(node) = until_free(|| list.pop()) {
            // SAFETY: popped, so in no list.
            until_free(|| unsafe { queue.push(node) });
        }
        if let Some(node) = until_free(|| queue.pop()) {
            // SAFETY: as above.
            until_free(|| unsafe { list.push(node) });
        }
    };
    scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                prepare();
                (0..ROUNDS).for_each(|_| round());
            });
        }
    });
    let locked = *until_free(|| lock.try_lock());
    assert_eq!((locked, counter.get()), (THREADS * ROUNDS, THREADS * ROUNDS));
    let mut left: Vec<_> = core::iter::from_fn(|| list.pop().unwrap()).collect();
    left.extend(core::iter::from_fn(|| queue.pop().unwrap()));
    left.sort();
    left.dedup();
    assert_eq!(left.len(), THREADS, "a node was lost or listed twice");
}

#[test]
fn atomics_lose_nothing_between_kernel_threads() {
    nothing_is_lost_between_kernel_threads(|| Atomics, || {});
}

#[test]
fn system_calls_lose_nothing_between_kernel_threads() {
    nothing_is_lost_between_kernel_threads(SystemCall::new, || {});
}

#[test]
fn lamports_algorithm_loses_nothing_between_kernel_threads() {
    nothing_is_lost_between_kernel_threads(|| Lamport::new(THREADS + 1), || {});
}

#[test]
fn lamports_algorithm_refuses_a_thread_beyond_its_bound_until_another_has_ended() {
    let counter = Counter::new(Lamport::new(1));
    scope(|threads| {
        threads.spawn(|| assert_eq!(counter.add(1), Ok(0))).join().unwrap();
        threads
            .spawn(|| {
                let added = until(|| counter.add(1).ok());
                assert_eq!(added, 1, "the slot of a thread that ended was not reused");
            })
            .join()
            .unwrap();
    });
    let counter = Counter::new(Lamport::new(1));
    assert_eq!(counter.add(1), Ok(0));
    scope(|threads| {
        threads.spawn(|| assert_eq!(counter.add(1), Err(Refusal::Full)));
    });
}

/// Waits for an answer, under a watchdog.
fn until<T>(mut answer: impl FnMut() -> Option<T>) -> T {
    let watchdog_ns = kyocho_sys::clock::monotonic_ns() + 60_000_000_000;
    loop {
        if let Some(value) = answer() {
            return value;
        }
        assert!(kyocho_sys::clock::monotonic_ns() < watchdog_ns, "no answer");
        yield_now();
    }
}

#[test]
fn participant_that_dies_inside_is_finished_by_the_waiting_thread() {
    let section = Lamport::new(4);
    scope(|threads| {
        // Ends inside the section: the ticket is not given back.
        threads.spawn(|| section.enter().unwrap());
    });
    let visit = || {
        let ticket = section.enter().unwrap();
        section.leave(ticket);
    };
    scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| (0..100).for_each(|_| visit()));
        }
    });
    assert_eq!(section.adopted(), 1);
}

#[test]
fn a_handler_inside_its_own_threads_section_is_refused() {
    let counter = Counter::new(Lamport::new(1));
    let section = Lamport::new(1);
    let ticket = section.enter().unwrap();
    assert_eq!(
        section.enter(),
        Err(Refusal::Busy),
        "a signal handler of the thread must be refused"
    );
    assert_eq!(counter.add(1), Ok(0), "another section must not refuse");
    section.leave(ticket);
    assert!(section.enter().is_ok());
}

#[test]
fn no_handler_of_the_thread_runs_while_its_signals_are_blocked() {
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handle(_number: i32, _info: *mut Info, _context: *mut core::ffi::c_void) {
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }
    let signal = Signal::realtime(3);
    // SAFETY: the handler only adds to a word.
    unsafe { install(signal, handle, HandlerOptions::default()) }.unwrap();
    let ticket = SignalsBlocked.enter().unwrap();
    send(ThreadId::current(), signal).unwrap();
    assert_eq!(HANDLED.load(Ordering::SeqCst), 0);
    SignalsBlocked.leave(ticket);
    assert_eq!(HANDLED.load(Ordering::SeqCst), 1);
}

#[cfg(target_arch = "x86_64")]
mod on_a_cpu {
    use kyocho_sys::scheduling::{CpuSet, affinity, set_affinity};
    use kyocho_sys::skip::skip;
    use kyocho_sys::task::ThreadId;
    use kyocho_tst::{Method, Rseq};

    use super::{assert_refuses, conforms, nothing_is_lost_between_kernel_threads};

    /// Confines the calling thread to the first or last CPU that it may use, and returns rseq for
    /// it.
    fn confine(first: bool) -> Result<Rseq, String> {
        let allowed = affinity(ThreadId::current()).unwrap();
        let mut cpus = allowed.iter();
        let cpu = if first { cpus.next() } else { cpus.last() }.unwrap();
        set_affinity(ThreadId::current(), &CpuSet::single(cpu)).unwrap();
        Rseq::current().map_err(|why| why.to_string())
    }

    #[test]
    fn rseq_conforms() {
        match confine(true) {
            Ok(rseq) => {
                assert_eq!(Rseq::on(rseq.cpu()), Ok(rseq));
                conforms(|| rseq);
                conforms(|| Method::Rseq(rseq));
            }
            Err(why) => skip("rseq_conforms", &why),
        }
    }

    #[test]
    fn rseq_refuses_on_another_cpu() {
        match confine(true) {
            Ok(rseq) => assert_refuses(Rseq::on(rseq.cpu() + 1).unwrap()),
            Err(why) => skip("rseq_refuses_on_another_cpu", &why),
        }
    }

    #[test]
    fn rseq_loses_nothing_between_kernel_threads_of_one_cpu() {
        // The last CPU, because other tests use the first.
        let here = || {
            if let Ok(rseq) = Rseq::current() {
                let cpu = CpuSet::single(rseq.cpu() as usize);
                set_affinity(ThreadId::current(), &cpu).unwrap();
            }
        };
        match confine(false) {
            Ok(rseq) => nothing_is_lost_between_kernel_threads(|| rseq, here),
            Err(why) => skip("rseq_loses_nothing_between_kernel_threads", &why),
        }
    }
}
