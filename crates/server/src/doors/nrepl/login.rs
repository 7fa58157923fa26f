//! Editors that connect by TCP. Until a client has sent the token it has no session, no account and
//! little memory, and its time is limited.

use super::answers::{Answers, refuse};
use super::bencode::Decoder;
use super::request::Request;
use super::token::Token;
use crate::wire::Wire;
use core::time::Duration;
use kyocho_microprocess::net::TcpStream;
use kyocho_sys::clock::monotonic_ns;
use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const READ_BYTES: usize = 16 * 1024;
/// Longest message of a client that is not identified.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// Most unidentified clients at a time. One more closes the oldest connection.
const UNIDENTIFIED_MAX: usize = 64;
/// Time for sending the token.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The unidentified clients, in the order of their connections.
#[derive(Default)]
pub(crate) struct UnidentifiedClients(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next: u64,
    wires: VecDeque<(u64, Wire)>,
}

/// One of them, until this is dropped.
struct UnidentifiedClient {
    clients: Arc<UnidentifiedClients>,
    number: u64,
}

impl UnidentifiedClients {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client.
    fn add(self: &Arc<Self>, wire: &Wire) -> UnidentifiedClient {
        let mut waiting = self.lock();
        let is_full = waiting.wires.len() >= UNIDENTIFIED_MAX;
        let first = is_full.then(|| waiting.wires.pop_front()).flatten();
        let number = waiting.next;
        waiting.next += 1;
        waiting.wires.push_back((number, wire.clone()));
        // Closing waits for a write in progress, so the lock is released first.
        drop(waiting);
        if let Some((_, first)) = first {
            first.hang_up();
        }
        UnidentifiedClient { clients: Arc::clone(self), number }
    }
}

impl Drop for UnidentifiedClient {
    fn drop(&mut self) {
        let number = self.number;
        self.clients.lock().wires.retain(|(other, _)| *other != number);
    }
}

/// Waits for the message with the token. Returns its request and the bytes after it, or `None` if
/// the connection was closed or must be.
pub(crate) fn wait(
    clients: &Arc<UnidentifiedClients>,
    token: &Token,
    stream: &TcpStream,
    wire: &Wire,
) -> Option<(Decoder, Request)> {
    let _client = clients.add(wire);
    let deadline_ns = monotonic_ns() + LOGIN_TIMEOUT.as_nanos() as u64;
    let (mut decoder, mut buffer) = (Decoder::unidentified(MESSAGE_BYTES_MAX), vec![0; READ_BYTES]);
    let message = loop {
        let left = deadline_ns.checked_sub(monotonic_ns()).filter(|&left| left > 0)?;
        stream.set_read_timeout(Some(Duration::from_nanos(left))).ok()?;
        let count = (&mut &*stream).read(&mut buffer).ok().filter(|&count| count > 0)?;
        let next = decoder.feed(&buffer[..count]).and_then(|()| decoder.next());
        match next {
            Ok(None) => {}
            Ok(Some(message)) => break Request::of(message),
            Err(reason) => break Err(reason),
        }
    };
    match message {
        Ok(request) if request.token().is_some_and(|presented| token.is(presented)) => {
            stream.set_read_timeout(None).ok()?;
            Some((decoder, request))
        }
        Ok(request) => {
            let reason = "the first message must have the server's `token` (see `kyocho serve`)";
            let entries = [("err", reason.into())];
            // The client may have disconnected; then the reason is not needed.
            let _ = Answers::new(wire.clone()).done(
                &request.heading(),
                entries,
                &["error", "unauthorized"],
            );
            wire.hang_up();
            None
        }
        Err(reason) => {
            refuse(wire.clone(), &reason);
            None
        }
    }
}
