//! Calls between two runtimes: replies, concurrency, priorities, failures, and death of the server.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::print_stdout, reason = "tells the parent process that this one is ready")]

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use kyocho_gate::{
    Call, Client, Error, Failure, Handle, INLINE_BYTES_MAX, REGIONS_MAX, Server, Service,
};
use kyocho_microprocess::{
    Builder, Microprocess, Priority, Runtime, sleep, spawn, virtual_processor, yield_now,
};

use kyocho_sys::scheduling::{Class, set_class};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

#[path = "support/meeting.rs"]
mod meeting;
#[path = "../../microprocess/tests/support/watchdog.rs"]
mod watchdog;
use meeting::{Meeting, role, stay};
use watchdog::under_watchdog;

/// Methods of the service under test.
mod method {
    pub(super) const ECHO: u32 = 0;
    pub(super) const LEVEL: u32 = 1;
    pub(super) const SLEEP: u32 = 2;
    pub(super) const PANIC: u32 = 3;
    pub(super) const SUM: u32 = 4;
    pub(super) const FILL: u32 = 5;
    pub(super) const NEW_COUNTER: u32 = 6;
    pub(super) const DIE: u32 = 7;
    pub(super) const PEER: u32 = 8;
    pub(super) const LONG: u32 = 9;
    pub(super) const KILL_ME: u32 = 10;
    pub(super) const VIRTUAL_PROCESSOR: u32 = 11;
    pub(super) const AWAIT_RELEASE: u32 = 12;
    pub(super) const IS_REAL_TIME: u32 = 13;
    pub(super) const IS_REAL_TIME_AFTER_SLEEP: u32 = 14;
    pub(super) const AWAIT_LEVEL: u32 = 15;
    pub(super) const AWAIT_LEVEL_ASLEEP: u32 = 16;
}

/// Number of calls of `SLEEP` that have begun.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
/// Number of calls of `AWAIT_RELEASE` that have begun.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Lets one call of `AWAIT_RELEASE` return.
static RELEASED: AtomicBool = AtomicBool::new(false);

fn number(value: u64) -> Result<Vec<u8>, Failure> {
    Ok(value.to_le_bytes().to_vec())
}

fn as_number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// An object that clients can ask for.
struct Counter(AtomicU64);

impl Service for Counter {
    fn serve(&self, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        match call.method() {
            0 => number(self.0.fetch_add(1, Ordering::Relaxed) + 1),
            1 => {
                call.revoke();
                Ok(Vec::new())
            }
            _ => Err(Failure::NoMethod),
        }
    }
}

fn serve(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    match call.method() {
        method::ECHO => Ok(call.bytes().to_vec()),
        method::LEVEL => number(u64::from(Microprocess::current().priority().level())),
        method::SLEEP => {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(as_number(call.bytes())));
            Ok(Vec::new())
        }
        method::AWAIT_RELEASE => {
            HELD.fetch_add(1, Ordering::SeqCst);
            while !RELEASED.swap(false, Ordering::SeqCst) {
                sleep(Duration::from_millis(1));
            }
            Ok(Vec::new())
        }
        method::PANIC => resume_unwind(Box::new("on purpose")),
        method::SUM => number(call.region()?.copy().iter().map(|&byte| u64::from(byte)).sum()),
        method::FILL => {
            let value = as_number(call.bytes());
            call.region()?.in_place().iter().for_each(|word| word.store(value, Ordering::Relaxed));
            Ok(Vec::new())
        }
        method::NEW_COUNTER => number(call.grant(Arc::new(Counter(AtomicU64::new(0))))?.bits()),
        method::DIE => std::process::abort(),
        method::PEER => number(u64::from(call.caller().process)),
        method::LONG => Ok(vec![0; INLINE_BYTES_MAX + 1]),
        method::KILL_ME => {
            Microprocess::current().kill().map_err(|_| Failure::Code(1))?;
            sleep(Duration::from_secs(60));
            Err(Failure::Code(2))
        }
        method::IS_REAL_TIME => number(u64::from(becomes_real_time())),
        method::IS_REAL_TIME_AFTER_SLEEP => {
            sleep(Duration::from_millis(as_number(call.bytes())));
            number(u64::from(becomes_real_time()))
        }
        method::AWAIT_LEVEL => {
            await_level(as_number(call.bytes()), yield_now);
            Ok(Vec::new())
        }
        method::AWAIT_LEVEL_ASLEEP => {
            await_level(as_number(call.bytes()), || sleep(Duration::from_millis(1)));
            Ok(Vec::new())
        }
        method::VIRTUAL_PROCESSOR => number(virtual_processor() as u64),
        _ => Err(Failure::NoMethod),
    }
}

/// Whether the caller's kernel thread gets a real-time class soon. It inherits the class shortly
/// after it has found the call.
fn becomes_real_time() -> bool {
    let is_real_time = || {
        yield_now();
        host_level() < 0
    };
    (0..1000).any(|_| is_real_time())
}

/// Calls `pause` until the caller runs at `level`.
fn await_level(level: u64, pause: impl Fn()) {
    while u64::from(Microprocess::current().priority().level()) != level {
        pause();
    }
}

/// The host's priority of the calling kernel thread: below 0 in a real-time class, its own or an
/// inherited one.
fn host_level() -> i64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // After the name in parentheses come field 3 (the state) and the following ones; the priority
    // is field 18.
    stat.rsplit(')').next().unwrap().split_whitespace().nth(15).unwrap().parse().unwrap()
}

fn bind(path: &Path) -> Server {
    Server::builder().bind(path, Arc::new(serve)).unwrap()
}

/// Runs the server if this process was started for that; otherwise it passes at once.
#[test]
fn entry_of_the_server_process() {
    let Some((role, path)) = role() else { return };
    let processors = role.parse().unwrap();
    Runtime::builder()
        .virtual_processors(processors)
        .build()
        .run(|| {
            let _server = bind(&path);
            stay();
        })
        .unwrap();
}

/// Runs `body` with a client of a server in another process, each with `processors` virtual
/// processors.
fn with_client(name: &str, processors: usize, body: impl FnOnce(Client) + Send) {
    let meeting = Meeting::new(&format!("{name}-{processors}"));
    let _server = meeting.start("entry_of_the_server_process", &processors.to_string());
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
        let meeting = Meeting::new("sleep");
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
fn service_runs_at_the_callers_priority() {
    under_watchdog("service_runs_at_the_callers_priority", || {
        with_client("level", 1, |client| {
            // A caller inherits the priority of the microprocess that joins it.
            Microprocess::current().set_priority(Priority::LOWEST);
            for level in [63, 5, 0, 40] {
                let client = client.clone();
                let caller = Builder::new().priority(Priority::new(level).unwrap());
                let served =
                    caller.spawn(move || client.call(method::LEVEL, &[]).unwrap()).unwrap();
                assert_eq!(as_number(&served.join().unwrap()), u64::from(level));
            }
        });
    });
}

/// Calls `method`, which returns only at `level`, and sets the caller to `level` while it waits.
fn change_level_during(client: &Client, method: u32, level: u8) {
    let (client, caller) = (client.clone(), Builder::new().priority(Priority::new(20).unwrap()));
    let call = move || client.call(method, &u64::from(level).to_le_bytes()).unwrap();
    let call = caller.spawn(call).unwrap();
    // Correct for any progress of the call.
    yield_now();
    call.microprocess().set_priority(Priority::new(level).unwrap());
    call.join().unwrap();
}

fn change_levels(client: Client) {
    Microprocess::current().set_priority(Priority::LOWEST);
    for method in [method::AWAIT_LEVEL, method::AWAIT_LEVEL_ASLEEP] {
        change_level_during(&client, method, 45);
        change_level_during(&client, method, 3);
    }
}

#[test]
fn level_that_changes_during_a_call_reaches_the_worker() {
    under_watchdog("level_that_changes_during_a_call_reaches_the_worker", || {
        [1, 2].into_iter().for_each(|processors| with_client("rise", processors, change_levels));
    });
}

/// Calls until the server reports that it inherited the class. A service that continues on another
/// kernel thread of its server does not inherit it.
fn call_until_inherited(client: &Client, method: u32, request: u64) {
    while as_number(&client.call(method, &request.to_le_bytes()).unwrap()) == 0 {}
}

#[test]
fn server_inherits_the_class_of_a_real_time_caller() {
    const NAME: &str = "server_inherits_the_class_of_a_real_time_caller";
    under_watchdog(NAME, || {
        let meeting = Meeting::new("donate");
        let _server = meeting.start("entry_of_the_server_process", "1");
        if let Err(why) = set_class(ThreadId::current(), Class::Fifo(10)) {
            return skip(NAME, &why.to_string());
        }
        let run = || {
            let client = Client::connect(meeting.path()).unwrap();
            // From here on the client knows which kernel thread serves it and inherits the class.
            client.call(method::ECHO, &[]).unwrap();
            call_until_inherited(&client, method::IS_REAL_TIME, 0);
            // During a short sleep the server keeps the class; after a long one it inherits it
            // again.
            for sleep_ms in [2, 100] {
                call_until_inherited(&client, method::IS_REAL_TIME_AFTER_SLEEP, sleep_ms);
            }
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}

#[test]
fn priority_is_inherited_through_a_chain_of_gates() {
    under_watchdog("priority_is_inherited_through_a_chain_of_gates", || {
        let (first, second) = (Meeting::new("chain-1"), Meeting::new("chain-2"));
        let _last = second.start("entry_of_the_server_process", "1");
        let (first_path, second_path) = (first.path(), second.path());
        Runtime::builder()
            .virtual_processors(1)
            .build()
            .run(|| {
                let next = Client::connect(&second_path).unwrap();
                let relay = move |call: &Call<'_>| {
                    next.call(call.method(), call.bytes()).map_err(|_| Failure::Code(9))
                };
                let _middle = Server::builder().bind(&first_path, Arc::new(relay)).unwrap();
                let client = Client::connect(&first_path).unwrap();
                Microprocess::current().set_priority(Priority::LOWEST);
                for level in [50, 3] {
                    let client = client.clone();
                    let caller = Builder::new().priority(Priority::new(level).unwrap());
                    let served =
                        caller.spawn(move || client.call(method::LEVEL, &[]).unwrap()).unwrap();
                    assert_eq!(as_number(&served.join().unwrap()), u64::from(level));
                }
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
        let meeting = Meeting::new("give-up");
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
        let meeting = Meeting::new("refused");
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
