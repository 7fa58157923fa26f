//! Calls between two runtimes: replies, concurrency, priorities, failures, and death of the server.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::print_stdout, reason = "tells the parent process that this one is ready")]

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use kyocho_gate::{Client, Error, Failure, Handle, INLINE_BYTES_MAX, REGIONS_MAX, Server};
use kyocho_microprocess::{Runtime, sleep, spawn, yield_now};

#[path = "../support/meeting.rs"]
mod meeting;
mod priorities;
mod service;
#[path = "../../../microprocess/tests/support/watchdog.rs"]
mod watchdog;
use meeting::SocketFolder;
use service::{BEGUN, ENTRY, HELD, RELEASED, as_number, bind, method, serve};
use watchdog::under_watchdog;

/// Runs `body` with a client of a server in another process, each with `processors` virtual
/// processors.
fn with_client(name: &str, processors: usize, body: impl FnOnce(Client) + Send) {
    let meeting = SocketFolder::new(&format!("{name}-{processors}"));
    let _server = meeting.start(ENTRY, &processors.to_string());
    let path = meeting.path();
    let run = || body(Client::connect(&path).unwrap());
    Runtime::builder().virtual_processors(processors).build().run(run).unwrap();
}

fn echo(client: Client) {
    let bytes: Vec<u8> = (0..INLINE_BYTES_MAX).map(|index| (index % 251) as u8).collect();
    for length in [0, 1, 7, 8, 9, 4096, INLINE_BYTES_MAX] {
        assert_eq!(client.call(method::ECHO, &bytes[..length]).unwrap(), bytes[..length]);
    }
    echo_numbers(&client, 0..5000);
}

fn echo_numbers(client: &Client, numbers: core::ops::Range<u64>) {
    for number in numbers {
        let sent = number.to_le_bytes();
        assert_eq!(client.call(method::ECHO, &sent).unwrap(), sent);
    }
}

#[test]
fn echo_returns_requests_of_every_length() {
    under_watchdog("echo_returns_requests_of_every_length", || {
        [1, 2].into_iter().for_each(|processors| with_client("echo", processors, echo));
    });
}

fn many_at_a_time(client: Client) {
    for callers in [1, 2, 8, 64, 100] {
        let calls = (0..callers).map(|caller| {
            let client = client.clone();
            spawn(move || echo_numbers(&client, caller * 1000..caller * 1000 + 100))
        });
        let calls: Vec<_> = calls.collect();
        calls.into_iter().for_each(|call| call.join().unwrap());
    }
}

#[test]
fn one_to_one_hundred_callers_each_get_their_own_reply() {
    under_watchdog("one_to_one_hundred_callers_each_get_their_own_reply", || {
        [1, 2].into_iter().for_each(|processors| with_client("many", processors, many_at_a_time));
    });
}

#[test]
fn calls_run_while_other_calls_sleep() {
    under_watchdog("calls_run_while_other_calls_sleep", || {
        let meeting = SocketFolder::new("sleep");
        let path = meeting.path();
        Runtime::builder()
            .virtual_processors(1)
            .build()
            .run(|| {
                let _server = bind(&path);
                let client = Client::connect(&path).unwrap();
                BEGUN.store(0, Ordering::SeqCst);
                let calls: Vec<_> = (0..64)
                    .map(|_| {
                        let client = client.clone();
                        spawn(move || client.call(method::SLEEP, &200_u64.to_le_bytes()))
                    })
                    .collect();
                // All calls are being served before the first one ends.
                while BEGUN.load(Ordering::SeqCst) < 64 {
                    assert!(
                        calls.iter().all(|call| !call.is_finished()),
                        "a call ended before the others had begun"
                    );
                    sleep(Duration::from_millis(1));
                }
                calls.into_iter().for_each(|call| drop(call.join().unwrap().unwrap()));
            })
            .unwrap();
    });
}

#[test]
fn calls_succeed_after_calls_that_failed() {
    under_watchdog("calls_succeed_after_calls_that_failed", || {
        with_client("failures", 1, |client| {
            let failure = |method| client.call(method, &[]).unwrap_err();
            for _ in 0..3 {
                assert_eq!(failure(99), Error::Failed(Failure::NoMethod));
                assert_eq!(failure(u32::MAX), Error::Failed(Failure::NoMethod));
                assert_eq!(failure(method::PANIC), Error::Failed(Failure::Panicked));
                assert_eq!(failure(method::LONG), Error::Failed(Failure::ReplyTooLong));
                assert_eq!(failure(method::SUM), Error::Failed(Failure::NoRegion));
                // The worker is gone; another one serves the frame.
                assert_eq!(failure(method::KILL_ME), Error::Failed(Failure::Panicked));
            }
            let (bytes, bytes_max) = (INLINE_BYTES_MAX + 1, INLINE_BYTES_MAX);
            let long = client.call(method::ECHO, &vec![0; bytes]).unwrap_err();
            assert_eq!(long, Error::TooLong { bytes, bytes_max });
            assert_eq!(client.call(method::ECHO, &[1]).unwrap(), [1]);
        });
    });
}

#[test]
fn handles_are_granted_revoked_and_not_guessable() {
    under_watchdog("handles_are_granted_revoked_and_not_guessable", || {
        with_client("handles", 1, |client| {
            let granted =
                || Handle::from_bits(as_number(&client.call(method::NEW_COUNTER, &[]).unwrap()));
            let (one, other) = (granted(), granted());
            for expected in 1..=3 {
                assert_eq!(as_number(&client.target(one).call(0, &[]).unwrap()), expected);
            }
            assert_eq!(as_number(&client.target(other).call(0, &[]).unwrap()), 1);
            client.target(one).call(1, &[]).unwrap();
            let gone = client.target(one).call(0, &[]).unwrap_err();
            assert_eq!(gone, Error::Failed(Failure::NoHandle));
            let guessed = client.target(Handle::from_bits(u64::MAX)).call(0, &[]).unwrap_err();
            assert_eq!(guessed, Error::Failed(Failure::NoHandle));
        });
    });
}

#[test]
fn calls_pass_regions_without_copying_and_regions_are_bounded() {
    under_watchdog("calls_pass_regions_without_copying_and_regions_are_bounded", || {
        with_client("regions", 1, |client| {
            const BYTES: usize = 1 << 20;
            let region = client.region(BYTES).unwrap();
            region.whole().write(&vec![3; BYTES]).unwrap();
            let root = client.target(kyocho_gate::ROOT);
            let mut reply = [0; 8];
            let part = region.slice(4096, 100).unwrap();
            root.call_with(method::SUM, &[], Some((&region, &part)), &mut reply).unwrap();
            assert_eq!(as_number(&reply), 300);
            let value = 0x0101_0101_0101_0101_u64.to_le_bytes();
            root.call_with(method::FILL, &value, Some((&region, &region.whole())), &mut [])
                .unwrap();
            assert_eq!(region.whole().copy(), vec![1; BYTES]);
            assert!(region.slice(BYTES, 1).is_none() && region.slice(4, 4).is_none());
            let others: Vec<_> = (1..REGIONS_MAX).map(|_| client.region(4096).unwrap()).collect();
            assert!(matches!(client.region(4096), Err(Error::TooLong { .. })));
            drop(others);
            assert!(client.region(4096).is_ok());
        });
    });
}

fn abort_the_server(client: Client) {
    let begin = |_| {
        let client = client.clone();
        spawn(move || client.call(method::SLEEP, &60_000_u64.to_le_bytes()))
    };
    let waiting: Vec<_> = (0..5).map(begin).collect();
    yield_now();
    assert_eq!(client.call(method::DIE, &[]).unwrap_err(), Error::Closed);
    for call in waiting {
        assert_eq!(call.join().unwrap().unwrap_err(), Error::Closed);
    }
    assert_eq!(client.call(method::ECHO, &[]).unwrap_err(), Error::Closed);
    assert!(!client.is_open());
}

#[test]
fn every_caller_gets_an_error_when_the_server_dies() {
    under_watchdog("every_caller_gets_an_error_when_the_server_dies", || {
        [1, 2].into_iter().for_each(|count| with_client("death", count, abort_the_server));
    });
}

/// A call that times out and one that is killed. Each is abandoned before the server answers it.
/// After the answer another call uses the only credit.
fn abandon_calls(client: &Client) {
    let hasty = client.target(kyocho_gate::ROOT).within(Duration::from_millis(2));
    let begun = HELD.load(Ordering::SeqCst);
    // A call that times out before the server has begun it is withdrawn.
    while HELD.load(Ordering::SeqCst) == begun {
        let late = hasty.call(method::AWAIT_RELEASE, &[]);
        assert_eq!(late.unwrap_err(), Error::TimedOut);
    }
    RELEASED.store(true, Ordering::SeqCst);
    assert_eq!(client.call(method::ECHO, &[9]).unwrap(), [9]);
    let other = client.clone();
    let killed = spawn(move || other.call(method::AWAIT_RELEASE, &[]));
    while HELD.load(Ordering::SeqCst) == begun + 1 {
        sleep(Duration::from_millis(1));
    }
    killed.microprocess().kill().unwrap();
    assert!(killed.join().is_err());
    RELEASED.store(true, Ordering::SeqCst);
    assert_eq!(client.call(method::ECHO, &[8]).unwrap(), [8]);
}

#[test]
fn credit_of_an_abandoned_call_is_free_after_the_server_answers() {
    under_watchdog("credit_of_an_abandoned_call_is_free_after_the_server_answers", || {
        let meeting = SocketFolder::new("give-up");
        let path = meeting.path();
        let run = || {
            let _server = Server::builder().credits(1).bind(&path, Arc::new(serve)).unwrap();
            let client = Client::connect(&path).unwrap();
            (0..3).for_each(|_| abandon_calls(&client));
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}

#[test]
fn server_refuses_processes_that_may_not_connect() {
    under_watchdog("server_refuses_processes_that_may_not_connect", || {
        let meeting = SocketFolder::new("refused");
        let path = meeting.path();
        Runtime::builder()
            .virtual_processors(1)
            .build()
            .run(|| {
                assert!(matches!(Client::connect(&path), Err(Error::Connect(_))));
                let server =
                    Server::builder().allow(|_| false).bind(&path, Arc::new(serve)).unwrap();
                assert_eq!(Client::connect(&path).unwrap_err(), Error::Refused);
                drop(server);
                let _server = bind(&path);
                let client = Client::connect(&path).unwrap();
                let process = as_number(&client.call(method::PEER, &[]).unwrap());
                assert_eq!(process, u64::from(std::process::id()));
                assert!(matches!(
                    Server::builder().bind(&path, Arc::new(serve)),
                    Err(Error::Connect(std::io::ErrorKind::AddrInUse))
                ));
            })
            .unwrap();
    });
}

#[test]
fn concurrent_calls_run_on_the_servers_virtual_processors() {
    under_watchdog("concurrent_calls_run_on_the_servers_virtual_processors", || {
        with_client("spread", 2, |client| {
            let calls: Vec<_> = (0..16)
                .map(|_| {
                    let client = client.clone();
                    spawn(move || as_number(&client.call(method::VIRTUAL_PROCESSOR, &[]).unwrap()))
                })
                .collect();
            assert!(calls.into_iter().all(|call| call.join().unwrap() < 2));
        });
    });
}
