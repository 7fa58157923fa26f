//! Futures of other runtimes in microprocesses: tokio's, async-io's, and wakers that are called by
//! any thread at any time.
#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]
#![expect(clippy::excessive_nesting, reason = "a scenario nests: watchdog, runtime, microprocess")]

use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream as StdStream;
use std::sync::{Arc, Mutex};
use std::thread;

use kyocho_microprocess::{
    Detection, Outside, Runtime, block_on, net, spawn, spawn_future, within, yield_now,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

#[path = "support/quiet.rs"]
mod quiet;
#[path = "support/watchdog.rs"]
mod watchdog;
use quiet::quiet;
use watchdog::under_watchdog;

/// A runtime in which a poll that sleeps would hang, since the virtual processor is not taken away.
fn on(virtual_processors: usize) -> Runtime {
    let builder = Runtime::builder().virtual_processors(virtual_processors);
    builder.detection(Detection::Off).build()
}

/// Runs `body` beside a tokio runtime on a separate kernel thread.
fn beside_tokio<T>(body: impl FnOnce(Handle) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let reactor = thread::spawn(move || runtime.block_on(stopped));
    let result = body(handle);
    drop(stop);
    assert!(reactor.join().unwrap().is_err());
    result
}

/// Enters the context of `tokio` for a poll.
fn entered(tokio: &Handle) -> impl Fn(&mut dyn FnMut()) + Send + use<> {
    let tokio = tokio.clone();
    move |poll| {
        let _context = tokio.enter();
        poll();
    }
}

/// Answers one HTTP request, once `may_answer` is set.
fn serve(listener: &net::TcpListener, may_answer: &AtomicBool) {
    let (mut connection, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
    let request = lines.next().unwrap().unwrap();
    lines.find(|line| line.as_ref().unwrap().is_empty()).unwrap().unwrap();
    while !may_answer.load(Ordering::Relaxed) {
        yield_now();
    }
    let path = request.split(' ').nth(1).unwrap();
    let length = path.len();
    write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}").unwrap();
}

/// A client written for tokio.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn client_of_tokio_waits_as_a_microprocess_does() {
    under_watchdog("tokio client", || {
        for virtual_processors in [1, 2] {
            beside_tokio(|tokio| {
                let main = || {
                    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
                    let address = listener.local_addr().unwrap();
                    let may_answer = Arc::new(AtomicBool::new(false));
                    let answers = Arc::clone(&may_answer);
                    let server = spawn(move || serve(&listener, &answers));
                    let client =
                        spawn(move || block_on(within(entered(&tokio), get(address, "/kyocho"))));
                    // While the client waits, others run: this one lets the server answer.
                    (0..100).for_each(|_| yield_now());
                    assert!(!client.is_finished());
                    may_answer.store(true, Ordering::Relaxed);
                    assert!(client.join().unwrap().ends_with("\r\n\r\n/kyocho"));
                    server.join().unwrap();
                };
                on(virtual_processors).run(main).unwrap();
            });
        }
    });
}

#[test]
fn refused_connection_of_tokio_is_its_error() {
    under_watchdog("tokio refused", || {
        beside_tokio(|tokio| {
            let main = || {
                let address = net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                let connect = tokio::net::TcpStream::connect(address);
                let error = block_on(within(entered(&tokio), connect)).unwrap_err();
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
            };
            on(1).run(main).unwrap();
        });
    });
}

#[test]
fn tasks_timers_and_channels_of_tokio_work_from_both_sides() {
    under_watchdog("tokio tasks", || {
        beside_tokio(|tokio| {
            let main = || {
                let (sender, mut numbers) = mpsc::channel::<u32>(2);
                let task = tokio.spawn(async move {
                    let mut sum = 0;
                    while let Some(number) = numbers.recv().await {
                        tokio::time::sleep(Duration::from_micros(10)).await;
                        sum += number;
                    }
                    sum
                });
                // Channels of tokio need no context.
                for number in 1..=50 {
                    block_on(sender.send(number)).unwrap();
                }
                drop(sender);
                assert_eq!(block_on(task).unwrap(), 1275);
                let sleeps = async { tokio::time::sleep(Duration::from_millis(1)).await };
                spawn_future(within(entered(&tokio), sleeps)).unwrap().join().unwrap();
                let never = core::future::pending::<()>();
                let limit = async { tokio::time::timeout(Duration::from_millis(1), never).await };
                assert!(block_on(within(entered(&tokio), limit)).is_err());
            };
            on(1).run(main).unwrap();
        });
    });
}

#[test]
fn tokio_reports_that_its_context_is_missing() {
    quiet("no reactor running");
    under_watchdog("no context", || {
        let main = || {
            let sleeps = || block_on(async { tokio::time::sleep(Duration::ZERO).await });
            let panic = spawn(sleeps).join().unwrap_err();
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap();
            assert!(text.contains("no reactor running"), "{text}");
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn futures_with_their_own_reactor_need_no_context() {
    under_watchdog("async-io", || {
        let main = || {
            block_on(async { async_io::Timer::after(Duration::from_millis(1)).await });
            let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = spawn(move || {
                let (mut connection, _) = listener.accept().unwrap();
                connection.write_all(b"ready").unwrap();
            });
            let ready = block_on(async {
                let stream = async_io::Async::<StdStream>::connect(address).await.unwrap();
                stream.readable().await.unwrap();
                let mut buffer = [0; 8];
                stream.get_ref().peek(&mut buffer).unwrap()
            });
            assert!((1..=5).contains(&ready));
            server.join().unwrap();
        };
        on(1).run(main).unwrap();
    });
}

/// Sleeps in the kernel without calling the runtime.
fn sleep_in_the_kernel() {
    let soon = kyocho_sys::clock::monotonic_ns() + 1_000_000;
    // A signal ends it early, which does no harm.
    let _early = kyocho_sys::sleep::until(soon);
    yield_now();
}

#[test]
fn poll_stays_on_one_kernel_thread_whatever_it_calls() {
    under_watchdog("one thread", || {
        let main = || {
            // Each sleep moves the virtual processor to another kernel thread.
            let neighbour = spawn(|| (0..20).for_each(|_| sleep_in_the_kernel()));
            block_on(poll_fn(|_| {
                let here = thread::current().id();
                while !neighbour.is_finished() {
                    yield_now();
                    assert_eq!(thread::current().id(), here);
                }
                Poll::Ready(())
            }));
            neighbour.join().unwrap();
        };
        // With detection: a poll that suspends keeps its kernel thread, and another one takes over.
        for virtual_processors in [1, 2] {
            let runtime = Runtime::builder().virtual_processors(virtual_processors).build();
            runtime.run(main).unwrap();
        }
    });
}

/// Ready once `fired` is set; keeps the waker of the last poll.
#[derive(Default)]
struct Gate {
    fired: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Gate {
    fn passed(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            *self.waker.lock().unwrap() = Some(context.waker().clone());
            if self.fired.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Called on a kernel thread outside any runtime. Wakes by value or by reference, sometimes
    /// more often than necessary.
    fn fire(&self, manner: usize) {
        self.fired.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap().clone();
        let Some(waker) = waker else { return };
        match manner % 3 {
            0 => waker.wake(),
            1 => waker.wake_by_ref(),
            _ => {
                waker.wake_by_ref();
                waker.wake();
            }
        }
    }
}

#[test]
fn wakes_from_outside_are_never_lost_and_never_too_many() {
    const GATES: usize = 3000;
    const FIRING: usize = 4;
    under_watchdog("wakes from outside", || {
        for virtual_processors in [1, 2] {
            let main = || {
                let gates: Arc<Vec<Gate>> = Arc::new((0..GATES).map(|_| Gate::default()).collect());
                let passed = Arc::new(AtomicUsize::new(0));
                let outside = Arc::new(Outside::expect());
                let firing: Vec<_> = (0..FIRING)
                    .map(|index| {
                        let (gates, outside) = (Arc::clone(&gates), Arc::clone(&outside));
                        thread::spawn(move || {
                            let mine = gates.iter().enumerate().skip(index).step_by(FIRING);
                            mine.for_each(|(number, gate)| gate.fire(number));
                            drop(outside);
                        })
                    })
                    .collect();
                drop(outside);
                let pass = |first: usize| {
                    let (gates, passed) = (Arc::clone(&gates), Arc::clone(&passed));
                    async move {
                        for gate in gates.iter().skip(first).step_by(10) {
                            gate.passed().await;
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                };
                let stackful: Vec<_> = (0..5)
                    .map(|first| {
                        let future = pass(first);
                        spawn(move || block_on(future))
                    })
                    .collect();
                let stackless: Vec<_> =
                    (5..10).map(|first| spawn_future(pass(first)).unwrap()).collect();
                stackful.into_iter().for_each(|one| one.join().unwrap());
                stackless.into_iter().for_each(|one| one.join().unwrap());
                assert_eq!(passed.load(Ordering::Relaxed), GATES);
                firing.into_iter().for_each(|thread| thread.join().unwrap());
            };
            // Joining kernel threads sleeps in the kernel.
            let runtime = Runtime::builder().virtual_processors(virtual_processors).build();
            runtime.run(main).unwrap();
        }
    });
}

/// The message with which a microprocess panicked.
fn message<T>(joined: thread::Result<T>) -> String {
    match joined {
        Ok(_) => "it did not panic".to_owned(),
        Err(panic) => match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
        },
    }
}

#[test]
fn tokio_future_without_its_context_reports_what_to_do() {
    under_watchdog("tokio_future_without_its_context_reports_what_to_do", || {
        on(1)
            .run(|| {
                let connect = || async { tokio::net::TcpStream::connect("127.0.0.1:1").await };
                let waited = spawn(move || drop(block_on(connect()))).join();
                let run = spawn_future(async move { drop(connect().await) }).unwrap().join();
                for said in [message(waited), message(run)] {
                    assert!(said.contains("within(|poll|"), "{said}");
                }
                // Other panics of a future are not changed.
                let other = spawn(|| block_on(async { panic!("something else") })).join();
                assert_eq!(message::<()>(other), "something else");
            })
            .unwrap();
    });
}
