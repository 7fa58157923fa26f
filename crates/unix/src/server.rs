//! The server: receives what clients ask, has it answered by a microprocess each, and holds what an instance consists of.
//!
//! ```text
//!   client thread ── call ──► host's filter ──► listener ──► receiver ──► microprocess: `Server::serve` ──► answer
//! ```
//!
//! A request that sleeps in the host (opening a named pipe, a slow disk) costs a stack: the runtime hands its virtual processor on.
//!
//! **Invariant:** a request's argument words come from the host and cannot change; memory is copied once, then checked, then used.

use crate::addresses::Names;
use crate::admission::Admission;
use crate::client::Client;
use crate::exec::{Diverted, Program};
use crate::instance::Personality;
use crate::ipc::Objects;
use crate::memory_files::MemoryFiles;
use crate::mounts::Mounts;
use crate::names;
use crate::policy::Limited;
use crate::running::Running;
use crate::sites::Sites;
use crate::trace::Trace;
use core::panic::AssertUnwindSafe;
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::{Inherited, Listener, Notification};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the network of an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// There is none but between its own processes.
    None,
    /// The host's loopback interface.
    Loopback,
    /// The host's.
    #[default]
    Host,
}

/// One instance.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) mounts: Mounts,
    pub(crate) network: Network,
    pub(crate) personality: Personality,
    pub(crate) trace: Option<Trace>,
    /// What has a limit that this server keeps.
    pub(crate) limited: Limited,
    pub(crate) admission: Admission,
    pub(crate) objects: Objects,
    pub(crate) memory_files: MemoryFiles,
    pub(crate) running: Running,
    /// Held while a socket is bound to its interface again.
    pub(crate) rebinding: kyocho_microprocess::sync::Mutex<()>,
    /// Which calls of clients are rewritten, where any are.
    pub(crate) sites: Option<Sites>,
    state: Mutex<State>,
}

/// What changes.
#[derive(Debug)]
pub(crate) struct State {
    /// Programs that processes are about to become, by process.
    pub(crate) loading: HashMap<u32, Program>,
    /// Threads that are diverted, by number.
    pub(crate) diverted: HashMap<u32, Diverted>,
    /// Pseudo-terminals that clients made, and those the instance began with, by number: their nodes.
    pub(crate) terminals: HashMap<u32, OwnedFd>,
    /// What its sockets are called.
    pub(crate) sockets: Names,
    /// Numbers that were asked for and are not there, and of whose: how often.
    missing: BTreeMap<(Personality, u32), u64>,
}

/// How a request ends.
#[derive(Debug)]
pub(crate) enum Answer {
    /// With a value.
    Value(i64),
    /// With a descriptor of the client's.
    Descriptor(OwnedFd, Inherited),
    /// The host does it after all: its argument words alone say that it is harmless.
    LetThrough,
    /// It was ended already.
    Given,
}

/// What a call ends with when it has nothing to say.
pub(crate) const DONE: Result<Answer, Errno> = Ok(Answer::Value(0));

/// One call of a client.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Server,
    pub(crate) listener: &'a Listener,
    pub(crate) client: Client<'a>,
    pub(crate) asked: Notification,
}

/// The host's error as ours.
pub(crate) fn host(errno: rustix::io::Errno) -> Errno {
    Errno::new(errno.raw_os_error())
}

impl Server {
    pub(crate) fn new(
        mounts: Mounts,
        network: Network,
        personality: Personality,
        trace: Option<Trace>,
        admission: Admission,
        objects: Objects,
        memory_files: MemoryFiles,
    ) -> Self {
        let limited = Limited { tasks: admission.has_limit(), memory: memory_files.have_limit() };
        let state = State {
            loading: HashMap::new(),
            diverted: HashMap::new(),
            terminals: HashMap::new(),
            sockets: Names::new(),
            missing: BTreeMap::new(),
        };
        // Programs of FreeBSD trap into their library; their calls look different.
        let sites = (personality == Personality::Linux).then(|| Sites::new(trace.is_some()));
        let state = Mutex::new(state);
        Self {
            mounts,
            network,
            personality,
            trace,
            limited,
            admission,
            objects,
            memory_files,
            running: Running::default(),
            rebinding: kyocho_microprocess::sync::Mutex::new(()),
            sites,
            state,
        }
    }

    /// The state. Held for a few instructions, never across a call that sleeps or suspends.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one call. A client that is gone by now needs no answer, so errors of answering are none of ours.
    pub(crate) fn serve(&self, listener: &Listener, asked: Notification) {
        let client = Client::of(listener, &asked);
        let request = Request { server: self, listener, client, asked };
        let answer = contained(|| match &self.trace {
            None => request.dispatch(),
            Some(trace) => request.dispatch_shown(trace),
        });
        let id = asked.id;
        let _ = match answer {
            Ok(Answer::Value(value)) => listener.answer(id, Ok(value)),
            // Ours is closed before the caller goes on, which wants this core.
            Ok(Answer::Descriptor(file, inherited)) => {
                let given = listener.give(id, file.as_fd(), inherited);
                drop(file);
                listener.answer(id, given)
            }
            Ok(Answer::LetThrough) => listener.let_through(id),
            Ok(Answer::Given) => Ok(()),
            Err(errno) => listener.answer(id, Err(errno)),
        };
    }

    /// The answer to a call that nobody implements; it is counted, and named in the log once.
    pub(crate) fn missing(&self, of: Personality, number: u32) -> Result<Answer, Errno> {
        /// As many as there are calls, and some that there are not.
        const NAMED_MAX: usize = 1024;
        let mut state = self.state();
        if state.missing.len() < NAMED_MAX || state.missing.contains_key(&(of, number)) {
            let times = state.missing.entry((of, number)).or_default();
            *times += 1;
            if *times == 1 {
                let name = names::of(of, number).unwrap_or("unknown");
                tracing::warn!(number, name, "a system call that is not there");
            }
        }
        Err(Errno::NOSYS)
    }

    /// The calls that were asked for and are not there, and how often, where there are any: a line.
    pub(crate) fn missing_line(&self) -> Option<String> {
        let state = self.state();
        let calls =
            state.missing.iter().map(|(&(of, number), times)| match names::of(of, number) {
                Some(name) => format!("{name} ({times})"),
                None => format!("number {number} ({times})"),
            });
        let calls: Vec<String> = calls.collect();
        let line = || format!("kyocho unix: calls that are not there: {}\n", calls.join(", "));
        (!calls.is_empty()).then(line)
    }
}

/// What `dispatch` answers. Where it panics, which is a defect of this server and was said on standard error by then, its caller gets an error instead
/// of waiting for ever.
fn contained(dispatch: impl FnOnce() -> Result<Answer, Errno>) -> Result<Answer, Errno> {
    catch_unwind(AssertUnwindSafe(dispatch)).unwrap_or(Err(Errno::new(libc::EIO)))
}

impl Request<'_> {
    /// Argument word `index`.
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.asked.arguments[index]
    }

    /// Argument `index` as the host reads an `int`.
    pub(crate) fn int(&self, index: usize) -> i32 {
        self.asked.arguments[index] as i32
    }

    /// The path that argument `index` points to.
    pub(crate) fn path(&self, index: usize) -> Result<Vec<u8>, Errno> {
        self.client.path(self.word(index))
    }

    /// The canonical virtual path of directory `number`.
    pub(crate) fn base_of(&self, number: i32) -> Result<Vec<u8>, Errno> {
        let shown = self.client.directory(number)?;
        self.server.mounts.to_virtual(&shown).ok_or(crate::walk::NOT_FOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, contained};
    use kyocho_sys::error::Errno;

    #[test]
    fn a_defect_of_the_server_is_an_error_of_the_call() {
        let broken = contained(|| std::panic::resume_unwind(Box::new("on purpose")));
        assert_eq!(broken.unwrap_err(), Errno::new(libc::EIO));
        assert!(matches!(contained(|| Ok(Answer::Value(7))), Ok(Answer::Value(7))));
        assert_eq!(contained(|| Err(Errno::PERM)).unwrap_err(), Errno::PERM);
    }
}
