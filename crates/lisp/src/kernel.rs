//! What all threads of a system share: heap, environments, sessions, services, counters.

pub(crate) mod calls;
pub(crate) mod environment;
pub(crate) mod safepoint;
pub(crate) mod service;
pub(crate) mod session;
pub(crate) mod system_objects;
pub(crate) mod ticket;
pub(crate) mod timeout;
pub(crate) mod wait;

use self::calls::Calls;
use self::safepoint::Threads;
use self::service::policy::Policies;
use self::service::{Collector, Shares, SystemCall, Watchdog};
use self::session::thread::LispThread;
use self::session::{LispSession, Ports};
use self::system_objects::SystemObjects;
use crate::options::Options;
use crate::report::Report;
use core::fmt;
use kyocho_heap::account::{Account, Bounds, Exceeded};
use kyocho_heap::heap::{Heap, Kind, Marker, Mutator, location};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_library::prelude;
use kyocho_library::session::ForbiddenAddresses;
use kyocho_microprocess::Microprocess;
use kyocho_syntax::environment::Environment;
use kyocho_syntax::world::World;
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use kyocho_vm::compiler::inline::Builtins;
use kyocho_vm::machine::{Hooks, condition, control};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Maximum number of threads in the report of a deadlock.
const DEADLOCK_LINES_MAX: usize = 20;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all threads of a system share.
pub(crate) struct Kernel {
    pub(crate) heap: Arc<Heap>,
    pub(crate) builtins: Builtins,
    pub(crate) hooks: Arc<Hooks>,
    /// Raised when there is no memory for a new condition.
    pub(crate) out_of_memory: Value,
    pub(crate) options: Options,
    pub(crate) threads: Threads,
    pub(crate) system_call: SystemCall,
    pub(crate) collector: Collector,
    pub(crate) shares: Shares,
    pub(crate) policies: Policies,
    pub(crate) watchdog: Watchdog,
    pub(crate) calls: Calls,
    /// Addresses to which no session may connect.
    pub(crate) forbidden_addresses: Arc<ForbiddenAddresses>,
    /// The process's own session.
    pub(crate) base: Arc<LispSession>,
    /// All sessions that have not ended, by number.
    sessions: Mutex<BTreeMap<u64, Arc<LispSession>>>,
    next_session: AtomicU64,
    system_environment: Arc<Environment>,
    /// Objects that images refer to by number; set after boot.
    system_objects: OnceLock<SystemObjects>,
    /// Number of locations made at boot.
    system_globals: OnceLock<usize>,
    /// For tests: how many times threads go outside Lisp to wait from one collection to the next.
    /// For threads that compute there, 64 times as many. 0 for no such collections.
    pub(crate) torture_outside: AtomicU64,
    /// For torture: how often threads went outside to wait, and to compute.
    went_outside: [AtomicU64; 2],
    /// The mutator for code outside Lisp threads; used under `Threads::as_outsider`.
    pub(crate) mutator: Mutex<Mutator>,
}

/// The sessions and threads of one account.
struct Part {
    account: Arc<Account>,
    sessions: Vec<Arc<LispSession>>,
    threads: Vec<Arc<LispThread>>,
}

impl Part {
    /// Marks their roots.
    fn mark(&self, marker: &mut Marker) {
        self.sessions.iter().for_each(|session| session.trace(marker));
        self.threads.iter().for_each(|thread| thread.trace(marker));
    }

    fn trace(self, marker: &mut Marker) {
        let before = marker.known_bytes();
        self.mark(marker);
        marker.run();
        self.account.settle(marker.known_bytes() - before, usize::MAX);
    }
}

/// The roots of one account, as recorded by a concurrent collection.
pub(crate) struct Roots {
    account: Arc<Account>,
    pub(crate) values: Vec<Value>,
    /// Bytes that had been taken then.
    taken_bytes: usize,
    /// Bytes outside the heap that the roots hold.
    held_bytes: usize,
    /// Bytes known before the roots are marked.
    begin_bytes: Option<usize>,
    /// Bytes known after everything reachable from them has been marked.
    end_bytes: Option<usize>,
}

impl Roots {
    /// Called before the roots are marked, with the bytes known so far.
    pub(crate) fn begin(&mut self, known_bytes: usize) {
        self.begin_bytes.get_or_insert(known_bytes);
    }

    /// Called after everything reachable from the roots has been marked.
    pub(crate) fn end(&mut self, known_bytes: usize) {
        self.end_bytes = Some(known_bytes);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end_bytes.is_some()
    }

    fn live_bytes(&self) -> usize {
        let grown = |end| end - self.begin_bytes.unwrap_or(end);
        self.held_bytes + self.end_bytes.map_or(0, grown)
    }
}

/// How a program or an evaluation ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// With these values.
    Values(Vec<String>),
    /// With an error.
    Report(Report),
    /// By `exit`, with this code.
    Exit(i32),
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("heap", &self.heap).finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel whose system environment contains the primitives and control procedures that
    /// the machine has when this is called.
    pub(crate) fn new(heap: Arc<Heap>, options: Options, mut mutator: Mutator) -> Result<Self> {
        #[cfg(test)]
        kyocho_heap::heap::barrier::bound_buffers(2);
        let world = World::with_libraries(prelude::LIBRARIES);
        let system_environment = Arc::clone(world.system());
        let mut builtins = Builtins::default();
        let define = |name: &str, index: usize| -> Result<_> {
            let global = world.system().define_name(name);
            let object = mutator.object(Kind::Primitive, 0, 1)?;
            object.set_payload_word(0, index as u64);
            location::set(&global, object);
            Ok(global)
        };
        for (index, primitive) in control::primitives().iter().enumerate() {
            let global = define(primitive.name, index)?;
            builtins.declare(&global, primitive);
        }
        for (index, procedure) in control::procedures() {
            builtins.forget(&*define(procedure.name, index)?);
        }
        let hooks = Hooks::default();
        let system = |name: &str| world.runtime(name);
        let _ = hooks.raise.set(system("%raise"));
        let _ = hooks.rewind.set(system("%rewind"));
        let _ = hooks.terminate.set(system("%unwind-terminated"));
        let out_of_memory =
            condition::make(&mut mutator, condition::OUT_OF_MEMORY, "out of memory", &[])
                .ok_or_else(Raise::out_of_memory)?;
        let account = Account::new("the process", Bounds::NONE);
        let policies = Policies::default();
        let forbidden_addresses = Arc::<ForbiddenAddresses>::default();
        let base = LispSession::new(0, account, world, None, &policies.notes, &forbidden_addresses)
            .map_err(|error| Raise::error(error.to_string(), Vec::new()))?;
        let base = Arc::new(base);
        // Boot has set the option to a number.
        let virtual_processors = options.virtual_processors.unwrap_or(1);
        let torture_outside = options.torture_outside;
        Ok(Self {
            heap,
            builtins,
            hooks: Arc::new(hooks),
            out_of_memory,
            options,
            threads: Threads::default(),
            system_call: SystemCall::default(),
            collector: Collector::new(virtual_processors),
            shares: Shares::new(virtual_processors),
            policies,
            watchdog: Watchdog::default(),
            calls: Calls::default(),
            forbidden_addresses,
            sessions: Mutex::new(BTreeMap::from([(0, Arc::clone(&base))])),
            base,
            next_session: AtomicU64::new(1),
            system_environment,
            system_objects: OnceLock::new(),
            system_globals: OnceLock::new(),
            torture_outside: AtomicU64::new(torture_outside),
            went_outside: Default::default(),
            mutator: Mutex::new(mutator),
        })
    }

    /// Marks all roots: first the system's, then those of each account's sessions and threads.
    /// Records the bytes marked for an account as its live bytes.
    pub(crate) fn trace(&self, threads: &[Arc<LispThread>], marker: &mut Marker) {
        marker.mark(self.out_of_memory);
        self.parts(threads).into_iter().for_each(|part| part.trace(marker));
    }

    /// Records all roots that [`trace`](Self::trace) would mark, by account.
    pub(crate) fn note_roots(
        &self,
        threads: &[Arc<LispThread>],
        marker: &mut Marker,
    ) -> Vec<Roots> {
        marker.mark(self.out_of_memory);
        let note = |part: Part| {
            part.mark(marker);
            let (values, held_bytes) = marker.take_noted();
            let taken_bytes = part.account.usage().taken_bytes;
            let (begin_bytes, end_bytes) = (None, None);
            Roots { account: part.account, values, taken_bytes, held_bytes, begin_bytes, end_bytes }
        };
        let roots = self.parts(threads).into_iter().map(note).collect();
        marker.note_no_more();
        roots
    }

    /// Records the live bytes of each account after a concurrent collection. An account without a
    /// session has none.
    pub(crate) fn settle(&self, parts: Vec<Roots>) {
        let sessions = lock(&self.sessions);
        for part in parts {
            let has_session =
                |session: &Arc<LispSession>| Arc::ptr_eq(&session.account, &part.account);
            if sessions.values().any(has_session) {
                part.account.settle(part.live_bytes(), part.taken_bytes);
            }
        }
    }

    fn parts(&self, threads: &[Arc<LispThread>]) -> Vec<Part> {
        let sessions: Vec<_> = lock(&self.sessions).values().cloned().collect();
        let mut parts: Vec<Part> = Vec::new();
        let mut places = HashMap::new();
        for session in sessions {
            let place = *places.entry(Arc::as_ptr(&session.account)).or_insert(parts.len());
            if place == parts.len() {
                let account = Arc::clone(&session.account);
                parts.push(Part { account, sessions: vec![], threads: vec![] });
            }
            parts[place].sessions.push(session);
        }
        for thread in threads {
            // A session is removed only after its threads have ended.
            if let Some(&place) = places.get(&Arc::as_ptr(&thread.session.account)) {
                parts[place].threads.push(Arc::clone(thread));
            }
        }
        parts
    }

    /// Adds a session.
    ///
    /// # Errors
    /// The account's bound on sessions is reached.
    pub(crate) fn open(
        &self,
        account: &Arc<Account>,
        ports: Ports,
    ) -> core::result::Result<Arc<LispSession>, Exceeded> {
        let id = self.next_session.fetch_add(1, Ordering::Relaxed);
        let world = lock(&self.base.world).for_user(Arc::<Account>::clone(account));
        let session = LispSession::new(
            id,
            Arc::clone(account),
            world,
            Some(ports),
            &self.policies.notes,
            &self.forbidden_addresses,
        )?;
        let session = Arc::new(session);
        lock(&self.sessions).insert(id, Arc::clone(&session));
        Ok(session)
    }

    /// The virtual times of users' accounts with active threads: see
    /// [`share`](kyocho_heap::account::share).
    pub(crate) fn active_virtual_times_ns(&self) -> Vec<u64> {
        let sessions = lock(&self.sessions);
        let active = sessions.values().filter(|session| session.id != 0 && session.is_active());
        let accounts: HashMap<_, _> =
            active.map(|session| (Arc::as_ptr(&session.account), &session.account)).collect();
        accounts.into_values().map(|account| account.virtual_ns()).collect()
    }

    /// Removes a session that has ended.
    pub(crate) fn forget(&self, id: u64) {
        let mut sessions = lock(&self.sessions);
        let Some(ended) = sessions.remove(&id) else { return };
        if !sessions.values().any(|session| Arc::ptr_eq(&session.account, &ended.account)) {
            // Everything that it had is garbage. The collector only measures accounts with
            // sessions.
            ended.account.settle(0, usize::MAX);
        }
    }

    /// Called after boot: the locations made so far belong to the system.
    pub(crate) fn note_booted(&self) {
        let _ = self.system_globals.set(self.base.globals().system().len());
    }

    /// The objects that every system of this build has, by number. Called by a Lisp thread, within
    /// one step.
    pub(crate) fn system_objects(&self) -> &SystemObjects {
        self.system_objects.get_or_init(|| {
            let mut globals = self.base.globals().system();
            globals.truncate(self.system_globals.get().copied().unwrap_or(0));
            // The session's world may be locked by the caller, but every world has the same system
            // environment.
            SystemObjects::of(&self.system_environment, globals)
        })
    }

    /// The value of a procedure of the system.
    pub(crate) fn procedure(&self, name: &str) -> Value {
        location::value(&lock(&self.base.world).runtime(name))
    }

    /// Registers the calling thread to be unparked after the next collection.
    pub(crate) fn await_collection(&self) {
        self.threads.hold(Microprocess::current());
        self.collector.request();
    }

    /// Whether torture requires a collection now, for a thread that goes outside to wait or to
    /// compute.
    pub(crate) fn is_torture_due(&self, computes: bool) -> bool {
        let every = self.torture_outside.load(Ordering::Relaxed);
        let (times, every) = match computes {
            false => (&self.went_outside[0], every),
            true => (&self.went_outside[1], 64 * every),
        };
        every > 0 && times.fetch_add(1, Ordering::Relaxed).is_multiple_of(every)
    }

    /// Whether the last collection left so little memory, in the thread's account or in the heap,
    /// that only small requests can be served.
    pub(crate) fn is_exhausted(&self, thread: &LispThread) -> bool {
        thread.session.account.is_exhausted() || self.is_full()
    }

    /// Whether the heap itself is exhausted.
    fn is_full(&self) -> bool {
        let limits = self.heap.limits();
        self.heap.statistics().last.held_bytes + limits.reserve_bytes() > limits.bytes_max
    }

    /// Whether this thread should get the out-of-memory error. It should if no thread of its
    /// account has taken more cells since its own last error, and no other account has more live
    /// memory. Other accounts do not matter if only this account has reached its bound.
    pub(crate) fn is_greediest(&self, thread: &LispThread) -> bool {
        let account = &thread.session.account;
        let (live, taken) = (account.live_bytes(), thread.taken_since_error());
        let is_own_shortage = account.is_bounded() && !self.is_full();
        self.threads.started().iter().all(|other| {
            if Arc::ptr_eq(&other.session.account, account) {
                return other.taken_since_error() <= taken;
            }
            is_own_shortage || other.session.account.live_bytes() <= live
        })
    }

    /// A description of a deadlock: each thread and what it waits for.
    pub(crate) fn describe_deadlock(&self, session: &LispSession) -> String {
        let mut text = "deadlock: every thread waits for another".to_owned();
        let started = self.threads.started();
        let of_session = started.iter().filter(|thread| thread.session.id == session.id);
        for thread in of_session.take(DEADLOCK_LINES_MAX) {
            let what = lock(&thread.inner).waits_for.unwrap_or("nothing");
            text.push_str(&format!("\n    thread {} waits for {what}", thread.name()));
        }
        text
    }
}
