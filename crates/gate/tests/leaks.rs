//! The server frees everything of a client that dies, whatever the progress of its calls. A program
//! of its own, because it counts the resources of the process.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::print_stdout, reason = "tells the parent process that this one is ready")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use kyocho_gate::{CREDITS_MAX, Call, Client, Failure, ROOT, Region, Server, Service};
use kyocho_microprocess::control::snapshot;
use kyocho_microprocess::{Runtime, sleep, spawn, yield_now};

#[path = "support/meeting.rs"]
mod meeting;
#[path = "../../microprocess/tests/support/watchdog.rs"]
mod watchdog;
use meeting::{SocketFolder, role, stay};
use watchdog::under_watchdog;

/// Methods of the service.
const ECHO: u32 = 0;
/// Does not return before `MAY_END` is set.
const HOLD: u32 = 1;
/// Reports that the client abandoned a call.
const ABANDON: u32 = 2;

/// Calls of `HOLD` that have begun, those that have ended, and whether they may end.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);
static MAY_END: AtomicBool = AtomicBool::new(false);
/// Calls that the client reported as abandoned.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);
/// Granted objects that have not been dropped.
static OBJECTS: AtomicUsize = AtomicUsize::new(0);

/// An object that is granted to a client.
struct Object;

impl Object {
    fn new() -> Self {
        OBJECTS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        OBJECTS.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for Object {
    fn serve(&self, _call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        Err(Failure::NoMethod)
    }
}

fn serve(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    match call.method() {
        HOLD => hold(call),
        ABANDON => {
            ABANDONED.fetch_add(1, Ordering::SeqCst);
            Ok(Vec::new())
        }
        _ => Ok(call.bytes().to_vec()),
    }
}

/// Grants an object and holds the region of the call, if there is one, until the call may end. The
/// client may die meanwhile.
fn hold(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    let granted = call.grant(Arc::new(Object::new()));
    let region = call.region().ok();
    BEGUN.fetch_add(1, Ordering::SeqCst);
    while !MAY_END.load(Ordering::SeqCst) {
        sleep(Duration::from_millis(1));
    }
    if let Some(region) = region {
        region.in_place().iter().for_each(|word| word.store(7, Ordering::Relaxed));
        assert!(region.copy().contains(&7));
    }
    // Succeeds on a closed connection, too, and is freed together with it.
    let late = call.grant(Arc::new(Object::new()));
    ENDED.fetch_add(1, Ordering::SeqCst);
    granted.and(late).map(|_| Vec::new())
}

/// Resources of the process that serving clients uses.
#[derive(Debug, PartialEq, Eq)]
struct Resources {
    /// Mappings of shared memory.
    mapped: usize,
    /// Descriptors of sockets and of shared memory.
    descriptors: usize,
    microprocesses: usize,
    objects: usize,
}

impl Resources {
    fn now() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let descriptors = fs::read_dir("/proc/self/fd").unwrap();
        let ours = |path: &Path| {
            let path = path.to_string_lossy();
            path.starts_with("socket:") || path.contains("memfd:kyocho")
        };
        // A descriptor that is closed meanwhile is not counted.
        let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        Self {
            mapped: maps.matches("memfd:kyocho").count(),
            descriptors: targets.filter(|target| ours(target)).count(),
            microprocesses: snapshot(usize::MAX).microprocesses.len(),
            objects: OBJECTS.load(Ordering::SeqCst),
        }
    }
}

/// The progress of a client's calls when it dies.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Number of calls that are being served.
    calls: usize,
    with_region: bool,
    /// The client has abandoned them; the server still owns their frames.
    abandoned: bool,
    /// The calls may end before the client dies; otherwise only after the server has closed the
    /// connection.
    ends_meanwhile: bool,
}

const STEPS: [Step; 7] = [
    Step { calls: 0, with_region: true, abandoned: false, ends_meanwhile: false },
    Step { calls: 1, with_region: false, abandoned: false, ends_meanwhile: false },
    Step { calls: 1, with_region: true, abandoned: false, ends_meanwhile: false },
    Step { calls: 1, with_region: true, abandoned: true, ends_meanwhile: false },
    Step { calls: 20, with_region: true, abandoned: false, ends_meanwhile: false },
    Step { calls: 20, with_region: true, abandoned: false, ends_meanwhile: true },
    Step { calls: 20, with_region: false, abandoned: true, ends_meanwhile: true },
];

/// One call of the client, which reports to the server if it was abandoned.
fn call(step: Step, client: &Client, region: Option<&Region>) {
    let mut target = client.target(ROOT);
    if step.abandoned {
        target = target.within(Duration::from_millis(20));
    }
    let whole = region.map(Region::whole);
    if target.call_with(HOLD, &[], region.zip(whole.as_ref()), &mut []).is_err() {
        client.call(ABANDON, &[]).unwrap();
    }
}

/// Runs the client, in another process.
fn run_client(step: Step, path: &Path) {
    let run = || {
        let client = Client::connect(path).unwrap();
        let region = Arc::new(step.with_region.then(|| client.region(4096).unwrap()));
        client.call(ECHO, &[1]).unwrap();
        for _ in 0..step.calls {
            let (client, region) = (client.clone(), Arc::clone(&region));
            drop(spawn(move || call(step, &client, region.as_ref().as_ref())));
        }
        yield_now();
        stay();
    };
    Runtime::builder().virtual_processors(1).build().run(run).unwrap();
}

#[test]
fn entry_of_the_client() {
    if let Some((step, path)) = role() {
        run_client(STEPS[step.parse::<usize>().unwrap()], &path);
    }
}

fn await_count(counter: &AtomicUsize, count: usize) {
    while counter.load(Ordering::SeqCst) < count {
        sleep(Duration::from_millis(1));
    }
}

/// A client connects, calls, and dies at `step`. The server serves `honest` all the time, and frees
/// everything of the dead client.
fn client_dies_at(index: usize, meeting: &SocketFolder, server: &Server, honest: &Client) {
    let step = STEPS[index];
    for counter in [&BEGUN, &ENDED, &ABANDONED] {
        counter.store(0, Ordering::SeqCst);
    }
    MAY_END.store(false, Ordering::SeqCst);
    let before = Resources::now();
    let client = meeting.start("entry_of_the_client", &index.to_string());
    await_count(&BEGUN, step.calls);
    if step.abandoned {
        // Reported by further calls, in other frames.
        await_count(&ABANDONED, step.calls);
    }
    assert!(Resources::now().mapped > before.mapped);
    MAY_END.store(step.ends_meanwhile, Ordering::SeqCst);
    drop(client);
    while server.clients() > 1 {
        assert_eq!(honest.call(ECHO, &[3]).unwrap(), [3]);
    }
    MAY_END.store(true, Ordering::SeqCst);
    await_count(&ENDED, step.calls);
    while Resources::now() != before {
        assert_eq!(honest.call(ECHO, &[4]).unwrap(), [4]);
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn server_frees_everything_of_a_client_that_dies_and_serves_others() {
    under_watchdog("server_frees_everything_of_a_client_that_dies", || {
        let meeting = SocketFolder::new("leaks");
        let path = meeting.path();
        let run = || {
            let server = Server::builder().bind(&path, Arc::new(serve)).unwrap();
            let honest = Client::connect(&path).unwrap();
            // As many concurrent calls as are ever made: from here on the connection has all its
            // workers.
            let calls = (0..CREDITS_MAX).map(|_| {
                let honest = honest.clone();
                spawn(move || assert_eq!(honest.call(ECHO, &[2]).unwrap(), [2]))
            });
            let calls: Vec<_> = calls.collect();
            calls.into_iter().for_each(|call| call.join().unwrap());
            (0..STEPS.len()).for_each(|index| client_dies_at(index, &meeting, &server, &honest));
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}
