//! What clients that are gone leave behind. Alone in its program: it counts what the process has.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::print_stdout, reason = "tells the process that started it")]

use core::time::Duration;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use kyocho_gate::{Call, Client, Failure, Server};
use kyocho_microprocess::{Runtime, sleep};

#[path = "support/meeting.rs"]
mod meeting;
#[path = "../../microprocess/tests/support/watchdog.rs"]
mod watchdog;
use meeting::{Meeting, role, stay};
use watchdog::under_watchdog;

/// What a process shows, and where others ring.
const OWN_PAGES: usize = 2;

fn echo(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    Ok(call.bytes().to_vec())
}

/// How many pieces of shared memory the process has mapped.
fn mapped() -> usize {
    fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:kyocho").count()
}

/// A client in another process, which has a region, too.
fn be_a_client(place: &Path) {
    let run = || {
        let client = Client::connect(place).unwrap();
        let _region = client.region(4096).unwrap();
        client.call(0, &[1]).unwrap();
        stay();
    };
    Runtime::builder().virtual_processors(1).build().run(run).unwrap();
}

#[test]
fn the_client() {
    if let Some((_, place)) = role() {
        be_a_client(&place);
    }
}

fn come_and_go(meeting: &Meeting, server: &Server) {
    let client = meeting.start("the_client", "client");
    assert!(mapped() > OWN_PAGES);
    drop(client);
    while server.clients() > 0 || mapped() > OWN_PAGES {
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn killed_client_leaves_nothing_behind() {
    under_watchdog("killed_client_leaves_nothing_behind", || {
        let meeting = Meeting::new("leaks");
        let place = meeting.place();
        let run = || {
            let server = Server::builder().bind(&place, Arc::new(echo)).unwrap();
            (0..5).for_each(|_| come_and_go(&meeting, &server));
        };
        Runtime::builder().virtual_processors(1).build().run(run).unwrap();
    });
}
