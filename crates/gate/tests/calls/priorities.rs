//! A call is served at its caller's priority, and in its caller's class of the host.

use std::sync::Arc;

use kyocho_gate::{Call, Client, Failure, Server};
use kyocho_microprocess::{Builder, Microprocess, Priority, Runtime, yield_now};
use kyocho_sys::scheduling::{Class, set_class};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

use crate::meeting::SocketFolder;
use crate::service::{ENTRY, as_number, method};
use crate::watchdog::under_watchdog;
use crate::with_client;

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
        let meeting = SocketFolder::new("inherit");
        let _server = meeting.start(ENTRY, "1");
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
        let (first, second) = (SocketFolder::new("chain-1"), SocketFolder::new("chain-2"));
        let _last = second.start(ENTRY, "1");
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
