//! Waits and the events of a runtime: I/O beside sleeping and spinning kernel threads, order by
//! priority, the deadlock report, and what a stopped runtime leaves behind.
#![allow(missing_docs, unsafe_code, reason = "tests are sentences; they make raw system calls")]
#![expect(clippy::excessive_nesting, reason = "a scenario nests: watchdog, runtime, microprocess")]
#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex as StdMutex};

use kyocho_microprocess::channel::{self, Receiver, Sender};
use kyocho_microprocess::{
    Barrier, Builder, Condvar, Kind, Microprocess, Mutex, Priority, Runtime, RwLock, Semaphore, io,
    scope, select, spawn, sync::SpinMutex, yield_now,
};

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;

fn on(virtual_processors: usize) -> Runtime {
    Runtime::builder().virtual_processors(virtual_processors).build()
}

/// Reads one byte by a plain system call, which blocks the kernel thread.
fn raw_read(from: &impl AsRawFd) -> u8 {
    let mut byte = 0_u8;
    let (descriptor, place) = (from.as_raw_fd(), (&raw mut byte).cast());
    // SAFETY: there is one byte to write to.
    let count = unsafe { libc::read(descriptor, place, 1) };
    assert_eq!(count, 1);
    byte
}

#[test]
fn completion_does_not_wait_for_its_submitter() {
    under_watchdog("submitter asleep", || {
        let (reader, mut writer) = pipe().unwrap();
        let (raw_reader, mut raw_writer) = pipe().unwrap();
        on(1)
            .run(|| {
                let waiting = spawn(move || io::File::from(reader).read(&mut [0; 1]).unwrap());
                // On the kernel thread that submitted the read above, until it is released.
                let asleep = spawn(move || raw_read(&raw_reader));
                yield_now();
                writer.write_all(&[1]).unwrap();
                // With rings that leave a completion to their submitter this would wait for ever.
                assert_eq!(waiting.join().unwrap(), 1);
                raw_writer.write_all(&[2]).unwrap();
                assert_eq!(asleep.join().unwrap(), 2);
            })
            .unwrap();
    });
}

#[test]
fn busy_virtual_processor_looks_for_completions() {
    under_watchdog("busy with switches", || {
        let (reader, mut writer) = pipe().unwrap();
        on(1)
            .run(|| {
                let waiting = spawn(move || io::File::from(reader).read(&mut [0; 1]).unwrap());
                let done = Arc::new(AtomicBool::new(false));
                let others: Vec<_> = (0..2)
                    .map(|_| {
                        let done = Arc::clone(&done);
                        spawn(move || {
                            while !done.load(Ordering::Relaxed) {
                                yield_now();
                            }
                        })
                    })
                    .collect();
                yield_now();
                writer.write_all(&[1]).unwrap();
                assert_eq!(waiting.join().unwrap(), 1);
                done.store(true, Ordering::Relaxed);
                others.into_iter().for_each(|other| other.join().unwrap());
            })
            .unwrap();
    });
}

#[test]
fn loop_that_never_calls_us_does_not_hold_up_input() {
    under_watchdog("busy with a loop", || {
        let (reader, mut writer) = pipe().unwrap();
        let read = Arc::new(AtomicBool::new(false));
        let (theirs, ours) = (Arc::clone(&read), Arc::clone(&read));
        on(1)
            .run(|| {
                let waiting = spawn(move || {
                    assert_eq!(io::File::from(reader).read(&mut [0; 1]).unwrap(), 1);
                    theirs.store(true, Ordering::SeqCst);
                });
                yield_now();
                writer.write_all(&[1]).unwrap();
                while !ours.load(Ordering::SeqCst) {
                    core::hint::spin_loop();
                }
                waiting.join().unwrap();
            })
            .unwrap();
    });
}

/// Waits in five microprocesses of different priorities, in the given order; then ends the waits
/// one by one. Returns the order in which they ended.
fn order_of_release(
    levels: &[u8],
    wait: impl Fn(u8) + Send + Sync,
    release: impl Fn() + Send + Sync,
) -> Vec<u8> {
    let order = StdMutex::new(Vec::new());
    on(1)
        .run(|| {
            scope(|scope| {
                for &level in levels {
                    let builder = Builder::new().priority(Priority::new(level).unwrap());
                    let (wait, order) = (&wait, &order);
                    let waiter = move || {
                        wait(level);
                        order.lock().unwrap().push(level);
                    };
                    scope.spawn_with(builder, waiter).unwrap();
                    // Each must be waiting before the next begins, also the less urgent ones.
                    let lower = Microprocess::current();
                    lower.set_priority(Priority::LOWEST);
                    yield_now();
                    lower.set_priority(Priority::NORMAL);
                }
                for _ in levels {
                    release();
                }
            });
        })
        .unwrap();
    order.into_inner().unwrap()
}

#[test]
fn urgent_waiters_go_first_and_equals_in_the_order_they_came() {
    under_watchdog("order", || {
        let came = [20, 40, 10, 40, 5];
        let went = [40, 40, 20, 10, 5];
        let semaphore = Semaphore::new(0);
        assert_eq!(order_of_release(&came, |_| semaphore.acquire(), || semaphore.release()), went);
        let (sender, receiver) = channel::unbounded();
        let wait = |_| receiver.recv().unwrap();
        assert_eq!(order_of_release(&came, wait, || sender.send(()).unwrap()), went);
        let (sender, receiver) = channel::rendezvous();
        let wait = |level| sender.send(level).unwrap();
        let received = StdMutex::new(Vec::new());
        order_of_release(&came, wait, || received.lock().unwrap().push(receiver.recv().unwrap()));
        assert_eq!(received.into_inner().unwrap(), went);
    });
}

#[test]
fn deadlock_report_names_waiters_objects_and_holders() {
    under_watchdog("deadlock", || {
        let waited: fn(Kind) -> Box<dyn FnOnce() + Send> = |kind| match kind {
            Kind::RwLock => Box::new(|| {
                let lock = RwLock::new(());
                let _read = lock.read().unwrap();
                drop(lock.write());
            }),
            Kind::SpinMutex => Box::new(|| {
                let lock = SpinMutex::new(());
                let _first = lock.lock();
                drop(lock.lock());
            }),
            Kind::Condvar => Box::new(|| {
                let (mutex, condition) = (Mutex::new(()), Condvar::new());
                drop(condition.wait(mutex.lock().unwrap()));
            }),
            Kind::Semaphore => Box::new(|| Semaphore::new(0).acquire()),
            Kind::Barrier => Box::new(|| {
                let _ = Barrier::new(2).wait();
            }),
            Kind::Send => Box::new(|| {
                let (sender, _receiver) = channel::rendezvous();
                let _ = sender.send(());
            }),
            Kind::Receive => Box::new(|| {
                let (_sender, receiver) = channel::rendezvous::<()>();
                let _ = receiver.recv();
            }),
            Kind::Select => Box::new(|| {
                let (_sender, receiver) = channel::rendezvous::<()>();
                select! { recv(receiver) -> _ => {} }
            }),
            other => panic!("{other:?} is not a wait for an object"),
        };
        let kinds = [
            Kind::SpinMutex,
            Kind::RwLock,
            Kind::Condvar,
            Kind::Semaphore,
            Kind::Barrier,
            Kind::Send,
            Kind::Receive,
            Kind::Select,
        ];
        for kind in kinds {
            let body = waited(kind);
            let deadlock = on(1).run(|| {
                let waiting = Builder::new().name("the one").spawn(body).unwrap();
                waiting.join().unwrap();
            });
            let waiting = deadlock.unwrap_err().waiting;
            let one = waiting.iter().find(|one| one.name.as_deref() == Some("the one")).unwrap();
            assert_eq!(one.reason.kind, kind);
            assert_ne!(one.reason.object, 0);
        }
        let deadlock = on(1).run(|| {
            let mutex = Arc::new(Mutex::new(()));
            let _held = mutex.lock().unwrap();
            let theirs = Arc::clone(&mutex);
            let waiting = spawn(move || drop(theirs.lock()));
            waiting.join().unwrap();
        });
        let deadlock = deadlock.unwrap_err();
        let main = deadlock.waiting.iter().find(|one| one.name.as_deref() == Some("main")).unwrap();
        let other = deadlock.waiting.iter().find(|one| one.reason.kind == Kind::Mutex).unwrap();
        assert_eq!(other.held_by, Some(main.id));
        let text = deadlock.to_string();
        assert!(text.contains(&format!("held by microprocess {}", main.id)), "{text}");
    });
}

#[test]
fn waiters_of_a_stopped_runtime_take_nothing() {
    under_watchdog("abandoned", || {
        static ITEMS: Semaphore = Semaphore::new(0);
        let (sender, receiver): (Sender<u32>, Receiver<u32>) = channel::rendezvous();
        let left = receiver.clone();
        on(1)
            .run(|| {
                spawn(|| ITEMS.acquire());
                spawn(move || left.recv());
                yield_now();
            })
            .unwrap();
        on(1)
            .run(move || {
                ITEMS.release();
                assert!(
                    ITEMS.try_acquire(),
                    "the permit is not given to an abandoned microprocess"
                );
                assert!(
                    sender.try_send(1).is_err(),
                    "a message is not given to an abandoned microprocess"
                );
                let receiving = spawn(move || receiver.recv());
                sender.send(2).unwrap();
                assert_eq!(receiving.join().unwrap(), Ok(2));
            })
            .unwrap();
    });
}

#[test]
fn mutexes_and_selects_under_preemption_keep_their_promises() {
    under_watchdog("preempted", || {
        for virtual_processors in [1, 2] {
            const PARTIES: usize = 4;
            const TURNS: usize = 300;
            let total = on(virtual_processors).run(|| {
                let total = Mutex::new(0_u64);
                let (sender, receiver) = channel::bounded(2);
                scope(|scope| {
                    for _ in 0..PARTIES {
                        scope.spawn(|| {
                            for _ in 0..TURNS {
                                // Long enough that a slice ends inside now and then.
                                let mut total = total.lock().unwrap();
                                for _ in 0..2000 {
                                    *total = core::hint::black_box(*total);
                                }
                                *total += 1;
                            }
                        });
                        scope.spawn(|| {
                            for turn in 0..TURNS {
                                select! {
                                    send(sender, turn) -> sent => sent.unwrap(),
                                    recv(receiver) -> got => assert!(got.unwrap() < TURNS),
                                    default(Duration::from_micros(100)) => {}
                                }
                            }
                        });
                    }
                });
                total.into_inner().unwrap()
            });
            assert_eq!(total.unwrap(), (PARTIES * TURNS) as u64);
        }
    });
}
