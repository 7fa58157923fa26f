//! Whatever makes a kernel thread sleep, and whichever source notices it: the virtual processor
//! continues.
//!
//! Every sleeper of this suite sleeps in the kernel until a *neighbour* on the same virtual
//! processor releases it. A source that does not notice the sleep makes its test hang. Each kind of
//! sleep is tested with every source that the host permits; the others are reported as skipped.
#![expect(unsafe_code, reason = "the tests make raw system calls")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::Arc;

use kyocho_arch::restartable;
use kyocho_microprocess::scheduler::{Arrival, Entry, Event, EventKind, List, Scheduler, Slice};
use kyocho_microprocess::{
    Detection, JoinHandle, Priority, Runtime, Scope, Statistics, report, scope, spawn, statistics,
    yield_now,
};
use kyocho_sys::skip::skip;

#[path = "support/kinds.rs"]
mod kinds;
#[path = "support/late_page.rs"]
mod late_page;
#[path = "support/lookup.rs"]
mod lookup;
#[path = "support/watchdog.rs"]
mod watchdog;
use kinds::{Kind, all};
use late_page::LatePage;
use watchdog::under_watchdog;

/// All sources that notice sleep.
const SOURCES: [Detection; 3] = [Detection::Bpf, Detection::Sentinel, Detection::Monitor];

fn on(count: usize, detection: Detection) -> Runtime {
    Runtime::builder().virtual_processors(count).detection(detection).build()
}

/// Runs `body` with every source that the host permits.
fn under_each_source(test: &str, body: impl Fn(Detection) + Sync) {
    for source in SOURCES {
        if on(1, source).run(|| report().detection).unwrap() == source {
            under_watchdog("detection", || body(source));
        } else {
            skip(
                &format!("{test}_{source:?}").to_lowercase(),
                "the host does not permit this source",
            );
        }
    }
}

/// A microprocess that sleeps `times` times, and counts each sleep that has ended.
struct Sleeper {
    kind: Arc<dyn Kind>,
    woken: Arc<AtomicUsize>,
    handle: JoinHandle<()>,
}

impl Sleeper {
    fn start(kind: Box<dyn Kind>, times: usize) -> Self {
        let (kind, woken): (Arc<dyn Kind>, _) = (Arc::from(kind), Arc::new(AtomicUsize::new(0)));
        let (slept, count) = (Arc::clone(&kind), Arc::clone(&woken));
        let handle = spawn(move || {
            for time in 0..times {
                slept.sleep(time);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { kind, woken, handle }
    }

    /// Releases it from sleep number `time`, and waits until it has counted that sleep.
    fn release(&self, time: usize) {
        assert_eq!(self.woken.load(Ordering::SeqCst), time, "it woke by itself");
        self.kind.release(time);
        while self.woken.load(Ordering::SeqCst) == time {
            self.kind.insist(time);
            yield_now();
        }
        assert_eq!(self.woken.load(Ordering::SeqCst), time + 1, "one release, one wake");
    }
}

/// Runs one sleeper and one neighbour, `times` times.
fn one_at_a_time(kind: Box<dyn Kind>, times: usize, source: Detection) -> Statistics {
    on(1, source)
        .run(|| {
            let sleeper = Sleeper::start(kind, times);
            for time in 0..times {
                yield_now();
                sleeper.release(time);
            }
            sleeper.handle.join().unwrap();
            statistics()
        })
        .unwrap()
}

/// How often each kind of sleep is tried, and how many sleepers a crowd has.
const TIMES: usize = 10;
const CROWD: usize = 60;

#[test]
fn a_sleeper_in_the_kernel_does_not_stop_its_neighbour() {
    under_each_source("a_sleeper_in_the_kernel", |source| {
        for (name, kind) in all(TIMES) {
            let Some(kind) = kind else {
                skip(
                    &format!("a_sleeper_in_{name}").replace(' ', "_"),
                    "the host does not permit it",
                );
                continue;
            };
            let counted = one_at_a_time(kind, TIMES, source);
            assert!(counted.blocked > 0, "{name} under {source:?}: {counted:?}");
            assert_eq!(counted.blocked, counted.unblocked, "{name} under {source:?}");
        }
    });
}

/// Lets a crowd sleep, and releases the first, the last, the second, and so on. Returns how many
/// woke.
fn crowd() -> usize {
    let kinds = (0..).flat_map(|_| all(1)).filter_map(|(_, kind)| kind);
    let mut sleepers: VecDeque<Sleeper> =
        kinds.take(CROWD).map(|kind| Sleeper::start(kind, 1)).collect();
    yield_now();
    let mut woken = 0;
    while let Some(sleeper) = sleepers.pop_front() {
        sleeper.release(0);
        woken += sleeper.woken.load(Ordering::SeqCst);
        sleeper.handle.join().unwrap();
        sleepers.make_contiguous().reverse();
    }
    woken
}

#[test]
fn many_sleepers_of_all_kinds_are_released_in_any_order() {
    under_each_source("many_sleepers_of_all_kinds", |source| {
        for processors in [1, 2] {
            assert_eq!(on(processors, source).run(crowd).unwrap(), CROWD, "{source:?}");
        }
    });
}

/// A sleeper that wakes in the kernel and makes no call of the runtime runs beside its virtual
/// processor, until a signal calls it back.
#[test]
fn a_sleeper_that_wakes_and_never_calls_is_called_back() {
    under_each_source("a_sleeper_that_wakes_and_never_calls", |source| {
        let stop = AtomicBool::new(false);
        on(1, source).run(|| scope(|scope| wake_a_hog(scope, &stop))).unwrap();
    });
}

fn wake_a_hog<'scope>(scope: &'scope Scope<'scope, '_>, stop: &'scope AtomicBool) {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let hog = scope.spawn(move || {
        reader.read_exact(&mut [0]).unwrap();
        while !stop.load(Ordering::Relaxed) {
            core::hint::spin_loop();
        }
    });
    while statistics().blocked == 0 {
        yield_now();
    }
    writer.write_all(&[1]).unwrap();
    // It is not stopped before it has asked for a virtual processor.
    while statistics().unblocked == 0 {
        yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    hog.join().unwrap();
}

/// Counts the turns it gets.
fn count_turns(turns: &AtomicUsize, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        turns.fetch_add(1, Ordering::SeqCst);
        yield_now();
    }
}

/// A restartable sequence that waits for a page. Its virtual processor must not be taken meanwhile:
/// what the sequence read before the fault would become invalid, and no signal handler sees the
/// fault to restart the sequence.
#[test]
fn a_page_fault_inside_a_restartable_sequence_keeps_the_processor() {
    under_each_source("a_page_fault_inside_a_restartable_sequence", |source| {
        let Some(page) = LatePage::new() else {
            return skip("a_page_fault_inside_a_restartable_sequence", "no userfaultfd here");
        };
        let turns = Arc::new(AtomicUsize::new(0));
        let over = Arc::new(AtomicBool::new(false));
        on(1, source)
            .run(|| {
                let (count, stop) = (Arc::clone(&turns), Arc::clone(&over));
                let neighbour = spawn(move || count_turns(&count, &stop));
                let (word, count) = (page.address(), Arc::clone(&turns));
                let filler = kinds::once_asleep_in_a_sequence(move |look_on| {
                    let before = count.load(Ordering::SeqCst);
                    look_on();
                    let after = count.load(Ordering::SeqCst);
                    page.fill();
                    after - before
                });
                let word = core::ptr::with_exposed_provenance_mut(word);
                // Until a sequence begins: it is refused while another thread checks this one to
                // take its virtual processor.
                let swap = || {
                    let vp = core::ptr::NonNull::new(kyocho_arch::current_vp())?;
                    // SAFETY: only this code uses the word. Its fault is the purpose of the test.
                    unsafe { restartable::compare_and_swap(vp, word, 0, 7) }.ok()
                };
                let swapped = core::iter::repeat_with(swap).find_map(|old| old);
                assert_eq!(swapped, Some(0));
                // SAFETY: as above.
                assert_eq!(unsafe { word.read_volatile() }, 7);
                over.store(true, Ordering::SeqCst);
                assert_eq!(filler.join().unwrap(), 0, "the neighbour ran, with {source:?}");
                neighbour.join().unwrap();
            })
            .unwrap();
    });
}

/// The same word outside a sequence: then the neighbour does run.
#[test]
fn page_fault_outside_of_a_sequence_releases_the_virtual_processor() {
    under_each_source("page_fault_outside_of_a_sequence", |source| {
        let Some(page) = LatePage::new() else {
            return skip("page_fault_outside_of_a_sequence", "no userfaultfd here");
        };
        on(1, source)
            .run(|| {
                let address = page.address();
                let neighbour = spawn(move || page.fill());
                // SAFETY: a mapped word. The kernel waits until the neighbour fills the page.
                let read = unsafe { (address as *const usize).read_volatile() };
                assert_eq!(read, 0);
                neighbour.join().unwrap();
            })
            .unwrap();
    });
}

#[test]
fn preemptions_by_the_host_are_counted_where_it_reports_them() {
    under_each_source("preemptions_by_the_host", |source| {
        let counted = on(1, source).run(|| {
            let rival = kinds::rival_of_this_cpu();
            // Until the host has taken the CPU from this thread, and given it back, a few times.
            while source == Detection::Bpf && statistics().host_resumed < 3 {}
            drop(rival);
            statistics()
        });
        let counted = counted.unwrap();
        assert!(counted.host_preempted >= counted.host_resumed, "{counted:?}");
        assert_eq!(counted.host_preempted > 0, source == Detection::Bpf, "{counted:?}");
    });
}

/// Keeps the built-in queue's order, and records where the last microprocess stopped that fell
/// asleep.
struct Witness {
    queue: List,
    stack: Arc<AtomicUsize>,
}

impl Scheduler for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn enqueue(&mut self, entry: Entry, _arrival: Arrival, _now_ns: u64) {
        self.queue.push_back(entry);
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        self.queue.pop_front()
    }

    fn remove(&mut self, entry: Entry) {
        self.queue.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.queue.first().map(Entry::priority)
    }

    fn preempts(&self, _running: Entry, slice: Slice, _now_ns: u64) -> bool {
        slice == Slice::Over
    }

    fn event(&mut self, event: &Event, _now_ns: u64) {
        if event.kind == EventKind::Blocked {
            let registers = event.bound.and_then(|bound| bound.registers);
            self.stack.store(registers.map_or(1, |at| at.stack), Ordering::SeqCst);
        }
    }
}

#[test]
fn every_detection_reports_the_stack_pointer_of_a_sleeper() {
    /// More than the frames between a function and the system call in which it sleeps.
    const DEPTH_BYTES: usize = 16 << 10;
    under_each_source("every_detection_reports_the_stack_pointer_of_a_sleeper", |source| {
        let stack = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&stack);
        let scheduler =
            move |_| Box::new(Witness { queue: List::new(), stack: Arc::clone(&seen) }) as Box<_>;
        let builder = Runtime::builder().virtual_processors(1).detection(source);
        builder
            .scheduler(scheduler)
            .build()
            .run(|| {
                let (read, write) = std::io::pipe().unwrap();
                let sleeper = spawn(move || {
                    let frame = 0_u8;
                    (&read).read_exact(&mut [0]).unwrap();
                    core::ptr::from_ref(&frame).addr()
                });
                while stack.load(Ordering::SeqCst) == 0 {
                    yield_now();
                }
                (&write).write_all(&[1]).unwrap();
                let (frame, told) = (sleeper.join().unwrap(), stack.load(Ordering::SeqCst));
                let near = frame.saturating_sub(DEPTH_BYTES)..frame + DEPTH_BYTES;
                assert!(near.contains(&told), "{told:#x} is not near {frame:#x}, with {source:?}");
            })
            .unwrap();
    });
}

/// Marks the child process of a test.
const CHILD: &str = "KYOCHO_TEST_CHILD";

#[test]
fn without_the_capabilities_the_sentinel_is_chosen() {
    if std::env::var_os(CHILD).is_some() {
        kinds::drop_capabilities();
        on(2, Detection::Bpf)
            .run(|| {
                assert_eq!(report().detection, Detection::Sentinel);
                assert!(report().to_string().contains("CAP_BPF"), "{}", report());
            })
            .unwrap();
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "without_the_capabilities_the_sentinel_is_chosen", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
