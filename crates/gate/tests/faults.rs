//! System calls that fail while a server listens and a client connects and calls: each step
//! succeeds or reports the error, and nothing hangs. A program of its own, because a process has
//! one fault plane.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::path::Path;
use std::sync::Arc;

use kyocho_gate::{Call, Client, Error, Failure, ROOT, Server};
use kyocho_microprocess::Runtime;
use kyocho_sys::error::Errno;
use kyocho_sys::fault::{self, Kinds, sweep};

#[expect(dead_code, clippy::print_stdout, reason = "everything runs in one process here")]
#[path = "support/meeting.rs"]
mod meeting;
#[path = "../../microprocess/tests/support/watchdog.rs"]
mod watchdog;
use meeting::SocketFolder;
use watchdog::under_watchdog;

const BYTES: usize = 10_000;

/// Returns the request, or the first four bytes of a region.
fn echo(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    match call.method() {
        0 => Ok(call.bytes().to_vec()),
        _ => Ok(call.region()?.copy()[..4].to_vec()),
    }
}

/// Binds a server, connects a client, calls, and calls with a region. Returns the error of the
/// first that failed.
fn scenario(path: &Path) -> Result<(), Error> {
    let _server = Server::builder().credits(2).bind(path, Arc::new(echo))?;
    let client = Client::connect(path)?;
    assert_eq!(client.call(0, &[1, 2, 3])?, [1, 2, 3]);
    let region = client.region(BYTES)?;
    region.whole().write(&[7; BYTES]).unwrap();
    let mut reply = [0; 4];
    client.target(ROOT).call_with(1, &[], Some((&region, &region.whole())), &mut reply)?;
    assert_eq!(reply, [7; 4]);
    Ok(())
}

#[test]
fn calls_succeed_or_report_the_error_whichever_system_call_fails() {
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
    under_watchdog("calls_succeed_or_report_the_error_whichever_system_call_fails", || {
        let meeting = SocketFolder::new("faults");
        let path = meeting.path();
        let run = || {
            for call in calls {
                // The runtime's own threads meet faults, too, and their number varies. The sweep
                // ends at the first run that met none.
                sweep(Kinds::Only(call), Errno::NOMEM, 300, |_| drop(scenario(&path)));
                assert_eq!(scenario(&path), Ok(()), "after faults in {call:?}");
            }
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}
