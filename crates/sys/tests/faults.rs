//! Fault injection in every wrapper: the injected error is returned, and the next attempt succeeds.
//!
//! A program of its own, because injection affects every thread of a process.
#![expect(unsafe_code, reason = "calls wrappers that ask for a promise")]

use kyocho_sys::error::Errno;
use kyocho_sys::event::Event;
use kyocho_sys::fault::{Call, Injection, Kinds, sweep};
use kyocho_sys::futex::{self, Wait};
use kyocho_sys::mapping::Mapping;
use kyocho_sys::memory::{self, PAGE_BYTES};
use kyocho_sys::prim::atomic::unmodelled::AtomicU32;
use kyocho_sys::scheduling::{self, Attributes, Class, OnFork};
use kyocho_sys::signal::{self, AlternateStack, Delivery, Signal};
use kyocho_sys::task::{StateReader, SystemCallReader, ThreadId};
use kyocho_sys::thread;
use kyocho_sys::timer::{Timer, TimerClock};

/// Calls every wrapper once, stopping at the first error.
fn everything() -> Result<(), Errno> {
    let me = ThreadId::current();
    let mapping = Mapping::reserve(PAGE_BYTES)?;
    mapping.discard(0, PAGE_BYTES)?;
    let page = memory::reserve(PAGE_BYTES)?;
    // SAFETY: the page is used here only; also below.
    unsafe { memory::populate(page, PAGE_BYTES) }?;
    // SAFETY: as above.
    unsafe { memory::discard(page, PAGE_BYTES) }?;
    // SAFETY: as above.
    unsafe { memory::guard_page(page) }?;
    // SAFETY: as above.
    unsafe { memory::release(page, PAGE_BYTES) };
    scheduling::set_affinity(me, &scheduling::affinity(me)?)?;
    assert_eq!(scheduling::class(me)?, Some(Class::Normal));
    scheduling::set_class(me, Class::Normal)?;
    let (class, nice) = (Class::Normal, scheduling::nice(me)?);
    scheduling::set_attributes(me, Attributes { class, nice, on_fork: OnFork::Inherit })?;
    let before = signal::set_delivery(Signal::USR1, Delivery::Unblock)?;
    assert_eq!(before, Delivery::Unblock);
    drop(AlternateStack::install(PAGE_BYTES)?);
    let timer = Timer::new(me, Signal::USR1, TimerClock::Monotonic)?;
    timer.set_period(0)?;
    let event = Event::new()?;
    event.notify()?;
    assert_eq!(event.drain()?, 1);
    StateReader::open(me)?.read()?;
    SystemCallReader::open(me)?.read()?;
    thread::start("fault", 64 * 1024, || 5)?.join().map(drop).map_err(|_| Errno::SRCH)
}

#[test]
fn each_failing_call_is_reported_and_leaves_no_descriptor_behind() {
    // Of the kinds that `everything` opens: a panic of another test may have a file open meanwhile.
    let open = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        let ours = |name: &str| name.contains("eventfd") || name.contains("/task/");
        targets.filter(|target| ours(&target.to_string_lossy())).count()
    };
    let mut errors = 0;
    let faults = sweep(Kinds::Any, Errno::MFILE, 1000, |nth| {
        let before = open();
        let answer = everything();
        assert!(answer == Ok(()) || answer == Err(Errno::MFILE), "{nth}: {answer:?}");
        errors += u32::from(answer.is_err());
        assert_eq!(open(), before, "{nth}: descriptors left behind");
    });
    assert!(faults >= 20, "only {faults} calls can fail by injection");
    // Not every failure is an error: advice on memory may be refused, a guard that cannot be a
    // marker has a fallback, and a failing futex wait looks like a wake. The number of futex waits
    // in a join depends on which thread is faster.
    assert!(errors >= 18 && errors < faults, "{errors} errors of {faults} faults");
}

#[test]
fn only_the_kind_that_was_asked_for_fails() {
    let faults = sweep(Kinds::Only(Call::Timer), Errno::AGAIN, 100, |nth| {
        let answer = everything();
        assert!(answer == Ok(()) || answer == Err(Errno::AGAIN), "{nth}: {answer:?}");
    });
    assert_eq!(faults, 2, "one timer made and one armed");
}

#[test]
fn a_failing_futex_wait_looks_woken() {
    let injection = Injection::new(Kinds::Only(Call::FutexWait), 2, Errno::INTR);
    let word = AtomicU32::new(0);
    assert_eq!(futex::wait(&word, 1, None), Wait::Changed);
    assert!(!injection.fired());
    assert_eq!(futex::wait(&word, 0, None), Wait::Woken);
    assert!(injection.fired());
}

#[test]
#[should_panic(expected = "more than 5 runs met a fault")]
fn endless_scenario_panics() {
    sweep(Kinds::Only(Call::Mmap), Errno::NOMEM, 5, |nth| {
        for _ in 0..=nth {
            drop(Mapping::reserve(1));
        }
    });
}
