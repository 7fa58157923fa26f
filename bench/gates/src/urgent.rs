//! The longest call of a real-time caller beside programs that spin on its core.

use std::process::{Child, Command};

use kyocho_gate::Client;
use kyocho_microprocess::Runtime;
use kyocho_sys::scheduling::{Class, affinity, set_class};
use kyocho_sys::task::ThreadId;
use serde_json::json;

use crate::pair::{Server, stay_on};
use crate::systems::SYSTEMS;
use crate::timing;

const LEVEL: u8 = 50;

/// Programs that spin, ended when dropped.
struct Hogs(Vec<Child>);

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ended = hog.kill();
            let _code = hog.wait();
        }
    }
}

/// Prints the line.
pub fn run(hogs: usize, calls: usize) {
    let cpu = affinity(ThreadId::current()).expect("a set").iter().next().expect("a CPU");
    let kyocho = SYSTEMS.iter().find(|system| system.name == "kyocho").expect("it is in the table");
    let server = Server::start(kyocho.name, cpu, 0);
    stay_on(cpu);
    let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
    let _hogs = Hogs((0..hogs).map(|_| spin()).collect());
    if set_class(ThreadId::current(), Class::Fifo(LEVEL)).is_err() {
        eprintln!("skipped urgent: real-time scheduling needs CAP_SYS_NICE here");
        return;
    }
    let main = || {
        let client = Client::connect(server.path()).expect("the server is ready");
        timing::each(calls, || drop(client.call(0, &[]).expect("the server answers")))
    };
    let ns = Runtime::builder().virtual_processors(1).build().run(main).expect("no deadlock");
    println!(
        "{}",
        json!({ "bench": "urgent", "system": "kyocho", "hogs": hogs, "ns": timing::spread(&ns) })
    );
}
