//! A storm of timer signals whose handler restarts the sequence, or finds it aborted by Linux, and then does the same
//! operation itself: nothing is lost. The same storm on a sequence that nobody restarts loses something, in the same run.
//! Where signals do not hit such a sequence to begin with, nothing is tried.
#![expect(unsafe_code, reason = "installs a handler; operates on raw words")]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use kyocho_arch::restartable::{self, Fifo, Link, rewind};
use kyocho_arch::{mutant, pc_of, set_current_vp, set_pc};
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicUsize, Ordering};
use kyocho_sys::signal::{Info, Manner, Signal, install};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;
use kyocho_sys::timer::{Measure, Timer};

const VP: NonNull<()> = NonNull::dangling();
/// Time between two signals: short enough that many hit, long enough that the main line gets on.
const PERIOD_NS: u64 = 30_000;
/// Restarts to wait for; each proves a hit inside a sequence.
const RESTARTS: usize = 100;
/// Runs in which the control must be caught and the sequence must lose nothing.
const RUNS: usize = 10;
/// Why a machine is of no use here.
const NO_HITS: &str = "timer signals hardly ever hit between load and store here";
/// Operations of the main line between two looks at the counts.
const BATCH: usize = 100_000;
/// Batches after which a machine that delivers no hits is given up: some seconds; in an emulator, which may never deliver one, too.
const BATCHES_MAX: usize = if cfg!(target_arch = "x86_64") { 3000 } else { 100 };

/// What the handler does besides restarting: one operation of `job`.
static JOB: AtomicPtr<Job> = AtomicPtr::new(ptr::null_mut());
static RESTARTED: AtomicUsize = AtomicUsize::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

type Job = *const (dyn Fn() + Sync);

unsafe extern "C" fn on_timer(_: i32, _: *mut Info, context: *mut c_void) {
    // SAFETY: the context of this handler.
    let pc = unsafe { pc_of(context) };
    if let Some(start) = rewind(pc) {
        // SAFETY: a sequence finds its inputs at its start.
        unsafe { set_pc(context, start) };
        RESTARTED.fetch_add(1, Ordering::Relaxed);
    } else if was_aborted(pc) {
        RESTARTED.fetch_add(1, Ordering::Relaxed);
    }
    let job = JOB.load(Ordering::Acquire);
    if !job.is_null() {
        // SAFETY: points to the variable of `storm`, which waits on this very thread.
        let job = unsafe { *job };
        // SAFETY: what `storm` was given, borrowed until it returns.
        let job = unsafe { &*job };
        job();
    }
}

/// Whether the kernel has sent the interrupted thread to the abort address of a sequence.
#[cfg(target_arch = "x86_64")]
fn was_aborted(pc: usize) -> bool {
    kyocho_arch::rseq::sequences().iter().any(|sequence| sequence.abort == pc)
}

/// No sequences of Linux's kind here.
#[cfg(not(target_arch = "x86_64"))]
fn was_aborted(_: usize) -> bool {
    false
}

/// Runs batches of `main_line` in a storm of signals that do `in_handler`, until `enough(batches so far)` or
/// [`BATCHES_MAX`]; how many batches it took, and how many restarts there were.
fn storm(
    in_handler: &(dyn Fn() + Sync),
    mut main_line: impl FnMut(),
    mut enough: impl FnMut(usize) -> bool,
) -> (usize, usize) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: only this thread works on the words of this storm.
    unsafe { set_current_vp(VP.as_ptr()) };
    let signal = Signal::realtime(5);
    // SAFETY: the handler does atomics and sequences only.
    unsafe { install(signal, on_timer, Manner { restart_calls: true, ..Manner::default() }) }
        .unwrap();
    // SAFETY: only lifetimes change: the pointer is taken back below.
    let mut job: Job =
        unsafe { core::mem::transmute::<*const (dyn Fn() + Sync + '_), Job>(in_handler) };
    RESTARTED.store(0, Ordering::Relaxed);
    JOB.store(&raw mut job, Ordering::Release);
    let timer = Timer::new(ThreadId::current(), signal, Measure::Monotonic).unwrap();
    timer.set_period(PERIOD_NS).unwrap();
    let mut batches = 0;
    while batches < BATCHES_MAX && !enough(batches) {
        (0..BATCH).for_each(|_| main_line());
        batches += 1;
    }
    timer.set_period(0).unwrap();
    JOB.store(ptr::null_mut(), Ordering::Release);
    drop(timer);
    // SAFETY: as above.
    unsafe { set_current_vp(ptr::null_mut()) };
    (batches, RESTARTED.load(Ordering::Relaxed))
}

fn restarted_enough(_: usize) -> bool {
    RESTARTED.load(Ordering::Relaxed) >= RESTARTS
}

/// Adds one to a word.
type Add<'a> = &'a (dyn Fn(&AtomicUsize) + Sync);

/// How many additions are missing after (or, if `enough` says so, during) a storm on one word, and how many restarts there were.
fn lost_in_storm(add: Add<'_>, enough: impl Fn(usize) -> bool) -> (usize, usize) {
    let (word, by_handler) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let in_handler = || {
        add(&word);
        by_handler.fetch_add(1, Ordering::Relaxed);
    };
    let lost = |batches: usize| {
        // The handler may run between the loads: count its part first, so that what it adds is not taken for a loss.
        let expected = by_handler.load(Ordering::Relaxed) + batches * BATCH;
        expected.saturating_sub(word.load(Ordering::Relaxed))
    };
    let (batches, restarts) = storm(&in_handler, || add(&word), |batches| enough(lost(batches)));
    let expected = by_handler.load(Ordering::Relaxed) + batches * BATCH;
    assert!(word.load(Ordering::Relaxed) <= expected, "more than was added");
    (lost(batches), restarts)
}

/// Whether signals hit between load and store of the `control` here, as often as runs need. Looked at before anything is
/// tried: who finds it out from what is tried would skip a sequence that nobody restarts.
fn are_hits_had(control: Add<'_>) -> bool {
    // An emulator, for one, delivers signals between its translated blocks only.
    lost_in_storm(control, |lost| lost >= RESTARTS).0 >= RESTARTS
}

/// Asserts that `add` loses nothing in ten runs in which the `control` loses something.
fn no_addition_is_lost(name: &str, add: Add<'_>, control: Add<'_>) {
    if !are_hits_had(control) {
        return skip(name, NO_HITS);
    }
    for _ in 0..RUNS {
        assert_ne!(lost_in_storm(control, |lost| lost > 0).0, 0, "hit, and nothing was lost");
        let (lost, restarts) = lost_in_storm(add, |_| restarted_enough(0));
        assert_eq!(lost, 0);
        assert!(restarts >= RESTARTS, "signals hit, and restarted {restarts} times");
    }
}

/// Adds without anybody who restarts it.
fn add_unregistered(word: &AtomicUsize) {
    // SAFETY: the words of a storm belong to its thread. What the control loses is what the test wants to see.
    drop_value(unsafe { mutant::fetch_add_unregistered(VP, word.as_ptr(), 1) }.unwrap());
}

#[test]
fn no_addition_is_lost_and_without_restarts_some_are() {
    let add = |word: &AtomicUsize| {
        // SAFETY: the words of a storm belong to its thread.
        drop_value(unsafe { restartable::fetch_add(VP, word.as_ptr(), 1) }.unwrap());
    };
    no_addition_is_lost("no_addition_is_lost", &add, &add_unregistered);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn no_addition_is_lost_by_linux_and_unwatched_some_are() {
    use kyocho_arch::rseq::Cpu;
    use kyocho_sys::scheduling::{CpuSet, set_affinity};

    let name = "no_addition_is_lost_by_linux";
    if let Err(why) = kyocho_sys::rseq::register_thread() {
        return skip(name, &why.to_string());
    }
    let cpu = Cpu::current().unwrap();
    set_affinity(ThreadId::current(), &CpuSet::single(cpu.number() as usize)).unwrap();
    let cpu = Cpu::current().unwrap();
    let add = |word: &AtomicUsize| {
        // SAFETY: the words of a storm belong to its thread; so below.
        drop_value(unsafe { restartable::fetch_add(cpu, word.as_ptr(), 1) }.unwrap());
    };
    let control = |word: &AtomicUsize| {
        // SAFETY: as above.
        drop_value(unsafe { mutant::rseq::fetch_add_unwatched(cpu, word.as_ptr(), 1) }.unwrap());
    };
    no_addition_is_lost(name, &add, &control);
}

fn drop_value(value: usize) {
    core::hint::black_box(value);
}

/// Links, and how to take one out and put one in.
struct Linked<'a> {
    take: &'a (dyn Fn() -> *mut Link + Sync),
    put: &'a (dyn Fn(*mut Link) + Sync),
}

/// Moves nodes out and in on both sides of the storm; then every node must be there exactly once.
fn no_node_is_lost(name: &str, linked: &Linked<'_>, nodes: &mut [Link]) {
    if !are_hits_had(&add_unregistered) {
        return skip(name, NO_HITS);
    }
    for node in nodes.iter_mut() {
        holding(|| (linked.put)(node));
    }
    let put_back = |node: *mut Link| {
        if !node.is_null() {
            (linked.put)(node);
        }
    };
    // The handler leaves another order behind than it found: a stale look at the first two then shows.
    let swap_first_two = || {
        let (first, second) = ((linked.take)(), (linked.take)());
        put_back(first);
        put_back(second);
    };
    let (_, restarts) = storm(&swap_first_two, || put_back((linked.take)()), restarted_enough);
    assert!(restarts >= RESTARTS, "signals hit, and restarted {restarts} times");
    let take = || Some(holding(linked.take)).filter(|node| !node.is_null());
    let mut left: Vec<*mut Link> = core::iter::from_fn(take).take(2 * nodes.len()).collect();
    assert_eq!(left.len(), nodes.len());
    left.sort();
    left.dedup();
    assert_eq!(left.len(), nodes.len(), "a node came twice");
}

fn holding<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the test's thread alone works on the words.
    unsafe { set_current_vp(VP.as_ptr()) };
    let value = body();
    // SAFETY: as above.
    unsafe { set_current_vp(ptr::null_mut()) };
    value
}

fn links() -> Vec<Link> {
    (0..5).map(|_| Link { next: ptr::null_mut() }).collect()
}

#[test]
fn no_node_of_a_list_is_lost() {
    let head = AtomicPtr::new(ptr::null_mut());
    // SAFETY: head and nodes belong to this test's thread and outlive it; so below.
    let take = || unsafe { restartable::pop(VP, head.as_ptr()) }.unwrap();
    // SAFETY: as above.
    let put = |node| unsafe { restartable::push(VP, head.as_ptr(), node) }.unwrap();
    no_node_is_lost("no_node_of_a_list_is_lost", &Linked { take: &take, put: &put }, &mut links());
}

#[test]
fn no_node_of_a_queue_is_lost() {
    let mut queue = Fifo::new();
    let queue = AtomicPtr::new(&raw mut queue);
    let at = || queue.load(Ordering::Relaxed);
    // SAFETY: as in `no_node_of_a_list_is_lost`.
    let take = || unsafe { restartable::dequeue(VP, at()) }.unwrap();
    // SAFETY: as above.
    let put = |node| unsafe { restartable::enqueue(VP, at(), node) }.unwrap();
    no_node_is_lost("no_node_of_a_queue_is_lost", &Linked { take: &take, put: &put }, &mut links());
}
