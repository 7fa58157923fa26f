//! Workers: at each frame of a connection, a microprocess waits for calls and serves them.
//!
//! Workers start ahead of need. A connection begins with one worker for each virtual processor.
//! When a worker gets its first call, more are started so that as many again are idle. An idle
//! client costs a few parked microprocesses; a busy one as many as it makes concurrent calls, at
//! most its credits. Worker *n* is pinned to virtual processor *n* modulo their number, so a client
//! that chooses a frame chooses where the call is served.
//!
//! **Invariant:** every frame below `workers` has a worker as long as the connection is open. A
//! worker that is killed answers its caller and starts its successor.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;

use kyocho_microprocess::bell::{self, Post, Words};
use kyocho_microprocess::{Builder, Killed, Microprocess, Priority, concurrency};
use kyocho_sys::prim::atomic::Ordering;

use super::connection::Connection;
use crate::error::Failure;
use crate::frame::{AWAIT_REGION, INLINE_BYTES_MAX, RESERVED_METHODS_MIN};
use crate::protocol::{Arrival, Phase, Word, after, server_sees};
use crate::service::Call;
use crate::state;

/// Starts workers until `connection` has `count`, or as many as it has credits. Closes the
/// connection if the host refuses one.
pub(super) fn start_workers(connection: &Arc<Connection>, count: usize) {
    let most = count.min(connection.credits);
    let next = |started: usize| (started < most).then_some(started + 1);
    let workers = &connection.workers;
    while let Ok(index) = workers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next) {
        if let Err(error) = Worker::start(connection, index, 0) {
            tracing::warn!(%error, "no worker for a client of a gate");
            return connection.liveness.close();
        }
    }
}

/// Serves the calls of one frame.
struct Worker {
    connection: Arc<Connection>,
    index: usize,
    /// The number of the last call that was answered.
    answered: u32,
    /// A call has been taken and not been answered yet.
    serving: bool,
}

impl Worker {
    fn start(connection: &Arc<Connection>, index: usize, answered: u32) -> std::io::Result<()> {
        let connection = Arc::clone(connection);
        let builder = Builder::new().name("gate worker").priority(Priority::NORMAL);
        let worker = builder.spawn(move || {
            Microprocess::current().set_virtual_processor(Some(index % concurrency()));
            Self { connection, index, answered, serving: false }.work();
        })?;
        drop(worker);
        Ok(())
    }

    fn work(mut self) {
        let connection = Arc::clone(&self.connection);
        let frame = connection.frame(self.index);
        // A wait announces the doorbell, too. But if a call is always there already, no wait
        // happens.
        if let Ok(bell) = bell::own() {
            bell::announce(frame.server_bell_word(), bell);
        }
        let words = Words {
            word: &frame.state,
            level: &frame.level,
            over: connection.liveness.closed_word(),
            announced: frame.server_bell_word(),
        };
        Post::keep(&words, &connection.client, |post| self.serve_calls(post));
        connection.liveness.close();
    }

    /// Serves calls until the connection is closed or the client breaks the protocol.
    fn serve_calls(&mut self, post: &Post<'_>) {
        let mut request = Vec::with_capacity(INLINE_BYTES_MAX);
        while let Some(word) = self.await_call(post) {
            let result = match server_sees(self.answered, word) {
                Arrival::Nothing => continue,
                Arrival::Broken => break,
                Arrival::Call => self.serve(&mut request),
                Arrival::Abandoned => Some(Err(Failure::Panicked)),
            };
            let Some(result) = result else { break };
            self.answer(result);
        }
    }

    /// Waits until the client changes the state word; `None` once the connection is closed.
    fn await_call(&self, post: &Post<'_>) -> Option<Word> {
        let frame = self.connection.frame(self.index);
        let expected = Word::new(Phase::Replied, self.answered).bits();
        let word = post.wait(expected, frame.client_bell());
        // A call that arrives after the close is not served, even if its client does not know of it
        // yet.
        word.ok()?.filter(|_| !self.connection.liveness.is_closed()).map(Word::alleged)
    }

    /// Copies the request, checks it once and serves it; `None` if it breaks the protocol.
    fn serve(&mut self, request: &mut Vec<u8>) -> Option<Result<Vec<u8>, Failure>> {
        self.serving = true;
        if self.answered == 0 {
            // This frame's first call: the client may be making more concurrent calls than before.
            start_workers(&self.connection, self.index + 1 + concurrency());
        }
        let frame = self.connection.frame(self.index);
        let head = frame.head();
        if head.bytes as usize > INLINE_BYTES_MAX {
            return None;
        }
        request.resize(head.bytes as usize, 0);
        frame.get(request);
        if head.method >= RESERVED_METHODS_MIN {
            return Some(self.serve_reserved(head.method, head.region.map(|(number, ..)| number)));
        }
        let Some(object) = self.connection.objects.get(head.handle) else {
            return Some(Err(Failure::NoHandle));
        };
        let Connection { peer, objects, regions, .. } = &*self.connection;
        let call = Call::new(*peer, objects, regions, head, request);
        let served = catch_unwind(AssertUnwindSafe(|| object.serve(&call)));
        Some(served.unwrap_or_else(failure_of_panic))
    }

    fn serve_reserved(&self, method: u32, region: Option<u32>) -> Result<Vec<u8>, Failure> {
        if method != AWAIT_REGION {
            return Err(Failure::NoMethod);
        }
        let regions = &self.connection.regions;
        let is_attached = region.is_some_and(|number| regions.await_attached(number));
        if is_attached { Ok(Vec::new()) } else { Err(Failure::NoRegion) }
    }

    /// Writes the result to the frame and returns the frame to the client.
    fn answer(&mut self, result: Result<Vec<u8>, Failure>) {
        let frame = self.connection.frame(self.index);
        let result = match result {
            Ok(reply) if reply.len() > INLINE_BYTES_MAX => Err(Failure::ReplyTooLong),
            result => result,
        };
        match result {
            Ok(reply) => {
                frame.put(&reply);
                frame.put_result(0, reply.len() as u32);
            }
            Err(failure) => frame.put_result(failure.number(), 0),
        }
        self.answered = after(self.answered);
        self.serving = false;
        state::answer(&frame.state, self.answered);
        self.connection.client.ring(frame.client_bell());
        bell::end_donations();
    }
}

/// The failure that a panic of a service becomes. If the microprocess was killed, its worker
/// unwinds, too.
fn failure_of_panic(payload: Box<dyn Any + Send>) -> Result<Vec<u8>, Failure> {
    if payload.is::<Killed>() {
        resume_unwind(payload);
    }
    Err(Failure::Panicked)
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.connection.liveness.is_closed() {
            return;
        }
        // The worker was killed: its caller gets an answer, and the frame another worker.
        if self.serving {
            self.answer(Err(Failure::Panicked));
        }
        if Self::start(&self.connection, self.index, self.answered).is_err() {
            self.connection.liveness.close();
        }
    }
}
