//! The service under test, and the process that serves it.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use kyocho_gate::{Call, Failure, INLINE_BYTES_MAX, Server, Service};
use kyocho_microprocess::{Microprocess, Runtime, sleep, virtual_processor, yield_now};

use crate::meeting::{role, stay};

/// Methods of the service.
pub(crate) mod method {
    pub(crate) const ECHO: u32 = 0;
    pub(crate) const LEVEL: u32 = 1;
    pub(crate) const SLEEP: u32 = 2;
    pub(crate) const PANIC: u32 = 3;
    pub(crate) const SUM: u32 = 4;
    pub(crate) const FILL: u32 = 5;
    pub(crate) const NEW_COUNTER: u32 = 6;
    pub(crate) const DIE: u32 = 7;
    pub(crate) const PEER: u32 = 8;
    pub(crate) const LONG: u32 = 9;
    pub(crate) const KILL_ME: u32 = 10;
    pub(crate) const VIRTUAL_PROCESSOR: u32 = 11;
    pub(crate) const AWAIT_RELEASE: u32 = 12;
    pub(crate) const IS_REAL_TIME: u32 = 13;
    pub(crate) const IS_REAL_TIME_AFTER_SLEEP: u32 = 14;
    pub(crate) const AWAIT_LEVEL: u32 = 15;
    pub(crate) const AWAIT_LEVEL_ASLEEP: u32 = 16;
}

/// Number of calls of `SLEEP` that have begun.
pub(crate) static BEGUN: AtomicUsize = AtomicUsize::new(0);
/// Number of calls of `AWAIT_RELEASE` that have begun.
pub(crate) static HELD: AtomicUsize = AtomicUsize::new(0);
/// Lets one call of `AWAIT_RELEASE` return.
pub(crate) static RELEASED: AtomicBool = AtomicBool::new(false);

fn number(value: u64) -> Result<Vec<u8>, Failure> {
    Ok(value.to_le_bytes().to_vec())
}

pub(crate) fn as_number(bytes: &[u8]) -> u64 {
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

pub(crate) fn serve(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
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

pub(crate) fn bind(path: &Path) -> Server {
    Server::builder().bind(path, Arc::new(serve)).unwrap()
}

/// The test that a server process runs.
pub(crate) const ENTRY: &str = "service::entry_of_the_server_process";

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
