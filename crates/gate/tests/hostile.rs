//! Clients and servers that break the protocol, or end at any step of it, lose their own connection
//! only.
//!
//! The attacker uses descriptors, frames and the socket directly, as another program could, without
//! this crate's client.
#![expect(unsafe_code, reason = "the attacker writes to shared memory")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::print_stdout, reason = "tells the parent process that this one is ready")]

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use kyocho_gate::protocol::{Phase, Word};
use kyocho_gate::{Call, Client, Error, Failure, Server};
use kyocho_microprocess::{Runtime, bell, sleep, spawn};
use kyocho_sys::passing;
use kyocho_sys::robust;
use kyocho_sys::sealed::{SealedMemory, Use, Writers};
use proptest::prelude::*;
use socket2::{Domain, SockAddr, Socket, Type};

#[path = "support/meeting.rs"]
mod meeting;
#[path = "../../microprocess/tests/support/watchdog.rs"]
mod watchdog;
use meeting::{SocketFolder, role, stay};
use watchdog::under_watchdog;

fn echo(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    Ok(call.bytes().to_vec())
}

/// Numbers of the protocol, written out independently of the crate.
mod wire {
    pub(super) const HELLO: u32 = 1;
    pub(super) const WELCOME: u32 = 2;
    pub(super) const ATTACH: u32 = 4;
    pub(super) const VERSION: u32 = 2;
    /// The method that waits until a region is attached.
    pub(super) const AWAIT_REGION: u32 = u32::MAX - 15;
    /// Indices of words in a frame's head.
    pub(super) const STATE: usize = 0;
    pub(super) const BELL: usize = 1;
    pub(super) const METHOD: usize = 4;
    pub(super) const BYTES: usize = 5;
    pub(super) const STATUS: usize = 6;
    pub(super) const REGION: usize = 7;
    pub(super) const FRAME_BYTES: usize = 8192;
    /// The liveness word after the frames.
    pub(super) const LIVENESS_BYTES: usize = 64;
}

fn message(words: [u32; 3]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn socket() -> Socket {
    Socket::new(Domain::UNIX, Type::from(libc::SOCK_SEQPACKET), None).unwrap()
}

/// A client that does not follow the protocol.
struct Attacker {
    socket: Socket,
    frames: SealedMemory,
    server: bell::Peer,
}

impl Attacker {
    fn connect(path: &Path) -> Self {
        let socket = socket();
        socket.connect(&SockAddr::unix(path).unwrap()).unwrap();
        let (state_page, ring_page) = bell::descriptors().unwrap();
        let hello = message([wire::HELLO, wire::VERSION, 0]);
        passing::send(socket.as_fd(), &hello, &[state_page, ring_page]).unwrap();
        let (_, descriptors) = passing::receive(socket.as_fd(), &mut [0; 12]).unwrap();
        let [state_page, ring_page, frames] = <[OwnedFd; 3]>::try_from(descriptors).unwrap();
        let frames = SealedMemory::receive(frames, 1 << 20, Use::ReadWrite).unwrap();
        Self { socket, frames, server: bell::Peer::receive(state_page, ring_page, 0).unwrap() }
    }

    /// Word `index` of a frame.
    fn word(&self, frame: usize, index: usize) -> &AtomicU32 {
        let address = self.frames.base() + frame * wire::FRAME_BYTES + index * 4;
        // SAFETY: inside the mapping, which lives as long as `self`; aligned; atomic.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    fn ring(&self) {
        for bell in 0..4 {
            self.server.ring(bell);
        }
    }

    /// Rings until the server has closed the connection.
    fn await_disconnect(&self) {
        while !self.is_disconnected() {
            self.ring();
        }
    }

    /// Whether the server closes the connection within a moment.
    fn is_disconnected(&self) -> bool {
        self.socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let is_end = matches!(passing::receive(self.socket.as_fd(), &mut [0; 16]), Ok((0, _)));
        // An empty message looks like an end, but the socket still accepts messages after it.
        is_end && passing::send(self.socket.as_fd(), &[0], &[]).is_err()
    }
}

/// Runs `body` while a server runs. Then the server must still serve an honest client, and must
/// have closed all other connections.
fn with_a_server(name: &str, body: impl FnOnce(&Path) + Send) {
    let meeting = SocketFolder::new(name);
    let path = meeting.path();
    let run = || {
        let server = Server::builder().credits(4).bind(&path, Arc::new(echo)).unwrap();
        let honest = Client::connect(&path).unwrap();
        body(&path);
        assert_eq!(honest.call(0, &[5, 6]).unwrap(), [5, 6]);
        while server.clients() > 1 {
            sleep(Duration::from_millis(1));
        }
    };
    Runtime::builder().virtual_processors(1).build().run(run).unwrap();
}

#[test]
fn client_that_writes_an_impossible_state_is_disconnected() {
    under_watchdog("client_that_writes_an_impossible_state_is_disconnected", || {
        with_a_server("states", |path| {
            let ahead = Word::new(Phase::Requested, 2).bits();
            let own_answer = Word::new(Phase::Replied, 7).bits();
            for bits in [ahead, own_answer, 3, u32::MAX, u32::MAX - 1] {
                let attacker = Attacker::connect(path);
                sleep(Duration::from_millis(2));
                attacker.word(0, wire::STATE).store(bits, Ordering::SeqCst);
                attacker.ring();
                attacker.await_disconnect();
            }
        });
    });
}

#[test]
fn length_out_of_range_disconnects_and_unknown_methods_and_doorbells_do_not() {
    under_watchdog("length_out_of_range_disconnects", || {
        with_a_server("lengths", |path| {
            let attacker = Attacker::connect(path);
            attacker.word(0, wire::BELL).store(u32::MAX, Ordering::SeqCst);
            attacker.word(0, wire::METHOD).store(u32::MAX - 3, Ordering::SeqCst);
            let asked = Word::new(Phase::Requested, 1).bits();
            attacker.word(0, wire::STATE).store(asked, Ordering::SeqCst);
            while attacker.word(0, wire::STATE).load(Ordering::SeqCst) == asked {
                attacker.ring();
                sleep(Duration::from_millis(1));
            }
            assert_ne!(attacker.word(0, wire::STATUS).load(Ordering::SeqCst), 0);
            attacker.word(0, wire::BYTES).store(1 << 30, Ordering::SeqCst);
            attacker.word(0, wire::METHOD).store(0, Ordering::SeqCst);
            attacker
                .word(0, wire::STATE)
                .store(Word::new(Phase::Requested, 2).bits(), Ordering::SeqCst);
            attacker.await_disconnect();
        });
    });
}

#[test]
fn attaching_unsealed_memory_or_a_bad_number_disconnects() {
    under_watchdog("attaching_unsealed_memory_disconnects", || {
        with_a_server("unsealed", |path| {
            let sealed = SealedMemory::new(4096, Writers::All).unwrap();
            let file = std::fs::File::open("/dev/null").unwrap();
            for (number, descriptors) in
                [(0, vec![file.as_fd()]), (64, vec![sealed.as_fd()]), (0, vec![])]
            {
                let attacker = Attacker::connect(path);
                let attach = message([wire::ATTACH, wire::VERSION, number]);
                passing::send(attacker.socket.as_fd(), &attach, &descriptors).unwrap();
                attacker.await_disconnect();
            }
        });
    });
}

/// Calls `AWAIT_REGION` in `frame` for region `number`.
fn await_region(attacker: &Attacker, frame: usize, number: u32) {
    attacker.word(frame, wire::METHOD).store(wire::AWAIT_REGION, Ordering::SeqCst);
    attacker.word(frame, wire::REGION).store(1 + number, Ordering::SeqCst);
    let asked = Word::new(Phase::Requested, 1).bits();
    attacker.word(frame, wire::STATE).store(asked, Ordering::SeqCst);
    attacker.ring();
    // By now the worker probably waits. Nothing below depends on it.
    sleep(Duration::from_millis(5));
}

/// Attaches region `number` and waits for the reply in `frame`. Returns its status.
fn attach(attacker: &Attacker, frame: usize, number: u32) -> u32 {
    let memory = SealedMemory::new(4096, Writers::All).unwrap();
    let attach = message([wire::ATTACH, wire::VERSION, number]);
    passing::send(attacker.socket.as_fd(), &attach, &[memory.as_fd()]).unwrap();
    let replied = Word::new(Phase::Replied, 1).bits();
    while attacker.word(frame, wire::STATE).load(Ordering::SeqCst) != replied {
        attacker.ring();
        sleep(Duration::from_millis(1));
    }
    attacker.word(frame, wire::STATUS).load(Ordering::SeqCst)
}

#[test]
fn call_that_awaits_a_region_returns_only_when_that_region_is_attached() {
    under_watchdog("call_that_awaits_a_region", || {
        with_a_server("two_regions", |path| {
            let client = Attacker::connect(path);
            await_region(&client, 0, 0);
            await_region(&client, 1, 1);
            // The regions arrive in the opposite order of the calls.
            assert_eq!(attach(&client, 1, 1), 0);
            assert_eq!(attach(&client, 0, 0), 0);
        });
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any words in any heads, and any message: the server survives and serves other clients.
    #[test]
    fn server_survives_any_words_in_frames_and_any_message(
        words in prop::collection::vec((0..4_usize, 0..16_usize, any::<u32>()), 1..60),
        bytes in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        under_watchdog("server_survives_any_words_in_frames_and_any_message", || {
            with_a_server("fuzz", |path| {
                let attacker = Attacker::connect(path);
                sleep(Duration::from_millis(1));
                for (frame, index, bits) in words {
                    attacker.word(frame, index).store(bits, Ordering::SeqCst);
                    attacker.ring();
                }
                // Fails if the server has disconnected the attacker already.
                let _disconnected = passing::send(attacker.socket.as_fd(), &bytes, &[]);
                sleep(Duration::from_millis(1));
            });
        });
    }
}

/// A client that ends after `step` steps.
fn end_at(step: u32, path: &Path) {
    let socket = socket();
    if step == 0 {
        return;
    }
    socket.connect(&SockAddr::unix(path).unwrap()).unwrap();
    if step == 1 {
        return;
    }
    drop(socket);
    let attacker = Attacker::connect(path);
    if step == 2 {
        return;
    }
    let asked = Word::new(Phase::Requested, 1).bits();
    attacker.word(0, wire::STATE).store(asked, Ordering::SeqCst);
    if step == 3 {
        return;
    }
    attacker.ring();
}

#[test]
fn server_survives_clients_that_end_at_every_step() {
    under_watchdog("server_survives_clients_that_end_at_every_step", || {
        (0..5).for_each(|step| with_a_server("steps", |path| end_at(step, path)));
    });
}

/// A server that ends at `step`, or sends nonsense there. Runs in another process.
fn bad_server(step: u32, path: &Path) {
    let listener = socket();
    listener.bind(&SockAddr::unix(path).unwrap()).unwrap();
    listener.listen(1).unwrap();
    println!("\nready");
    let (client, _) = listener.accept().unwrap();
    let end = || std::process::abort();
    if step == 0 {
        end();
    }
    let (_, descriptors) = passing::receive(client.as_fd(), &mut [0; 12]).unwrap();
    if step == 1 {
        end();
    }
    let frames = SealedMemory::new(wire::FRAME_BYTES + wire::LIVENESS_BYTES, Writers::All).unwrap();
    let (state_page, ring_page) = bell::descriptors().unwrap();
    let credits = if step == 2 { 1000 } else { 1 };
    // SAFETY: after the only frame, inside the mapping, which stays until this process ends;
    // aligned, atomic.
    let liveness: &AtomicU32 =
        unsafe { &*core::ptr::with_exposed_provenance(frames.base() + wire::FRAME_BYTES) };
    let living = (step == 6).then(|| robust::LivenessGuard::new(liveness).unwrap());
    let welcome = message([wire::WELCOME, wire::VERSION, credits]);
    passing::send(client.as_fd(), &welcome, &[state_page, ring_page, frames.as_fd()]).unwrap();
    let [state_page, ring_page] = <[OwnedFd; 2]>::try_from(descriptors).unwrap();
    let attacker = Attacker {
        socket: client,
        frames,
        server: bell::Peer::receive(state_page, ring_page, 0).unwrap(),
    };
    let state = attacker.word(0, wire::STATE);
    while state.load(Ordering::SeqCst) != Word::new(Phase::Requested, 1).bits() {
        core::hint::spin_loop();
    }
    match step {
        3 => end(),
        // The liveness word is marked, though the process lives and its socket is open.
        6 => drop(living),
        // A reply to a call that was never made.
        4 => state.store(Word::new(Phase::Replied, 9).bits(), Ordering::SeqCst),
        // A reply that is longer than a frame.
        _ => {
            attacker.word(0, wire::BYTES).store(1 << 20, Ordering::SeqCst);
            state.store(Word::new(Phase::Replied, 1).bits(), Ordering::SeqCst);
        }
    }
    attacker.ring();
    stay();
}

#[test]
fn entry_of_the_bad_server() {
    if let Some((role, path)) = role() {
        bad_server(role.parse().unwrap(), &path);
    }
}

#[test]
fn clients_get_an_error_from_servers_that_end_or_break_the_protocol() {
    under_watchdog("clients_get_an_error_from_servers_that_end_or_break_the_protocol", || {
        let expected = [
            Error::Closed,
            Error::Closed,
            Error::Protocol,
            Error::Closed,
            Error::Protocol,
            Error::Protocol,
            Error::Closed,
        ];
        for (step, expected) in expected.into_iter().enumerate() {
            let meeting = SocketFolder::new(&format!("server-{step}"));
            let _server = meeting.start("entry_of_the_bad_server", &step.to_string());
            let path = meeting.path();
            let outcome = Runtime::builder().virtual_processors(1).build().run(|| {
                let client = Client::connect(&path)?;
                spawn(move || client.call(0, &[1])).join().unwrap()
            });
            let error = outcome.unwrap().unwrap_err();
            // The connection was lost during a system call: the error is the host's.
            let closed =
                matches!(error, Error::Closed | Error::Host(_)) && expected == Error::Closed;
            assert!(error == expected || closed, "step {step}: {error:?}");
        }
    });
}
