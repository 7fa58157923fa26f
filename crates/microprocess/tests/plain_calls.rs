//! Input and output if the kernel refuses rings: plain system calls, whose sleeps are Blocked
//! events.
//!
//! A separate test program: the refusal is injected, and holds for the whole process.
#![allow(missing_docs, reason = "tests are sentences")]
#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

use core::time::Duration;
use std::io::{ErrorKind, Read, Write};

use kyocho_microprocess::io::{File, Mechanism, mechanism};
use kyocho_microprocess::net::{TcpListener, TcpStream, UdpSocket};
use kyocho_microprocess::{Runtime, report, spawn, yield_now};
use kyocho_sys::error::Errno;
use kyocho_sys::fault::{Call, Injection, Kinds};

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;

/// Refuses the first ring, as a container does that forbids them.
fn without_rings(body: impl FnOnce() + Send) {
    under_watchdog("plain calls", || {
        let refusal = Injection::new(Kinds::Only(Call::Ring), 1, Errno::PERM);
        let runtime = Runtime::builder().virtual_processors(1).build();
        runtime
            .run(|| {
                assert_eq!(mechanism(), Mechanism::Calls);
                assert!(report().to_string().contains("plain system calls"));
                body();
            })
            .unwrap();
        drop(refusal);
    });
}

#[test]
fn read_that_sleeps_lets_the_others_run() {
    without_rings(|| {
        let (reader, writer) = std::io::pipe().unwrap();
        let (mut reader, mut writer) = (File::from(reader), File::from(writer));
        let waiting = spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        for _ in 0..10 {
            yield_now();
        }
        writer.write_all(b"through plain calls").unwrap();
        drop(writer);
        assert_eq!(waiting.join().unwrap(), "through plain calls");
    });
}

#[test]
fn sockets_and_their_limits_work() {
    without_rings(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_accept_timeout(Some(Duration::from_millis(2))).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::TimedOut);
        listener.set_accept_timeout(None).unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut text = String::new();
            connection.read_to_string(&mut text).unwrap();
            text
        });
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"hello").unwrap();
        drop(client);
        assert_eq!(server.join().unwrap(), "hello");
        let (one, other) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        one.send_to(b"datagram", other.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        let (count, sender) = other.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..count], sender), (&b"datagram"[..], one.local_addr().unwrap()));
    });
}
