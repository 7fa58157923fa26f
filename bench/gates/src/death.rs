//! The delay until a caller notices that its server was killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kyocho_gate::{Client, Error};
use kyocho_microprocess::{Runtime, sleep, spawn};
use kyocho_sys::clock::monotonic_ns;
use serde_json::json;

use crate::pair::Server;
use crate::systems::SYSTEMS;
use crate::timing::spread;

const ROUNDS: usize = 51;

/// One death: nanoseconds from the signal to the caller's error.
fn die() -> f64 {
    let kyocho = SYSTEMS.iter().find(|system| system.name == "kyocho").expect("it is in the table");
    let mut server = Server::start(kyocho.name, 0, 0);
    let path = server.path();
    let known_ns = Arc::new(AtomicU64::new(0));
    let caller_ns = Arc::clone(&known_ns);
    let main = move || {
        let client = Client::connect(&path).expect("the server is ready");
        client.call(0, &[]).expect("the server answers");
        let caller = spawn(move || {
            // Calls repeatedly, so that one call is in progress when the server dies.
            while let Ok(_reply) = client.call(0, &[]) {}
            assert_eq!(client.call(0, &[]).expect_err("it is dead"), Error::Closed);
            caller_ns.store(monotonic_ns(), Ordering::SeqCst);
        });
        sleep(std::time::Duration::from_millis(5));
        let killed_ns = monotonic_ns();
        server.kill();
        caller.join().expect("the caller does not panic");
        (known_ns.load(Ordering::SeqCst) - killed_ns) as f64
    };
    Runtime::builder().virtual_processors(1).build().run(main).expect("no deadlock")
}

/// Prints the line.
pub fn run() {
    let ns: Vec<f64> = (0..ROUNDS).map(|_| die()).collect();
    println!("{}", json!({ "bench": "death", "system": "kyocho", "ns": spread(&ns) }));
}
