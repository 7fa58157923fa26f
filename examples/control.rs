//! Paper 1, part 5: one process lists, suspends, resumes and kills microprocesses of another by
//! their global ids.
//!
//!     cargo run --release --example control
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use core::hint::spin_loop;
use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::yield_now;

use kyocho::microprocess::control::client::{Client, processes};
use kyocho::microprocess::control::protocol::{Reply, Request};
use kyocho::microprocess::control::{Entry, GlobalId, Status};
use kyocho::microprocess::{Builder, Killed, Runtime, park};

fn main() -> io::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("work") {
        return work();
    }
    let mut worker = Command::new(std::env::current_exe()?)
        .arg("work")
        .stdout(Stdio::piped())
        .env("KYOCHO_CONTROL", "1")
        .spawn()?;
    let mut lines = BufReader::new(worker.stdout.take().expect("it is piped")).lines();
    println!("the worker says: {}", lines.next().expect("it says that it is ready")?);
    // Its control socket is opened while its first microprocess already runs.
    while !processes()?.contains(&worker.id()) {
        yield_now();
    }
    let mut client = Client::connect(worker.id())?;
    let hog = find(&mut client, "hog")?.id;
    client.ask(&Request::Suspend { id: hog.local })?;
    await_status(&mut client, hog, Status::Suspended)?;
    client.ask(&Request::Resume { id: hog.local })?;
    await_status(&mut client, hog, Status::Running)?;
    // One loops and never calls the runtime, the other one waits: orders work in every state.
    for name in ["hog", "waiter"] {
        let id = find(&mut client, name)?.id;
        client.ask(&Request::Kill { id: id.local })?;
        println!("killed {id} {name}");
    }
    println!("the worker says: {}", lines.next().expect("it says how they ended")?);
    assert!(worker.wait()?.success());
    Ok(())
}

/// All microprocesses of the other process.
fn list(client: &mut Client) -> io::Result<Vec<Entry>> {
    match client.ask(&Request::Snapshot { entries_max: 100 })? {
        Reply::Snapshot(snapshot) => Ok(snapshot.microprocesses),
        other => Err(io::Error::other(format!("not a snapshot: {other:?}"))),
    }
}

fn find(client: &mut Client, name: &str) -> io::Result<Entry> {
    let mut all = list(client)?.into_iter();
    all.find(|entry| entry.name.as_deref() == Some(name)).ok_or(io::ErrorKind::NotFound.into())
}

fn await_status(client: &mut Client, id: GlobalId, status: Status) -> io::Result<()> {
    while !list(client)?.iter().any(|entry| (entry.id, entry.status) == (id, status)) {}
    println!("{id} is {status:?}");
    Ok(())
}

/// The other process.
fn work() -> io::Result<()> {
    let run = Runtime::builder().virtual_processors(1).build().run(|| {
        let hog = Builder::new().name("hog").spawn(|| {
            loop {
                spin_loop();
            }
        })?;
        let waiter = Builder::new().name("waiter").spawn(park)?;
        println!("ready");
        let ends = [hog.join(), waiter.join()];
        let killed = ends.iter().filter(|end| matches!(end, Err(why) if why.is::<Killed>()));
        println!("{} of 2 were killed", killed.count());
        Ok(())
    });
    run.map_err(io::Error::other)?
}
