//! What the system refuses while a server listens, a client connects and calls: each either works or says so, and nothing hangs. A program of its own:
//! the fault plane is one per process.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::path::Path;
use std::sync::Arc;

use kyocho_gate::{Call, Client, Error, Failure, ROOT, Server};
use kyocho_microprocess::Runtime;
use kyocho_sys::error::Errno;
use kyocho_sys::fault::{self, Kinds, sweep};

#[expect(dead_code, clippy::print_stdout, reason = "all in one process here")]
#[path = "support/meeting.rs"]
mod meeting;
#[path = "../../microprocess/tests/support/watchdog.rs"]
mod watchdog;
use meeting::Meeting;
use watchdog::under_watchdog;

const BYTES: usize = 10_000;

/// The request's bytes, or the first ones of a region.
fn echo(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    match call.method() {
        0 => Ok(call.bytes().to_vec()),
        _ => Ok(call.region()?.copy()[..4].to_vec()),
    }
}

/// A server, a client, a call, and a call with a region: `Err` where one of them was refused something and said so.
fn scenario(place: &Path) -> Result<(), Error> {
    let _server = Server::builder().credits(2).bind(place, Arc::new(echo))?;
    let client = Client::connect(place)?;
    assert_eq!(client.call(0, &[1, 2, 3])?, [1, 2, 3]);
    let region = client.region(BYTES)?;
    region.whole().write(&[7; BYTES]).unwrap();
    let mut reply = [0; 4];
    client.target(ROOT).call_with(1, &[], Some((&region, &region.whole())), &mut reply)?;
    assert_eq!(reply, [7; 4]);
    Ok(())
}

#[test]
fn whatever_is_refused_a_call_works_or_says_so() {
    let calls = [
        fault::Call::Open,
        fault::Call::Mmap,
        fault::Call::Madvise,
        fault::Call::Mprotect,
        fault::Call::ThreadStart,
        fault::Call::FutexWait,
        fault::Call::Read,
        fault::Call::Write,
        fault::Call::Scheduler,
        fault::Call::Affinity,
        fault::Call::Signal,
    ];
    under_watchdog("whatever_is_refused_a_call_works_or_says_so", || {
        let meeting = Meeting::new("faults");
        let place = meeting.place();
        let run = || {
            for call in calls {
                // The runtime's own threads meet faults, too, and how many differs: the sweep ends at the first run that met none.
                sweep(Kinds::Only(call), Errno::NOMEM, 300, |_| drop(scenario(&place)));
                assert_eq!(scenario(&place), Ok(()), "after faults in {call:?}");
            }
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}
