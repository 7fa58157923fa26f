//! What the reader of a connection and the microprocess of a session share.

use super::answers::{Answers, Heading};
use super::request::Request;
use crate::evaluation::Interrupt;
use kyocho_lisp::system::WorldCopy;
use kyocho_microprocess::channel::{Receiver, Sender};
use kyocho_sys::prim::atomic::AtomicBool;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What names are in: there are no namespaces.
pub(super) const NAMESPACE: &str = "kyocho";

/// What a session's microprocess is to do.
pub(super) enum Order {
    Serve(Request),
    /// Another session is to begin with a copy of its world.
    Copy(Sender<Result<WorldCopy, String>>),
}

/// What a session begins with.
pub(super) enum Beginning {
    /// Its user's world.
    Own,
    /// The copy of another's that comes; then the request that asked for it is answered.
    CopyOf(Receiver<Result<WorldCopy, String>>, Heading),
}

/// The request that is served in a session.
#[derive(Debug, Default)]
pub(super) struct State {
    current: Mutex<Option<Heading>>,
    pub(super) interrupt: Interrupt,
    /// `exit` has ended it; or there was no copy to begin with, it never was, and nobody knows its name.
    pub(super) is_over: AtomicBool,
}

impl State {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Heading>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What something in this session is said under: the request that is served, if any.
    pub(super) fn heading(&self, session: &str) -> Heading {
        let idle = || Heading { id: None, session: Some(session.to_owned()) };
        self.lock().clone().unwrap_or_else(idle)
    }
}

/// What a session writes, under the request that it is about.
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
