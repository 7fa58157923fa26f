//! What the host learns of priorities, and what still works when it acts on them. Each test has one
//! virtual processor on one CPU, where a raised thread delays all others. It runs with each kind of
//! reflection that the host permits.
#![expect(unsafe_code, reason = "the tests make raw system calls")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::fs;

use kyocho_microprocess::process::{Command, Stdio};
use kyocho_microprocess::{
    Detection, Microprocess, Priority, Reflection, Runtime, report, scope, sleep, statistics,
    yield_now,
};
use kyocho_sys::scheduling::{Class, CpuSet, affinity, class, nice, set_affinity, set_class};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

#[path = "support/alone.rs"]
mod alone;
#[path = "support/watchdog.rs"]
mod watchdog;
use alone::alone;
use watchdog::under_watchdog;

const MEANS: [Reflection; 2] = [Reflection::RealTime, Reflection::Nice];
const URGENT: u8 = 40;
const LOW: u8 = 3;

/// Runs `body` as a microprocess with each kind of reflection that the host permits, in a separate
/// process on one CPU.
fn under_each_reflection(
    test: &'static str,
    detection: Detection,
    body: impl Fn(Reflection) + Sync,
) {
    let under = |reflection| {
        let runtime = Runtime::builder().virtual_processors(1).detection(detection);
        let run = || (report().reflection == reflection).then(|| body(reflection));
        if runtime.reflection(reflection).build().run(run).unwrap().is_none() {
            skip(&format!("{test}_{reflection:?}").to_lowercase(), "not permitted");
        }
    };
    alone(test, || {
        let me = ThreadId::current();
        let first = affinity(me).unwrap().iter().next().unwrap();
        set_affinity(me, &CpuSet::single(first)).unwrap();
        under_watchdog(test, || MEANS.into_iter().for_each(under));
    });
}

/// Spins until `word` is set, without a call of the runtime.
fn spin_until(word: &AtomicBool) {
    while !word.load(Ordering::SeqCst) {
        spin_loop();
    }
}

/// Sets the caller's level.
fn become_level(level: u8) {
    Microprocess::current().set_priority(Priority::new(level).unwrap());
}

/// How the host schedules the caller.
fn standing() -> (Class, i32) {
    let me = ThreadId::current();
    (class(me).unwrap().unwrap(), nice(me).unwrap())
}

/// Spins until the host schedules the caller so that `is_right` holds.
fn await_standing(is_right: impl Fn((Class, i32)) -> bool) {
    while !is_right(standing()) {
        spin_loop();
    }
}

fn is_raised(reflection: Reflection, usual: i32) -> impl Fn((Class, i32)) -> bool {
    move |(class, nice)| match reflection {
        Reflection::RealTime => matches!(class, Class::RoundRobin(2..)),
        _ => class == Class::Normal && nice < usual,
    }
}

#[test]
fn the_host_learns_of_a_level_and_of_the_next() {
    let test = "the_host_learns_of_a_level_and_of_the_next";
    under_each_reflection(test, Detection::Auto, |reflection| {
        let usual = standing();
        for _ in 0..3 {
            become_level(URGENT);
            await_standing(is_raised(reflection, usual.1));
            become_level(LOW);
            await_standing(|(class, nice)| class == Class::Normal && nice > usual.1);
            become_level(Priority::NORMAL.level());
            await_standing(|now| now == usual);
        }
    });
}

/// The class and the nice value of a process that is started, read from the host.
fn of_child() -> (u32, i32) {
    let mut child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
    let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    let field = |number: usize| fields.split(' ').nth(number - 3).unwrap();
    let found = (field(41).parse().unwrap(), field(19).parse().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    found
}

#[test]
fn child_processes_do_not_inherit_it() {
    under_each_reflection("child_processes_do_not_inherit_it", Detection::Auto, |reflection| {
        let usual = standing();
        let of_usual_child = of_child();
        become_level(URGENT);
        await_standing(is_raised(reflection, usual.1));
        // If it was itself started nicer, its children are normal: the host has one normal value,
        // 0.
        let child = of_child();
        assert_eq!(child.0, 0);
        assert!(child == of_usual_child || child.1 == 0, "{child:?}");
        become_level(LOW);
        await_standing(|(_, nice)| nice > usual.1);
        assert_eq!(of_child(), of_usual_child);
        // It is low again.
        await_standing(|(_, nice)| nice > usual.1);
    });
}

/// Sleeps in the kernel, without calling the runtime, until `word` is 1.
fn sleep_on(word: &AtomicU32) {
    while word.load(Ordering::SeqCst) == 0 {
        let wait = libc::FUTEX_WAIT;
        // SAFETY: a live word, its expected value, no timeout.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, 0, 0) };
    }
}

/// Sleeps until a neighbour of the same level ends the sleep. The neighbour must get the virtual
/// processor for that.
fn sleep_until_a_neighbour_comes() {
    let word = AtomicU32::new(0);
    scope(|scope| {
        scope.spawn(|| {
            word.store(1, Ordering::SeqCst);
            // SAFETY: a live word, and how many to wake.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
        });
        sleep_on(&word);
    });
}

#[test]
fn sleep_in_the_kernel_is_noticed() {
    let test = "sleep_in_the_kernel_is_noticed";
    for detection in [Detection::Sentinel, Detection::Monitor] {
        under_each_reflection(test, detection, |reflection| {
            let usual = standing();
            become_level(URGENT);
            await_standing(is_raised(reflection, usual.1));
            sleep_until_a_neighbour_comes();
            become_level(LOW);
            await_standing(|(_, nice)| nice > usual.1);
            sleep_until_a_neighbour_comes();
            assert!(statistics().blocked >= 2);
        });
    }
}

#[test]
fn loops_without_calls_take_turns() {
    under_each_reflection("loops_without_calls_take_turns", Detection::Auto, |reflection| {
        let usual = standing();
        become_level(URGENT);
        await_standing(is_raised(reflection, usual.1));
        let (here, there) = (AtomicBool::new(false), AtomicBool::new(false));
        scope(|scope| {
            let other = || {
                there.store(true, Ordering::SeqCst);
                spin_until(&here);
            };
            scope.spawn(other);
            spin_until(&there);
            here.store(true, Ordering::SeqCst);
        });
        // A timer gives way to more urgent ones.
        let (begun, tick) = (AtomicBool::new(false), AtomicBool::new(false));
        scope(|scope| {
            scope.spawn(|| {
                become_level(Priority::HIGHEST.level());
                begun.store(true, Ordering::SeqCst);
                sleep(Duration::from_millis(1));
                tick.store(true, Ordering::SeqCst);
            });
            while !begun.load(Ordering::SeqCst) {
                yield_now();
            }
            spin_until(&tick);
        });
    });
}

/// Runs beside an equal until it was preempted, so that the monitor has checked.
fn run_until_preempted() {
    let (before, stop) = (statistics().preempted, AtomicBool::new(false));
    scope(|scope| {
        scope.spawn(|| spin_until(&stop));
        while statistics().preempted == before {
            spin_loop();
        }
        stop.store(true, Ordering::SeqCst);
    });
}

/// Runs an urgent microprocess until the host knows. Returns whether the host is told by real-time
/// classes.
fn raise_somebody() -> bool {
    let usual = standing();
    become_level(URGENT);
    let raised = report().reflection == Reflection::RealTime;
    if raised {
        await_standing(is_raised(Reflection::RealTime, usual.1));
    }
    raised
}

/// Nothing that runs here changes how the host schedules the caller's kernel thread, or the next
/// one of its virtual processor.
fn stay_as(given: (Class, i32)) {
    assert_eq!(report().reflection, Reflection::Off);
    for level in [URGENT, LOW, Priority::NORMAL.level()] {
        assert_eq!(standing(), given);
        become_level(level);
        sleep_until_a_neighbour_comes();
        // Its children have that class as well, and starting them changes nothing.
        assert_eq!(of_child().0, libc::SCHED_FIFO as u32);
    }
    assert_eq!(standing(), given);
}

#[test]
fn a_class_that_the_user_gave_is_kept() {
    let test = "a_class_that_the_user_gave_is_kept";
    let on_one = || Runtime::builder().virtual_processors(1).build();
    let body = || {
        // From here on a new kernel thread may have another class than its virtual processor needs.
        let raised = on_one().run(raise_somebody).unwrap();
        let me = ThreadId::current();
        let given = Class::Fifo(10);
        if !raised || set_class(me, given).is_err() {
            return skip(test, "real-time classes are not permitted");
        }
        let nice = nice(me).unwrap();
        on_one().run(|| stay_as((given, nice))).unwrap();
    };
    alone(test, || under_watchdog(test, body));
}

#[test]
fn it_can_be_turned_off() {
    let run = || {
        assert_eq!(report().reflection, Reflection::Off);
        let text = report().to_string();
        assert!(text.contains("told of priorities by: none"), "{text}");
        let usual = standing();
        become_level(URGENT);
        run_until_preempted();
        assert_eq!(standing(), usual);
    };
    under_watchdog("off", || {
        let runtime = Runtime::builder().virtual_processors(1).reflection(Reflection::Off).build();
        runtime.run(run).unwrap();
    });
}
