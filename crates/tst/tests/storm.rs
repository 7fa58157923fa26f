//! A storm of timer signals. Its handler restarts an interrupted sequence (or finds it aborted by
//! Linux) and then does the same operation itself. Nothing may be lost. In the same run, the storm
//! must make a sequence that is not restarted lose something. If signals do not hit such a sequence
//! on this machine, the test is skipped.
#![expect(unsafe_code, reason = "installs a handler; operates on raw words")]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use kyocho_arch::restartable::{self, Fifo, Link, rewind};
use kyocho_arch::{mutant, pc_of, set_current_vp, set_pc};
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicUsize, Ordering};
use kyocho_sys::signal::{HandlerOptions, Info, Signal, install};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;
use kyocho_sys::timer::{Timer, TimerClock};

const VP: NonNull<()> = NonNull::dangling();
/// Time between two signals: short enough that many hit, long enough that the main code makes
/// progress.
const PERIOD_NS: u64 = 30_000;
/// Restarts to wait for. Each proves that a signal hit a sequence.
const RESTARTS: usize = 100;
/// Number of runs in which the control must lose something and the sequence nothing.
const RUNS: usize = 10;
/// The reason why a machine cannot run these tests.
const NO_HITS: &str = "timer signals hardly ever hit between load and store here";
/// Operations of the main code between two checks of the counts.
const BATCH: usize = 100_000;
/// Batches after which a machine that delivers no hits is given up. They take some seconds; fewer
/// in an emulator, which may never deliver a hit.
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
        // SAFETY: a sequence can start again from its inputs.
        unsafe { set_pc(context, start) };
        RESTARTED.fetch_add(1, Ordering::Relaxed);
    } else if was_aborted(pc) {
        RESTARTED.fetch_add(1, Ordering::Relaxed);
    }
    let job = JOB.load(Ordering::Acquire);
    if !job.is_null() {
        // SAFETY: points to the variable of `storm`, which waits on this thread.
        let job = unsafe { *job };
        // SAFETY: the closure that `storm` was given, borrowed until it returns.
        let job = unsafe { &*job };
        job();
    }
}

/// Whether the kernel has moved the interrupted thread to the abort address of a sequence.
#[cfg(target_arch = "x86_64")]
fn was_aborted(pc: usize) -> bool {
    kyocho_arch::rseq::sequences().iter().any(|sequence| sequence.abort == pc)
}

/// Linux's sequences do not exist for this instruction set.
#[cfg(not(target_arch = "x86_64"))]
fn was_aborted(_: usize) -> bool {
    false
}

/// Runs batches of `main_line` in a storm of signals that run `in_handler`, until `enough(batches
/// so far)` or [`BATCHES_MAX`]. Returns the number of batches and of restarts.
fn storm(
    in_handler: &(dyn Fn() + Sync),
    mut main_line: impl FnMut(),
    mut enough: impl FnMut(usize) -> bool,
) -> (usize, usize) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: only this thread works on the words of this storm.
    unsafe { set_current_vp(VP.as_ptr()) };
    let signal = Signal::realtime(5);
    // SAFETY: the handler uses atomics and sequences only.
    unsafe {
        install(
            signal,
            on_timer,
            HandlerOptions { restart_calls: true, ..HandlerOptions::default() },
        )
    }
    .unwrap();
    // SAFETY: only the lifetime changes; the pointer is removed below.
    let mut job: Job =
        unsafe { core::mem::transmute::<*const (dyn Fn() + Sync + '_), Job>(in_handler) };
    RESTARTED.store(0, Ordering::Relaxed);
    JOB.store(&raw mut job, Ordering::Release);
    let timer = Timer::new(ThreadId::current(), signal, TimerClock::Monotonic).unwrap();
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

/// A way to add one to a word.
type Add<'a> = &'a (dyn Fn(&AtomicUsize) + Sync);

/// Number of additions that are missing after a storm on one word (or during it, if `enough` says
/// so), and number of restarts.
fn lost_in_storm(add: Add<'_>, enough: impl Fn(usize) -> bool) -> (usize, usize) {
    let (word, by_handler) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let in_handler = || {
        add(&word);
        by_handler.fetch_add(1, Ordering::Relaxed);
    };
    let lost = |batches: usize| {
        // The handler may run between the loads. Its part is read first, so that a later addition
        // is not mistaken for a loss.
        let expected = by_handler.load(Ordering::Relaxed) + batches * BATCH;
        expected.saturating_sub(word.load(Ordering::Relaxed))
    };
    let (batches, restarts) = storm(&in_handler, || add(&word), |batches| enough(lost(batches)));
    let expected = by_handler.load(Ordering::Relaxed) + batches * BATCH;
    assert!(word.load(Ordering::Relaxed) <= expected, "more than was added");
    (lost(batches), restarts)
}

/// Whether signals hit between load and store of the `control` as often as runs need. Checked with
/// the control, before the sequence is tested: otherwise a sequence that is never restarted would
/// be skipped, not caught.
fn signals_hit_often_enough(control: Add<'_>) -> bool {
    // For example, an emulator delivers signals only between its translated blocks.
    lost_in_storm(control, |lost| lost >= RESTARTS).0 >= RESTARTS
}

/// Asserts that `add` loses nothing in ten runs in which the `control` loses something.
fn no_addition_is_lost(name: &str, add: Add<'_>, control: Add<'_>) {
    if !signals_hit_often_enough(control) {
        return skip(name, NO_HITS);
    }
    for _ in 0..RUNS {
        assert_ne!(
            lost_in_storm(control, |lost| lost > 0).0,
            0,
            "signals hit the control, and it lost nothing"
        );
        let (lost, restarts) = lost_in_storm(add, |_| restarted_enough(0));
        assert_eq!(lost, 0);
        assert!(restarts >= RESTARTS, "signals hit, but restarted only {restarts} times");
    }
}

/// Adds with a sequence that is not registered, so it is not restarted.
fn add_unregistered(word: &AtomicUsize) {
    // SAFETY: the words of a storm belong to its thread. The test expects the control to lose
    // additions.
    drop_value(unsafe { mutant::fetch_add_unregistered(VP, word.as_ptr(), 1) }.unwrap());
}

#[test]
fn restarts_lose_no_addition_and_without_them_some_are_lost() {
    let add = |word: &AtomicUsize| {
        // SAFETY: the words of a storm belong to its thread.
        drop_value(unsafe { restartable::fetch_add(VP, word.as_ptr(), 1) }.unwrap());
    };
    no_addition_is_lost("no_addition_is_lost", &add, &add_unregistered);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn linux_restarts_lose_no_addition_and_without_them_some_are_lost() {
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
        // SAFETY: the words of a storm belong to its thread; also below.
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

/// Links, and the operations that remove and insert one.
struct Linked<'a> {
    take: &'a (dyn Fn() -> *mut Link + Sync),
    put: &'a (dyn Fn(*mut Link) + Sync),
}

/// Removes and inserts nodes in the main code and in the handler. Afterwards every node must be
/// there exactly once.
fn no_node_is_lost(name: &str, linked: &Linked<'_>, nodes: &mut [Link]) {
    if !signals_hit_often_enough(&add_unregistered) {
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
    // The handler changes the order, so that a stale read of the first two links is noticed.
    let swap_first_two = || {
        let (first, second) = ((linked.take)(), (linked.take)());
        put_back(first);
        put_back(second);
    };
    let (_, restarts) = storm(&swap_first_two, || put_back((linked.take)()), restarted_enough);
    assert!(restarts >= RESTARTS, "signals hit, but restarted only {restarts} times");
    let take = || Some(holding(linked.take)).filter(|node| !node.is_null());
    let mut left: Vec<*mut Link> = core::iter::from_fn(take).take(2 * nodes.len()).collect();
    assert_eq!(left.len(), nodes.len());
    left.sort();
    left.dedup();
    assert_eq!(left.len(), nodes.len(), "a node is listed twice or lost");
}

fn holding<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the test's thread alone uses the words.
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
    // SAFETY: head and nodes belong to this test's thread and outlive it; also below.
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
