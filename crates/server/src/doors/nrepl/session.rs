//! What the reader of a connection and the microprocess of a session share.

use super::answers::{Answers, Heading};
use super::request::Request;
use crate::evaluation::Interrupt;
use kyocho_lisp::system::WorldCopy;
use kyocho_microprocess::channel::{Receiver, Sender};
use kyocho_sys::prim::atomic::AtomicBool;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The namespace that answers name. Scheme has none.
pub(super) const NAMESPACE: &str = "kyocho";

/// An order to a session's microprocess.
pub(super) enum Order {
    Serve(Request),
    /// Send a copy of the session's world, for another session to begin with.
    Copy(Sender<Result<WorldCopy, String>>),
}

/// The world with which a session begins.
pub(super) enum InitialWorld {
    /// The user's own world.
    Own,
    /// A copy of another session's world, which will be received. Then the request is answered.
    CopyOf(Receiver<Result<WorldCopy, String>>, Heading),
}

/// State that the reader and the session's microprocess share.
#[derive(Debug, Default)]
pub(super) struct State {
    current: Mutex<Option<Heading>>,
    pub(super) interrupt: Interrupt,
    /// Set if the session has ended by `exit`, or if it never began because no copy of a world
    /// could be made.
    pub(super) is_over: AtomicBool,
}

impl State {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Heading>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts to repeat in messages of this session: those of the current request, if any.
    pub(super) fn heading(&self, session: &str) -> Heading {
        let idle = || Heading { id: None, session: Some(session.to_owned()) };
        self.lock().clone().unwrap_or_else(idle)
    }
}

/// A port of a session. What is written goes to the client, as an answer to the current request.
pub(super) struct Output {
    pub(super) answers: Answers,
    pub(super) state: Arc<State>,
    pub(super) session: String,
    /// `out` or `err`.
    pub(super) key: &'static str,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let heading = self.state.heading(&self.session);
        self.answers.write(&heading, self.key, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.answers.flush()
    }
}
