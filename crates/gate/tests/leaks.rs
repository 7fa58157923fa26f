//! What clients that are gone leave behind: nothing, wherever their calls were. Alone in its program: it counts what the process has.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::print_stdout, reason = "tells the process that started it")]

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
use meeting::{Meeting, role, stay};
use watchdog::under_watchdog;

/// Methods of the service.
const ECHO: u32 = 0;
/// Is served until it is told to go on.
const HOLD: u32 = 1;
/// Says that a call was given up.
const GIVEN_UP: u32 = 2;

/// Calls of `HOLD` that were begun and that ended, and whether they may.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);
static MAY_END: AtomicBool = AtomicBool::new(false);
/// Calls that were given up.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);
/// Objects that were granted and not dropped.
static OBJECTS: AtomicUsize = AtomicUsize::new(0);

/// What a client is granted.
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
        GIVEN_UP => {
            ABANDONED.fetch_add(1, Ordering::SeqCst);
            Ok(Vec::new())
        }
        _ => Ok(call.bytes().to_vec()),
    }
}

/// Has an object granted and a region at hand, if there is one, all the time; its client may die meanwhile.
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
    // Of a connection that is over as well: with it, it goes.
    let late = call.grant(Arc::new(Object::new()));
    ENDED.fetch_add(1, Ordering::SeqCst);
    granted.and(late).map(|_| Vec::new())
}

/// What the process has of what serving clients takes.
#[derive(Debug, PartialEq, Eq)]
struct Belongings {
    /// Pieces of shared memory that are mapped.
    mapped: usize,
    /// Descriptors of sockets and of shared memory.
    descriptors: usize,
    microprocesses: usize,
    objects: usize,
}

impl Belongings {
    fn now() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let descriptors = fs::read_dir("/proc/self/fd").unwrap();
        let ours = |path: &Path| {
            let path = path.to_string_lossy();
            path.starts_with("socket:") || path.contains("memfd:kyocho")
        };
        // Those that are closed meanwhile count no more.
        let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        Self {
            mapped: maps.matches("memfd:kyocho").count(),
            descriptors: targets.filter(|target| ours(target)).count(),
            microprocesses: snapshot(usize::MAX).microprocesses.len(),
            objects: OBJECTS.load(Ordering::SeqCst),
        }
    }
}

/// Where a client's calls are when it dies.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// How many are being served.
    calls: usize,
    with_region: bool,
    /// The client has given them up, and their frames are the server's still.
    given_up: bool,
    /// Whether they go on before the client is dead, or only when the server has let go of it.
    ends_meanwhile: bool,
}

const STEPS: [Step; 7] = [
    Step { calls: 0, with_region: true, given_up: false, ends_meanwhile: false },
    Step { calls: 1, with_region: false, given_up: false, ends_meanwhile: false },
    Step { calls: 1, with_region: true, given_up: false, ends_meanwhile: false },
    Step { calls: 1, with_region: true, given_up: true, ends_meanwhile: false },
    Step { calls: 20, with_region: true, given_up: false, ends_meanwhile: false },
    Step { calls: 20, with_region: true, given_up: false, ends_meanwhile: true },
    Step { calls: 20, with_region: false, given_up: true, ends_meanwhile: true },
];

/// One call of a client, which says so if it is given up.
fn call(step: Step, client: &Client, region: Option<&Region>) {
    let mut target = client.target(ROOT);
    if step.given_up {
        target = target.within(Duration::from_millis(20));
    }
    let whole = region.map(Region::whole);
    if target.call_with(HOLD, &[], region.zip(whole.as_ref()), &mut []).is_err() {
        client.call(GIVEN_UP, &[]).unwrap();
    }
}

/// A client in another process.
fn be_a_client(step: Step, place: &Path) {
    let run = || {
        let client = Client::connect(place).unwrap();
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
fn the_client() {
    if let Some((step, place)) = role() {
        be_a_client(STEPS[step.parse::<usize>().unwrap()], &place);
    }
}

fn await_count(counter: &AtomicUsize, count: usize) {
    while counter.load(Ordering::SeqCst) < count {
        sleep(Duration::from_millis(1));
    }
}

/// A client comes, calls, and dies at `step`; `honest` is served all the time.
fn come_and_die(index: usize, meeting: &Meeting, server: &Server, honest: &Client) {
    let step = STEPS[index];
    for counter in [&BEGUN, &ENDED, &ABANDONED] {
        counter.store(0, Ordering::SeqCst);
    }
    MAY_END.store(false, Ordering::SeqCst);
    let before = Belongings::now();
    let client = meeting.start("the_client", &index.to_string());
    await_count(&BEGUN, step.calls);
    if step.given_up {
        // Said by calls on frames of their own.
        await_count(&ABANDONED, step.calls);
    }
    assert!(Belongings::now().mapped > before.mapped);
    MAY_END.store(step.ends_meanwhile, Ordering::SeqCst);
    drop(client);
    while server.clients() > 1 {
        assert_eq!(honest.call(ECHO, &[3]).unwrap(), [3]);
    }
    MAY_END.store(true, Ordering::SeqCst);
    await_count(&ENDED, step.calls);
    while Belongings::now() != before {
        assert_eq!(honest.call(ECHO, &[4]).unwrap(), [4]);
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_client_that_dies_during_its_calls_leaves_nothing_behind_and_others_are_served() {
    under_watchdog("a_client_that_dies_during_its_calls", || {
        let meeting = Meeting::new("leaks");
        let place = meeting.place();
        let run = || {
            let server = Server::builder().bind(&place, Arc::new(serve)).unwrap();
            let honest = Client::connect(&place).unwrap();
            // As many calls at a time as are ever made: from here on it has all its workers.
            let calls = (0..CREDITS_MAX).map(|_| {
                let honest = honest.clone();
                spawn(move || assert_eq!(honest.call(ECHO, &[2]).unwrap(), [2]))
            });
            let calls: Vec<_> = calls.collect();
            calls.into_iter().for_each(|call| call.join().unwrap());
            (0..STEPS.len()).for_each(|index| come_and_die(index, &meeting, &server, &honest));
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}
