//! Calls between two runtimes: what goes in comes out, whoever calls, however many, and whoever dies.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::print_stdout, reason = "tells the process that started it")]

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// Methods of the service that tests call.
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
    pub(super) const PLACE: u32 = 11;
    pub(super) const SLEEP_ALONE: u32 = 12;
    pub(super) const IS_REAL_TIME: u32 = 13;
    pub(super) const IS_REAL_TIME_AFTER_SLEEP: u32 = 14;
    pub(super) const AWAIT_LEVEL: u32 = 15;
    pub(super) const AWAIT_LEVEL_ASLEEP: u32 = 16;
}

/// How many calls of `SLEEP` were begun.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
/// And of `SLEEP_ALONE`, by another test.
static BEGUN_ALONE: AtomicUsize = AtomicUsize::new(0);

fn number(value: u64) -> Result<Vec<u8>, Failure> {
    Ok(value.to_le_bytes().to_vec())
}

fn as_number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// An object of its own for each client that asks for one.
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
        method::SLEEP_ALONE => {
            BEGUN_ALONE.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(as_number(call.bytes())));
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
        method::PLACE => number(virtual_processor() as u64),
        _ => Err(Failure::NoMethod),
    }
}

/// Whether the class of the caller's kernel thread becomes a real-time one soon: it is lent a moment after the call was found.
fn becomes_real_time() -> bool {
    let is_real_time = || {
        yield_now();
        host_level() < 0
    };
    (0..1000).any(|_| is_real_time())
}

/// Waits by `pause` until it runs at `level`.
fn await_level(level: u64, pause: impl Fn()) {
    while u64::from(Microprocess::current().priority().level()) != level {
        pause();
    }
}

/// The level at which the host runs the calling kernel thread: below 0 in a real-time class, its own or one that it was lent.
fn host_level() -> i64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // Behind the name in brackets: state, then fields 4 and on; the level is field 18.
    stat.rsplit(')').next().unwrap().split_whitespace().nth(15).unwrap().parse().unwrap()
}

fn bind(path: &Path) -> Server {
    Server::builder().bind(path, Arc::new(serve)).unwrap()
}

/// The server that runs in another process.
#[test]
fn the_other_process() {
    let Some((role, place)) = role() else { return };
    let processors = role.parse().unwrap();
    Runtime::builder()
        .virtual_processors(processors)
        .build()
        .run(|| {
            let _server = bind(&place);
            stay();
        })
        .unwrap();
}

/// Runs `body` with a client of a server in another process, with so many virtual processors on each side.
fn with_client(name: &str, processors: usize, body: impl FnOnce(Client) + Send) {
    let meeting = Meeting::new(&format!("{name}-{processors}"));
    let _server = meeting.start("the_other_process", &processors.to_string());
    let place = meeting.place();
    let run = || body(Client::connect(&place).unwrap());
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
fn what_goes_in_comes_out() {
    under_watchdog("what_goes_in_comes_out", || {
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
fn one_to_sixty_four_callers_each_get_their_own_answer() {
    under_watchdog("one_to_sixty_four_callers_each_get_their_own_answer", || {
        [1, 2].into_iter().for_each(|processors| with_client("many", processors, many_at_a_time));
    });
}

#[test]
fn sleeping_calls_do_not_queue() {
    under_watchdog("sleeping_calls_do_not_queue", || {
        let meeting = Meeting::new("sleep");
        let place = meeting.place();
        Runtime::builder()
            .virtual_processors(1)
            .build()
            .run(|| {
                let _server = bind(&place);
                let client = Client::connect(&place).unwrap();
                BEGUN.store(0, Ordering::SeqCst);
                let calls: Vec<_> = (0..64)
                    .map(|_| {
                        let client = client.clone();
                        spawn(move || client.call(method::SLEEP, &200_u64.to_le_bytes()))
                    })
                    .collect();
                // All are being served before the first one is over.
                while BEGUN.load(Ordering::SeqCst) < 64 {
                    assert!(
                        calls.iter().all(|call| !call.is_finished()),
                        "calls wait for each other"
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
            // Who joins a caller hands its own priority on.
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

/// Calls `method`, which ends only at `level`, and gives that to the caller while it waits.
fn change_level_during(client: &Client, method: u32, level: u8) {
    let (client, caller) = (client.clone(), Builder::new().priority(Priority::new(20).unwrap()));
    let call = move || client.call(method, &u64::from(level).to_le_bytes()).unwrap();
    let call = caller.spawn(call).unwrap();
    // However far the call is.
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
fn level_that_changes_during_a_call_is_passed_on() {
    under_watchdog("level_that_changes_during_a_call_is_passed_on", || {
        [1, 2].into_iter().for_each(|processors| with_client("rise", processors, change_levels));
    });
}

/// Calls until the server says that it was lent the class: a service that went on on another kernel thread of its server was not.
fn call_until_lent(client: &Client, method: u32, request: u64) {
    while as_number(&client.call(method, &request.to_le_bytes()).unwrap()) == 0 {}
}

#[test]
fn real_time_caller_lends_its_class_to_the_server() {
    const NAME: &str = "real_time_caller_lends_its_class_to_the_server";
    under_watchdog(NAME, || {
        let meeting = Meeting::new("lend");
        let _server = meeting.start("the_other_process", "1");
        if let Err(why) = set_class(ThreadId::current(), Class::Fifo(10)) {
            return skip(NAME, &why.to_string());
        }
        let run = || {
            let client = Client::connect(meeting.place()).unwrap();
            // From here on the client knows who serves: whom to lend to.
            client.call(method::ECHO, &[]).unwrap();
            call_until_lent(&client, method::IS_REAL_TIME, 0);
            // A nap through which it keeps the class, and a sleep after which it gets it again.
            for sleep_ms in [2, 100] {
                call_until_lent(&client, method::IS_REAL_TIME_AFTER_SLEEP, sleep_ms);
            }
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}

#[test]
fn priority_is_inherited_through_a_chain_of_gates() {
    under_watchdog("priority_is_inherited_through_a_chain_of_gates", || {
        let (first, second) = (Meeting::new("chain-1"), Meeting::new("chain-2"));
        let _last = second.start("the_other_process", "1");
        let (front, back) = (first.place(), second.place());
        Runtime::builder()
            .virtual_processors(1)
            .build()
            .run(|| {
                let behind = Client::connect(&back).unwrap();
                let relay = move |call: &Call<'_>| {
                    behind.call(call.method(), call.bytes()).map_err(|_| Failure::Code(9))
                };
                let _middle = Server::builder().bind(&front, Arc::new(relay)).unwrap();
                let client = Client::connect(&front).unwrap();
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
fn failures_are_answers_and_the_gate_goes_on() {
    under_watchdog("failures_are_answers_and_the_gate_goes_on", || {
        with_client("failures", 1, |client| {
            let failure = |method| client.call(method, &[]).unwrap_err();
            for _ in 0..3 {
                assert_eq!(failure(99), Error::Failed(Failure::NoMethod));
                assert_eq!(failure(u32::MAX), Error::Failed(Failure::NoMethod));
                assert_eq!(failure(method::PANIC), Error::Failed(Failure::Panicked));
                assert_eq!(failure(method::LONG), Error::Failed(Failure::ReplyTooLong));
                assert_eq!(failure(method::SUM), Error::Failed(Failure::NoRegion));
                // Its worker is gone, and another one is at the frame.
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
fn handles_are_capabilities_of_one_client() {
    under_watchdog("handles_are_capabilities_of_one_client", || {
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
fn regions_are_handed_over_without_copying_and_are_bounded() {
    under_watchdog("regions_are_handed_over_without_copying_and_are_bounded", || {
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

fn let_the_server_die(client: Client) {
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
fn dead_server_is_an_error_at_every_caller() {
    under_watchdog("dead_server_is_an_error_at_every_caller", || {
        [1, 2].into_iter().for_each(|count| with_client("death", count, let_the_server_die));
    });
}

/// A call that gives up, one that is killed, and each time one more for the only credit.
fn give_up(client: &Client) {
    let hasty = client.target(kyocho_gate::ROOT).within(Duration::from_millis(2));
    let late = hasty.call(method::SLEEP, &30_u64.to_le_bytes());
    assert_eq!(late.unwrap_err(), Error::TimedOut);
    assert_eq!(client.call(method::ECHO, &[9]).unwrap(), [9]);
    let begun = BEGUN_ALONE.load(Ordering::SeqCst);
    let other = client.clone();
    let killed = spawn(move || other.call(method::SLEEP_ALONE, &30_u64.to_le_bytes()));
    while BEGUN_ALONE.load(Ordering::SeqCst) == begun {
        sleep(Duration::from_millis(1));
    }
    killed.microprocess().kill().unwrap();
    assert!(killed.join().is_err());
    assert_eq!(client.call(method::ECHO, &[8]).unwrap(), [8]);
}

#[test]
fn caller_that_gives_up_or_is_killed_gets_its_credit_back_when_the_server_answers() {
    under_watchdog("caller_that_gives_up_or_is_killed_gets_its_credit_back", || {
        let meeting = Meeting::new("give-up");
        let place = meeting.place();
        let run = || {
            let _server = Server::builder().credits(1).bind(&place, Arc::new(serve)).unwrap();
            let client = Client::connect(&place).unwrap();
            (0..3).for_each(|_| give_up(&client));
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}

#[test]
fn only_those_who_may_connect() {
    under_watchdog("only_those_who_may_connect", || {
        let meeting = Meeting::new("refused");
        let place = meeting.place();
        Runtime::builder()
            .virtual_processors(1)
            .build()
            .run(|| {
                assert!(matches!(Client::connect(&place), Err(Error::Connect(_))));
                let server =
                    Server::builder().allow(|_| false).bind(&place, Arc::new(serve)).unwrap();
                assert_eq!(Client::connect(&place).unwrap_err(), Error::Refused);
                drop(server);
                let _server = bind(&place);
                let client = Client::connect(&place).unwrap();
                let process = as_number(&client.call(method::PEER, &[]).unwrap());
                assert_eq!(process, u64::from(std::process::id()));
                assert!(matches!(
                    Server::builder().bind(&place, Arc::new(serve)),
                    Err(Error::Connect(std::io::ErrorKind::AddrInUse))
                ));
            })
            .unwrap();
    });
}

#[test]
fn calls_spread_over_the_servers_processors() {
    under_watchdog("calls_spread_over_the_servers_processors", || {
        with_client("spread", 2, |client| {
            let calls: Vec<_> = (0..16)
                .map(|_| {
                    let client = client.clone();
                    spawn(move || as_number(&client.call(method::PLACE, &[]).unwrap()))
                })
                .collect();
            assert!(calls.into_iter().all(|call| call.join().unwrap() < 2));
        });
    });
}
