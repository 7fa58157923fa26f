//! Orders to microprocesses in every state.
#![expect(unsafe_code, reason = "sleeps in the kernel by raw system calls")]

use core::hint::{black_box, spin_loop};
use core::time::Duration;
use std::sync::Arc;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{Gone, Killed, find};
use crate::calls::net::UnixStream;
use crate::park;
use crate::processor::record::{Kind, State};
use crate::wait::channel::{bounded, rendezvous};
use crate::wait::sync::SpinMutex;
use crate::yield_now;
use crate::{Barrier, Condvar, Detection, Microprocess, Mutex, Runtime, RwLock, Semaphore, bound};
use crate::{scope, select, sleep, spawn, spawn_future};

#[path = "../../../tests/support/watchdog.rs"]
pub(crate) mod watchdog;
use watchdog::under_watchdog;

mod stackless;

const FOR_EVER: Duration = Duration::from_secs(1 << 30);

fn runtime(virtual_processors: usize) -> Runtime {
    Runtime::builder().virtual_processors(virtual_processors).detection(Detection::Auto).build()
}

/// What a victim shares with the test.
#[derive(Default)]
struct Stage {
    /// The victim is about to do what it is to be killed in.
    reached: AtomicBool,
    /// How many destructors of the victim ran.
    unwound: AtomicU32,
    /// Ends victims that are not killed.
    stop: AtomicBool,
}

/// Lies on the victim's stack.
struct Witness(Arc<Stage>);

impl Drop for Witness {
    fn drop(&mut self) {
        // A destructor may use the runtime, even wait.
        yield_now();
        self.0.unwound.fetch_add(1, Ordering::SeqCst);
    }
}

/// The state for which the test waits before it gives its order.
#[derive(Clone, Copy)]
enum In {
    /// This state, for whatever reason.
    State(State),
    /// Parked, for this reason.
    Wait(Kind),
    /// Running or runnable.
    Motion,
}

impl In {
    fn holds(self, victim: Microprocess) -> bool {
        let record = victim.record();
        match self {
            Self::State(state) => record.state.get() == state,
            Self::Wait(kind) => {
                record.state.get() == State::Parked && record.reason.get().kind == kind
            }
            Self::Motion => true,
        }
    }
}

type Body = fn(&Stage);

fn never(_: &Stage) -> bool {
    false
}

fn wait_in_scope(stage: &Stage) {
    scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| sleep(FOR_EVER));
        }
        let _ = never(stage);
    });
}

fn raw_sleep(_: &Stage) {
    let time = libc::timespec { tv_sec: 1 << 20, tv_nsec: 0 };
    // SAFETY: reads one timespec.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
    yield_now();
    unreachable!("a killed microprocess continued after a kill point");
}

fn lock_twice(_: &Stage) {
    let mutex = Mutex::new(());
    let _held = mutex.lock();
    drop(mutex.lock());
}

fn wait_for_condition(_: &Stage) {
    let (mutex, never) = (Mutex::new(()), Condvar::new());
    drop(never.wait(mutex.lock().unwrap()));
}

fn read_while_written(_: &Stage) {
    let lock = RwLock::new(());
    let _held = lock.write();
    drop(lock.read());
}

fn select_among_two(_: &Stage) {
    let (_one, first) = rendezvous::<u8>();
    let (_other, second) = rendezvous::<u8>();
    select! {
        recv(first) -> _ => unreachable!("no message is sent"),
        recv(second) -> _ => unreachable!("no message is sent"),
    }
}

fn send_into_full(_: &Stage) {
    let (sender, _receiver) = bounded(1);
    sender.send(vec![0_u8; 100]).unwrap();
    sender.send(vec![0_u8; 100]).unwrap();
}

fn read_a_socket(_: &Stage) {
    use std::io::Read;
    let (mut ours, _theirs) = UnixStream::pair().unwrap();
    let mut byte = [0];
    drop(ours.read(&mut byte));
}

fn lock_and_unlock(_: &Stage) {
    let mutex = Mutex::new(0_u64);
    loop {
        *mutex.lock().unwrap() += 1;
    }
}

/// Every state in which a stackful microprocess may be killed, and unwinds.
const STATES: &[(&str, In, Body)] = &[
    ("running, calls the runtime", In::Motion, |_| {
        loop {
            yield_now();
        }
    }),
    ("running, locks without waiting", In::Motion, lock_and_unlock),
    ("park", In::Wait(Kind::Park), |_| {
        loop {
            park();
        }
    }),
    ("park, on its kernel thread", In::Wait(Kind::Park), |_| {
        bound(|| {
            loop {
                park();
            }
        });
    }),
    ("sleep", In::Wait(Kind::Sleep), |_| sleep(FOR_EVER)),
    ("mutex", In::Wait(Kind::Mutex), lock_twice),
    ("spin lock", In::Wait(Kind::SpinMutex), |_| {
        let lock = SpinMutex::new(());
        let _first = lock.lock();
        drop(lock.lock());
    }),
    ("condition variable", In::Wait(Kind::Condvar), wait_for_condition),
    ("reader-writer lock", In::Wait(Kind::RwLock), read_while_written),
    ("semaphore", In::Wait(Kind::Semaphore), |_| Semaphore::new(0).acquire()),
    ("barrier", In::Wait(Kind::Barrier), |_| {
        let _leader = Barrier::new(2).wait();
    }),
    ("send, rendezvous", In::Wait(Kind::Send), |_| {
        let (sender, _receiver) = rendezvous();
        sender.send(Box::new(1)).unwrap();
    }),
    ("send, full", In::Wait(Kind::Send), send_into_full),
    ("receive", In::Wait(Kind::Receive), |_| {
        let (_sender, receiver) = rendezvous::<Box<u8>>();
        drop(receiver.recv());
    }),
    ("select", In::Wait(Kind::Select), select_among_two),
    ("join", In::Wait(Kind::Join), |_| drop(spawn(|| sleep(FOR_EVER)).join())),
    ("join of a future", In::Wait(Kind::Join), |_| {
        drop(spawn_future(core::future::pending::<()>()).unwrap().join());
    }),
    ("scope", In::Wait(Kind::Scope), wait_in_scope),
    ("input and output", In::Wait(Kind::Io), read_a_socket),
    ("asleep in the kernel", In::State(State::Blocked), raw_sleep),
];

/// Starts a victim and waits until it is in the wanted state.
fn place(stage: &Arc<Stage>, wanted: In, body: Body) -> crate::JoinHandle<()> {
    let theirs = Arc::clone(stage);
    let victim = spawn(move || {
        let witness = Witness(theirs);
        witness.0.reached.store(true, Ordering::SeqCst);
        body(&witness.0);
    });
    let there = || stage.reached.load(Ordering::SeqCst) && wanted.holds(victim.microprocess());
    while !there() {
        sleep(Duration::from_millis(1));
    }
    victim
}

/// Runs `main` on one virtual processor and on two.
fn everywhere(name: &'static str, main: impl Fn() + Send + Sync) {
    for count in [1, 2] {
        under_watchdog(name, || runtime(count).run(&main).unwrap());
    }
}

fn await_suspension(target: Microprocess) {
    while target.record().state.get() != State::Suspended {
        sleep(Duration::from_micros(100));
    }
}

#[test]
fn kill_ends_a_microprocess_in_every_state() {
    for &(state, wanted, body) in STATES {
        everywhere(state, || {
            let stage = Arc::new(Stage::default());
            let victim = place(&stage, wanted, body);
            assert_eq!(victim.microprocess().kill(), Ok(()), "{state}");
            let payload = victim.join().unwrap_err();
            assert!(payload.is::<Killed>(), "{state}");
            assert_eq!(stage.unwound.load(Ordering::SeqCst), 1, "{state}");
        });
    }
}

#[test]
fn microprocess_is_suspended_and_resumed_in_every_state() {
    for &(state, wanted, body) in STATES {
        everywhere(state, || {
            let stage = Arc::new(Stage::default());
            let victim = place(&stage, wanted, body);
            let target = victim.microprocess();
            assert_eq!(target.suspend(), Ok(()), "{state}");
            if matches!(wanted, In::Motion) {
                await_suspension(target);
            }
            assert_eq!(target.resume(), Ok(()), "{state}");
            assert_eq!(target.suspend(), Ok(()), "{state}");
            // A kill also resumes it.
            assert_eq!(target.kill(), Ok(()), "{state}");
            assert!(victim.join().unwrap_err().is::<Killed>(), "{state}");
            assert_eq!(stage.unwound.load(Ordering::SeqCst), 1, "{state}");
        });
    }
}

#[test]
fn a_wake_while_suspended_is_kept() {
    everywhere("wake while suspended", || {
        let (sender, receiver) = rendezvous();
        let victim = spawn(move || receiver.recv());
        let target = victim.microprocess();
        while !In::Wait(Kind::Receive).holds(target) {
            yield_now();
        }
        target.suspend().unwrap();
        sender.send(7).unwrap();
        await_suspension(target);
        assert!(!victim.is_finished());
        target.resume().unwrap();
        assert_eq!(victim.join().unwrap(), Ok(7));
    });
}

#[test]
fn microprocess_killed_before_it_began_never_begins() {
    under_watchdog("not begun", || {
        runtime(1)
            .run(|| {
                let (kept, owned) = (Arc::new(()), Arc::new(()));
                let inside = Arc::clone(&owned);
                let victim = spawn(move || {
                    drop(inside);
                    unreachable!("killed before it began");
                });
                victim.microprocess().kill().unwrap();
                assert!(victim.join().unwrap_err().is::<Killed>());
                assert_eq!((Arc::strong_count(&owned), Arc::strong_count(&kept)), (1, 1));
            })
            .unwrap();
    });
}

#[test]
fn orders_to_an_ended_microprocess_are_refused() {
    runtime(1)
        .run(|| {
            let ended = spawn(|| ());
            let target = ended.microprocess();
            ended.join().unwrap();
            assert_eq!(target.kill(), Err(Gone));
            assert_eq!(target.suspend(), Err(Gone));
            // Nor does the next user of its record get the order.
            let next_user = spawn(|| 1);
            assert_eq!(target.kill(), Err(Gone));
            assert_eq!(next_user.join().unwrap(), 1);
            assert!(find(target.id()).is_none());
        })
        .unwrap();
}

/// Runs until `stop` is set, without a call of the runtime.
#[inline(never)]
fn spin(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        black_box(());
        spin_loop();
    }
}

fn kill_a_loop_in<'scope>(scope: &'scope crate::Scope<'scope, '_>, stage: &Arc<Stage>) {
    let theirs = Arc::clone(stage);
    let hog = scope.spawn(move || spin(&theirs.stop));
    yield_now();
    hog.microprocess().kill().unwrap();
    assert!(hog.join().unwrap_err().is::<Killed>());
}

#[test]
fn killed_loop_without_calls_is_abandoned() {
    let stage = Arc::new(Stage::default());
    everywhere("hog", || {
        let victim = place(&stage, In::Motion, |stage| spin(&stage.stop));
        victim.microprocess().kill().unwrap();
        assert!(victim.join().unwrap_err().is::<Killed>());
        // In a scope; the scope continues.
        scope(|scope| kill_a_loop_in(scope, &stage));
    });
    assert_eq!(stage.unwound.load(Ordering::SeqCst), 0, "it does not unwind");
    assert!(!stage.stop.load(Ordering::SeqCst));
}

#[test]
fn microprocess_that_always_unwinds_is_not_abandoned() {
    everywhere("service", || {
        let stage = Arc::new(Stage::default());
        let victim = place(&stage, In::Motion, |stage| {
            crate::always_unwind();
            spin(&stage.stop);
            yield_now();
        });
        let target = victim.microprocess();
        target.kill().unwrap();
        // Others are abandoned meanwhile, beside it and after it.
        (0..3).for_each(|_| scope(|scope| kill_a_loop_in(scope, &stage)));
        assert!(find(target.id()).is_some(), "it still runs");
        assert_eq!(stage.unwound.load(Ordering::SeqCst), 0);
        stage.stop.store(true, Ordering::SeqCst);
        assert!(victim.join().unwrap_err().is::<Killed>());
        assert_eq!(stage.unwound.load(Ordering::SeqCst), 1, "it has unwound");
    });
}

#[test]
fn loop_without_calls_is_suspended_and_resumed() {
    everywhere("hog suspended", || {
        let stage = Arc::new(Stage::default());
        let victim = place(&stage, In::Motion, |stage| spin(&stage.stop));
        let target = victim.microprocess();
        target.suspend().unwrap();
        await_suspension(target);
        stage.stop.store(true, Ordering::SeqCst);
        target.resume().unwrap();
        victim.join().unwrap();
    });
}

#[test]
fn a_mutex_whose_holder_is_killed_is_free_and_poisoned() {
    runtime(1)
        .run(|| {
            let mutex = Arc::new(Mutex::new(0));
            let theirs = Arc::clone(&mutex);
            let holder = spawn(move || {
                let _guard = theirs.lock().unwrap();
                sleep(FOR_EVER);
            });
            yield_now();
            let theirs = Arc::clone(&mutex);
            let waiter = spawn(move || theirs.lock().is_err());
            yield_now();
            holder.microprocess().kill().unwrap();
            assert!(holder.join().unwrap_err().is::<Killed>());
            assert!(waiter.join().unwrap(), "poisoned, and handed over");
        })
        .unwrap();
}

#[test]
fn a_killed_microprocess_that_catches_its_panic_dies_at_the_next_point() {
    runtime(1)
        .run(|| {
            let tries = Arc::new(AtomicU32::new(0));
            let theirs = Arc::clone(&tries);
            let stubborn = spawn(move || {
                let attempt = || {
                    theirs.fetch_add(1, Ordering::SeqCst);
                    park();
                };
                (0..3).for_each(|_| drop(std::panic::catch_unwind(attempt)));
                yield_now();
                unreachable!("the kill still takes effect");
            });
            yield_now();
            stubborn.microprocess().kill().unwrap();
            assert!(stubborn.join().unwrap_err().is::<Killed>());
            assert_eq!(tries.load(Ordering::SeqCst), 3);
        })
        .unwrap();
}

#[test]
fn a_killed_future_is_dropped_and_joined() {
    runtime(1)
        .run(|| {
            let owned = Arc::new(());
            let inside = Arc::clone(&owned);
            let future = spawn_future(async move {
                let _inside = inside;
                core::future::pending::<()>().await;
            });
            let future = future.unwrap();
            yield_now();
            future.microprocess().kill().unwrap();
            assert!(future.join().unwrap_err().is::<Killed>());
            assert_eq!(Arc::strong_count(&owned), 1);
        })
        .unwrap();
}

#[test]
fn a_suspended_microprocess_is_no_deadlock_until_it_is_resumed() {
    under_watchdog("no deadlock", || {
        let deadlock = runtime(1).run(|| {
            let (_sender, receiver) = rendezvous::<()>();
            let waits = spawn(move || receiver.recv());
            let target = waits.microprocess();
            yield_now();
            target.suspend().unwrap();
            kyocho_sys::prim::thread::spawn(move || {
                std::thread::yield_now();
                target.resume().unwrap();
            });
            // Both wait for ever, which is a deadlock once the kernel thread has resumed the other.
            let _never = waits.join();
        });
        assert!(deadlock.is_err());
    });
}

#[test]
fn main_can_be_killed() {
    let unwound = std::panic::catch_unwind(|| {
        runtime(1).run(|| {
            Microprocess::current().kill().unwrap();
            park();
        })
    });
    assert!(unwound.unwrap_err().is::<Killed>());
}

#[test]
fn ids_are_unique_in_the_address_space() {
    let id = || runtime(1).run(|| Microprocess::current().id()).unwrap();
    assert_ne!(id(), id());
    runtime(1)
        .run(|| {
            let me = Microprocess::current();
            assert_eq!(find(me.id()), Some(me));
            assert_eq!(me.global_id().process, std::process::id());
        })
        .unwrap();
}
