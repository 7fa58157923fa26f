//! The control socket, with well-behaved and with hostile peers.

use core::time::Duration;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::{Mutex, PoisonError};

use kyocho_sys::directory;
use kyocho_sys::peer::Peer;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};

use super::super::client::Client;
use super::super::protocol::{REQUEST_BYTES_MAX, Reply, Request};
use super::super::{Killed, Status};
use super::{CONNECTIONS_MAX, answer, path_of};
use crate::{Builder, Microprocess, Runtime, park, spawn, yield_now};

/// Runs `main` with the control socket served.
///
/// One test at a time: the socket and its limit of connections belong to the process.
fn served<T: Send>(main: impl FnOnce() -> T + Send) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Runtime::builder().virtual_processors(1).control(true).build().run(main).unwrap()
}

fn ask(request: &Request) -> std::io::Result<Reply> {
    // The socket appears shortly after `main` has begun.
    loop {
        match Client::connect(process::id()) {
            Err(error) if error.kind() == ErrorKind::NotFound => yield_now(),
            connected => return connected.and_then(|mut client| client.ask(request)),
        }
    }
}

fn connect() -> UnixStream {
    drop(ask(&Request::Metrics {}));
    let path = path_of(&directory::of_user().unwrap(), process::id());
    UnixStream::connect(path).unwrap()
}

#[test]
fn client_that_connects_early_does_not_remove_the_socket() {
    let folder = std::env::temp_dir().join(format!("kyocho-early-{}", process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = path_of(&folder, process::id());
    let over = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                drop(Client::connect_in(&folder, process::id()));
            }
        });
        // Nothing may panic here before the other thread was told to end.
        let gone = |_: &i32| {
            let listening = super::listen(&path);
            let gone = !path.exists();
            let _gone_too = std::fs::remove_file(&path);
            gone || listening.is_err()
        };
        let refused = (0..2000).filter(gone).count();
        over.store(true, Ordering::Relaxed);
        refused
    });
    assert_eq!(refused, 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn orders_from_outside_reach_microprocesses() {
    served(|| {
        let victim = Builder::new()
            .name("victim")
            .spawn(|| {
                loop {
                    park();
                }
            })
            .unwrap();
        let id = victim.microprocess().id();
        assert_eq!(ask(&Request::Priority { id, level: 40 }).unwrap(), Reply::Done(true));
        assert_eq!(ask(&Request::Suspend { id }).unwrap(), Reply::Done(true));
        // An order takes effect when the microprocess's virtual processor handles it.
        let mut looks = 0;
        let seen = loop {
            let Reply::Snapshot(seen) = ask(&Request::Snapshot { entries_max: 1000 }).unwrap()
            else {
                panic!("a snapshot was asked for")
            };
            let entry = seen.microprocesses.iter().find(|entry| entry.id.local == id).unwrap();
            assert_eq!(entry.name.as_deref(), Some("victim"));
            if (entry.priority, entry.status) == (40, Status::Suspended) {
                break seen;
            }
            looks += 1;
            assert!(looks < 10_000, "{entry:?}");
            yield_now();
        };
        let main =
            seen.microprocesses.iter().find(|it| it.id == Microprocess::current().global_id());
        assert_eq!(main.unwrap().name.as_deref(), Some("main"));
        assert_eq!(ask(&Request::Resume { id }).unwrap(), Reply::Done(true));
        assert_eq!(ask(&Request::Kill { id }).unwrap(), Reply::Done(true));
        assert!(victim.join().unwrap_err().is::<Killed>());
        assert!(ask(&Request::Kill { id }).unwrap_err().to_string().contains("has ended"));
    });
}

#[test]
fn the_socket_answers_while_an_urgent_loop_holds_the_processor() {
    served(|| {
        let hog = Builder::new().priority(crate::Priority::HIGHEST).spawn(|| {
            let mut client = loop {
                match Client::connect(process::id()) {
                    Ok(client) => break client,
                    Err(_) => std::thread::yield_now(),
                }
            };
            // Makes plain system calls, and never gives up the virtual processor.
            client.ask(&Request::Snapshot { entries_max: 10 }).is_ok()
        });
        assert!(hog.unwrap().join().unwrap());
    });
}

#[test]
fn a_served_runtime_still_finds_deadlocks() {
    let runtime = Runtime::builder().virtual_processors(1).control(true).build();
    assert!(runtime.run(park).is_err());
}

#[test]
fn hostile_and_silent_peers_do_not_stop_others() {
    served(|| {
        // Half a request on an open connection: it occupies a kernel thread for a limited time.
        let mut silent = connect();
        silent.write_all(b"{\"version\":1,").unwrap();
        for garbage in [&b"\0\xff\xfe\n"[..], b"{}\n", b"[1]\n", &[b'x'; REQUEST_BYTES_MAX + 2]] {
            let mut peer = connect();
            peer.write_all(garbage).unwrap();
            let mut reply = String::new();
            BufReader::new(&peer).read_line(&mut reply).unwrap();
            assert!(reply.contains("not a request"), "{reply}");
            // The connection has ended.
            assert!(matches!(peer.read(&mut [0]), Ok(0) | Err(_)));
        }
        assert!(ask(&Request::Metrics {}).is_ok());
        drop(silent);
    });
}

#[test]
fn connections_are_bounded_and_places_are_reused() {
    served(|| {
        drop(ask(&Request::Metrics {}));
        let path = path_of(&directory::of_user().unwrap(), process::id());
        let mut many = Vec::new();
        loop {
            let Ok(peer) = UnixStream::connect(&path) else { continue };
            peer.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let mut refused = String::new();
            let _served = BufReader::new(&peer).read_line(&mut refused);
            if refused.contains("too many connections") {
                break;
            }
            // Admitted, as far as known, so it takes one of the places.
            many.push(peer);
            assert!(many.len() < 100 * CONNECTIONS_MAX, "no connection is refused");
        }
        drop(many);
        while ask(&Request::Metrics {}).is_err() {
            yield_now();
        }
    });
}

#[test]
fn other_users_are_refused() {
    let stranger = Peer { process: 1, user: 12_345 };
    assert!(!stranger.is_trusted());
    let refused = answer(stranger, &Request::Snapshot { entries_max: 1 });
    assert!(matches!(refused, Reply::Error(why) if why.contains("does not permit")));
}

#[test]
fn snapshot_shows_waits_with_objects_and_holders() {
    served(|| {
        let mutex = std::sync::Arc::new(crate::Mutex::new(()));
        let held = mutex.lock().unwrap();
        let theirs = std::sync::Arc::clone(&mutex);
        let waiter = spawn(move || drop(theirs.lock().unwrap()));
        yield_now();
        let seen = super::snapshot(1000);
        let id = waiter.microprocess().id();
        let entry = seen.microprocesses.iter().find(|entry| entry.id.local == id).unwrap();
        assert_eq!(entry.status, Status::Waiting);
        assert!(entry.waits_for.as_deref().unwrap().starts_with("mutex"));
        assert_eq!(entry.held_by, Some(Microprocess::current().global_id()));
        assert_eq!(entry.switches, 1);
        assert!(super::snapshot(1).left_off >= 1);
        drop(held);
        waiter.join().unwrap();
    });
}
