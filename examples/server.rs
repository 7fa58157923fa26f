//! A server with a microprocess for each connection, and its clients, on one virtual processor.
//! Requests that sleep in the kernel or compute without end delay no other client.
//!
//!     cargo run --release --example server
#![expect(clippy::print_stdout, reason = "an example shows what it found")]
#![expect(clippy::disallowed_methods, reason = "a sleep behind the runtime's back is the point")]

use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use kyocho::microprocess::net::{TcpListener, TcpStream};
use kyocho::microprocess::{Builder, Runtime, spawn};
use std::io::{BufRead, BufReader, Result, Write};

static DONE: AtomicBool = AtomicBool::new(false);

/// Answers one client, line by line. Each read and write blocks this microprocess alone.
fn serve(client: TcpStream) -> Result<()> {
    let mut replies = client.try_clone()?;
    for request in BufReader::new(client).lines() {
        writeln!(replies, "{}", answer(&request?))?;
    }
    Ok(())
}

fn answer(request: &str) -> String {
    let step: fn() = match request {
        // A C library that sleeps in the kernel, unknown to the runtime.
        "sleep" => || std::thread::sleep(core::time::Duration::from_millis(10)),
        // A computation that never calls the runtime.
        "compute" => core::hint::spin_loop,
        _ => return request.to_uppercase(),
    };
    while !DONE.load(Ordering::Acquire) {
        step();
    }
    format!("{request}: done")
}

fn listen() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    Builder::new().name("listener").spawn(move || {
        for client in listener.incoming().flatten() {
            spawn(move || serve(client));
        }
    })?;
    Ok(address)
}

/// Sends one request and returns the answer.
fn ask(address: SocketAddr, request: &str) -> Result<String> {
    let mut server = TcpStream::connect(address)?;
    writeln!(server, "{request}")?;
    let mut answer = String::new();
    BufReader::new(server).read_line(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}

fn clients(address: SocketAddr) -> Result<()> {
    let client = |request: String| spawn(move || ask(address, &request));
    let slow = ["sleep", "compute"].map(|request| client(request.to_owned()));
    let quick: Vec<_> = (0..100).map(|n| client(format!("hello {n}"))).collect();
    for (n, client) in quick.into_iter().enumerate() {
        assert_eq!(client.join().expect("no client panics")?, format!("HELLO {n}"));
    }
    println!("100 quick clients have their answers");
    DONE.store(true, Ordering::Release);
    for client in slow {
        println!("{}", client.join().expect("no client panics")?);
    }
    Ok(())
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().virtual_processors(1).build();
    runtime.run(|| clients(listen()?)).expect("no deadlock")
}
