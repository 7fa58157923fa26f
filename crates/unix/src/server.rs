//! The server: one instance, and one call of a client.
//!
//! ```text
//!   client thread ── call ──► host's filter ──► listener ──► receiver
//!                                                               │ a microprocess for each call
//!                                          answer ◄── `Server::serve` (`calls/dispatch.rs`)
//! ```
//!
//! A request that sleeps in the host (opening a named pipe, a slow disk) keeps only a stack: the
//! runtime passes its virtual processor on.
//!
//! **Invariant:** the argument words of a request come from the host and cannot change. Memory is
//! copied once, then checked, then used.

use crate::clients::client::Client;
use crate::options::{Network, Personality};
use crate::policy::{Limited, names};
use crate::program::loading::{Diverted, Program};
use crate::program::running::Running;
use crate::program::sites::Sites;
use crate::state::addresses::Names;
use crate::state::admission::Admission;
use crate::state::memory_files::MemoryFiles;
use crate::state::mounts::Mounts;
use crate::state::objects::Objects;
use crate::state::trace::Trace;
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::{Inherited, Listener, Notification};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One instance.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) mounts: Mounts,
    pub(crate) network: Network,
    pub(crate) personality: Personality,
    pub(crate) trace: Option<Trace>,
    /// The resources that this server limits.
    pub(crate) limited: Limited,
    pub(crate) admission: Admission,
    pub(crate) objects: Objects,
    pub(crate) memory_files: MemoryFiles,
    pub(crate) running: Running,
    /// Locked while a socket is bound to its interface again.
    pub(crate) rebinding: kyocho_microprocess::sync::Mutex<()>,
    /// The call sites that are rewritten in clients; `None` if none are.
    pub(crate) sites: Option<Sites>,
    state: Mutex<State>,
}

/// The part that changes.
#[derive(Debug)]
pub(crate) struct State {
    /// The programs that processes are about to become, by process.
    pub(crate) loading: HashMap<u32, Program>,
    /// Diverted threads, by number.
    pub(crate) diverted: HashMap<u32, Diverted>,
    /// The nodes of pseudo-terminals, by number: those that clients opened, and those that the
    /// instance began with.
    pub(crate) terminals: HashMap<u32, OwnedFd>,
    /// The names of its sockets.
    pub(crate) sockets: Names,
    /// How often each call that is not implemented was made, by system and number.
    missing: BTreeMap<(Personality, u32), u64>,
}

/// How a request is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// With a value.
    Value(i64),
    /// With the number of this descriptor in the client.
    Descriptor(OwnedFd, Inherited),
    /// The host does the call after all. Its argument words alone show that it is harmless.
    LetThrough,
    /// It has been answered already.
    Given,
}

/// The answer of a call that returns nothing.
pub(crate) const DONE: Result<Answer, Errno> = Ok(Answer::Value(0));

/// One call of a client.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Server,
    pub(crate) listener: &'a Listener,
    pub(crate) client: Client<'a>,
    pub(crate) asked: Notification,
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
        // Programs of FreeBSD trap into their library; their call sites look different.
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

    /// The state. The lock is held for a few instructions or short calls of the host, never across
    /// a call that sleeps or suspends.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a call that is not implemented. Counts it, and writes it to the log the first time.
    pub(crate) fn missing(&self, of: Personality, number: u32) -> Result<Answer, Errno> {
        /// All numbers that exist, and some that do not.
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

    /// One line that lists the calls that are not implemented and how often each was made; `None`
    /// if there were none.
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
        let host_path = self.client.directory(number)?;
        self.server.mounts.to_virtual(&host_path).ok_or(crate::errors::NOT_FOUND)
    }
}
