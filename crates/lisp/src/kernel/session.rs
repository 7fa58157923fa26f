//! A session as its threads see it: account, environments, output, and the current evaluation.
//!
//! ```text
//!   begin --> main thread runs the text --> finish --> reply
//!   end:  every thread is asked to terminate; after a grace period it is abandoned;
//!         then locations are cleared
//! ```
//!
//! The first session is the process's own. The prelude was loaded into its world. Every other
//! session has a world that shares only the system environment with it.

pub(crate) mod notes;
pub(crate) mod thread;

use crate::kernel::{Ended, Kernel, lock};
use core::fmt;
use core::time::Duration;
use kyocho_heap::account::{Account, Countable, Exceeded, Held};
use kyocho_heap::heap::{Marker, Mutator, location};
use kyocho_heap::raise;
use kyocho_heap::value::Value;
use kyocho_library::port::{Port, Role};
use kyocho_library::session::{ForbiddenAddresses, Surroundings, Variables};
use kyocho_microprocess::Microprocess;
use kyocho_syntax::datum::Span;
use kyocho_syntax::environment::Environment;
use kyocho_syntax::location::Globals;
use kyocho_syntax::world::World;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_vm::machine::resume::Failure;
use notes::Notes;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use thread::{LispThread, REQUEST_ABANDON, REQUEST_DEADLOCK, REQUEST_INTERRUPT};

/// How long the threads of a session that ends may run their `dynamic-wind` procedures.
const GRACE: Duration = Duration::from_millis(100);

/// Receives the result of an evaluation. It is called once, in the thread's last step, and must not
/// wait.
pub(crate) type Reply = Box<dyn FnOnce(Ended) + Send>;

/// A server that a session closes when it ends.
pub(crate) trait CloseAtEnd: Send + Sync {
    /// Stops serving, and ends the connections. The caller holds no lock.
    fn close(&self);
}

/// The initial ports of a session's threads: input, output, error.
pub(crate) type Ports = [Port; 3];

/// A session.
pub(crate) struct LispSession {
    /// Its number; 0 is the process's own.
    pub(crate) id: u64,
    pub(crate) account: Arc<Account>,
    pub(crate) world: Mutex<World>,
    globals: Arc<Globals>,
    /// `None`: those of the process.
    ports: Option<Ports>,
    /// The events for the scheduler's policy.
    pub(crate) notes: Arc<Notes>,
    /// The main thread of the current evaluation: of a program, or at a prompt.
    main: Mutex<Option<Arc<LispThread>>>,
    reply: Mutex<Option<Reply>>,
    /// The program has called `exit`, so errors of threads that end are not reported.
    exiting: AtomicBool,
    /// The session is ending: no thread may begin.
    ending: AtomicBool,
    /// The top-level form that runs: the position in a report if nothing better is known.
    form: Mutex<Option<Span>>,
    interaction: Mutex<Option<Arc<Environment>>>,
    /// Whether failures are kept for a debugger at the prompt.
    has_debugger: AtomicBool,
    failure: Mutex<Option<Failure>>,
    /// The state of the tools at the prompt; false until there is any.
    value: Mutex<Value>,
    /// The file that `(save-image)` writes.
    image: Mutex<Option<PathBuf>>,
    /// The environment of an image that was loaded.
    restored: Mutex<Option<Arc<Environment>>>,
    /// The environment of the running text.
    program: Mutex<Option<Arc<Environment>>>,
    /// Started threads that do not wait for another thread.
    active: AtomicUsize,
    /// Started threads.
    started: Mutex<usize>,
    emptied: Condvar,
    /// A copy of a world: this session's, for a requester; or the one that this session is to begin
    /// with.
    copy: Mutex<Option<Arc<[u8]>>>,
    /// Its environment variables and permissions, for the primitives of the library.
    pub(crate) surroundings: Surroundings,
    /// Servers of gates, which are closed with it.
    gate_servers: Mutex<Vec<Weak<dyn CloseAtEnd>>>,
    /// Its count among the sessions of its account.
    held: Mutex<Option<Held>>,
}

impl fmt::Debug for LispSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LispSession").field("id", &self.id).finish_non_exhaustive()
    }
}

impl LispSession {
    /// A session without threads.
    ///
    /// # Errors
    /// The account's bound on sessions is reached.
    pub(crate) fn new(
        id: u64,
        account: Arc<Account>,
        world: World,
        ports: Option<Ports>,
        notes: &Arc<Notes>,
        forbidden_addresses: &Arc<ForbiddenAddresses>,
    ) -> Result<Self, Exceeded> {
        let held = account.hold(Countable::Sessions)?;
        let variables = Variables::default();
        let surroundings = Surroundings {
            variables,
            forbidden_addresses: Arc::clone(forbidden_addresses),
            is_of_process: id == 0,
        };
        Ok(Self {
            id,
            account,
            globals: Arc::clone(world.globals()),
            world: Mutex::new(world),
            ports,
            notes: Arc::clone(notes),
            main: Mutex::new(None),
            reply: Mutex::new(None),
            exiting: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            form: Mutex::new(None),
            interaction: Mutex::new(None),
            has_debugger: AtomicBool::new(false),
            failure: Mutex::new(None),
            value: Mutex::new(Value::FALSE),
            image: Mutex::new(None),
            restored: Mutex::new(None),
            program: Mutex::new(None),
            active: AtomicUsize::new(0),
            started: Mutex::new(0),
            emptied: Condvar::new(),
            copy: Mutex::new(None),
            surroundings,
            gate_servers: Mutex::default(),
            held: Mutex::new(Some(held)),
        })
    }

    /// Registers a gate server, to be closed when the session ends.
    pub(crate) fn close_at_end(&self, server: Weak<dyn CloseAtEnd>) {
        let mut gate_servers = lock(&self.gate_servers);
        gate_servers.retain(|server| server.strong_count() > 0);
        gate_servers.push(server);
    }

    /// Marks the values of locations that its environments name, and the last failure.
    pub(crate) fn trace(&self, marker: &mut Marker) {
        if let Some(failure) = self.failure() {
            marker.mark(failure.continuation);
            marker.mark(failure.object);
        }
        marker.mark(self.value());
        location::for_each_root(&self.globals, |value| marker.mark(value));
        marker.hold(self.globals.held_bytes());
    }

    /// The result of `(interaction-environment)`.
    pub(crate) fn interaction(&self) -> Arc<Environment> {
        let mut interaction = lock(&self.interaction);
        let made = || lock(&self.world).interaction_environment();
        Arc::clone(interaction.get_or_insert_with(made))
    }

    pub(crate) fn set_interaction(&self, environment: &Arc<Environment>) {
        *lock(&self.interaction) = Some(Arc::clone(environment));
    }

    /// The environment of the running text.
    pub(crate) fn program(&self) -> Option<Arc<Environment>> {
        lock(&self.program).clone()
    }

    /// The file that `(save-image)` writes.
    pub(crate) fn image(&self) -> Option<PathBuf> {
        lock(&self.image).clone()
    }

    pub(crate) fn set_image(&self, path: &Path) {
        *lock(&self.image) = Some(path.to_path_buf());
    }

    /// Makes the environment of a loaded image the session's.
    pub(crate) fn enter_image(&self, environment: &Arc<Environment>) {
        self.set_interaction(environment);
        *lock(&self.restored) = Some(Arc::clone(environment));
    }

    /// The environment of the loaded image.
    pub(crate) fn restored(&self) -> Option<Arc<Environment>> {
        lock(&self.restored).clone()
    }

    pub(crate) fn set_copy(&self, contents: Option<Arc<[u8]>>) {
        *lock(&self.copy) = contents;
    }

    pub(crate) fn copy(&self) -> Option<Arc<[u8]>> {
        lock(&self.copy).clone()
    }

    /// All of its locations.
    pub(crate) fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The bound name that is closest in spelling to `name`.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'static str> {
        let system = Arc::clone(lock(&self.world).system());
        let program = lock(&self.program).clone();
        program.and_then(|program| program.nearest(name)).or_else(|| system.nearest(name))
    }

    /// The initial port of its threads for a role.
    pub(crate) fn port(&self, role: Role) -> Port {
        match &self.ports {
            Some(ports) => ports[role as usize].clone(),
            None => kyocho_library::port::of_process(role).clone(),
        }
    }

    /// The parameter list for a thread that begins here: bindings of the session's ports.
    pub(crate) fn parameters(&self, kernel: &Kernel, mutator: &mut Mutator) -> raise::Result {
        let mut bindings = Value::NIL;
        let names = ["current-input-port", "current-output-port", "current-error-port"];
        for (port, name) in self.ports.iter().flatten().zip(names) {
            let port = mutator.foreign(Box::new(port.clone()))?;
            let binding = mutator.cons(kernel.procedure(name), port)?;
            bindings = mutator.cons(binding, bindings)?;
        }
        Ok(bindings)
    }
}

/// The current evaluation.
impl LispSession {
    /// Begins an evaluation.
    pub(crate) fn begin(&self, reply: Reply) {
        self.exiting.store(false, Ordering::Relaxed);
        *lock(&self.reply) = Some(reply);
    }

    /// Sets the main thread of the evaluation.
    pub(crate) fn set_main(&self, main: &Arc<LispThread>) {
        *lock(&self.main) = Some(Arc::clone(main));
    }

    /// Sets the environment of the running text.
    pub(crate) fn set_program(&self, environment: &Arc<Environment>) {
        *lock(&self.program) = Some(Arc::clone(environment));
    }

    /// Ends the evaluation, because the main thread or the program has ended.
    pub(crate) fn finish(&self, ended: Ended) {
        *lock(&self.main) = None;
        let reply = lock(&self.reply).take();
        if let Some(reply) = reply {
            reply(ended);
        }
    }

    pub(crate) fn is_main(&self, thread: &Arc<LispThread>) -> bool {
        lock(&self.main).as_ref().is_some_and(|main| Arc::ptr_eq(main, thread))
    }

    pub(crate) fn note_exit(&self) {
        self.exiting.store(true, Ordering::Relaxed);
    }

    /// Whether errors of threads that end now are not reported.
    pub(crate) fn is_over(&self) -> bool {
        self.exiting.load(Ordering::Relaxed) || self.ending.load(Ordering::Relaxed)
    }

    /// From now on keeps the last failure. It is dropped when memory is short, or when the user
    /// continues it.
    pub(crate) fn begin_debugging(&self) {
        self.has_debugger.store(true, Ordering::Relaxed);
    }

    /// Keeps the failure of an evaluation, if there is a debugger.
    pub(crate) fn keep_failure(&self, failure: impl FnOnce() -> Option<Failure>) {
        if self.has_debugger.load(Ordering::Relaxed) {
            *lock(&self.failure) = failure();
        }
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        *lock(&self.failure)
    }

    pub(crate) fn forget_failure(&self) {
        *lock(&self.failure) = None;
    }

    /// The state of the tools at the prompt.
    pub(crate) fn value(&self) -> Value {
        *lock(&self.value)
    }

    /// Stores the state of the tools unless there is one already. Returns the stored state.
    pub(crate) fn keep_value(&self, value: Value) -> Value {
        let mut kept = lock(&self.value);
        if !kept.is_true() {
            *kept = value;
        }
        *kept
    }

    pub(crate) fn note_form(&self, place: Span) {
        *lock(&self.form) = Some(place);
    }

    pub(crate) fn form(&self) -> Option<Span> {
        *lock(&self.form)
    }

    /// Raises an exception in the evaluation; `false` if there is none.
    pub(crate) fn interrupt(&self) -> bool {
        let main = lock(&self.main).clone();
        main.inspect(|main| main.request(REQUEST_INTERRUPT)).is_some()
    }

    /// Called when every thread waits for another, `caller` as the last one. Raises the error in
    /// the main thread. It does nothing if some thread has been killed, or has a pending request,
    /// and has not reacted yet. That thread will run, and wait again or end; then the check is
    /// repeated.
    ///
    /// The call may come late, in the next evaluation. So it first clears the main thread's flag
    /// `parked`: from then on no other thread counts the end of that wait. Then it checks again. If
    /// every thread still waits, none of them can run before the main thread. Otherwise the main
    /// thread is woken to check what it waits for.
    pub(crate) fn report_deadlock(&self, kernel: &Kernel, caller: &LispThread) {
        let is_to_run = |thread: &LispThread| {
            let hears = |it: &Microprocess| thread.id != caller.id && it.is_being_killed();
            thread.microprocess.get().is_some_and(|it| it.is_kill_pending() || hears(it))
        };
        if self.threads(kernel).any(|thread| is_to_run(&thread)) {
            return;
        }
        let Some(main) = lock(&self.main).clone() else { return };
        if !main.parked.swap(false, Ordering::AcqRel) {
            return;
        }
        let is_deadlock = self.active.load(Ordering::Acquire) == 0;
        self.activate();
        if is_deadlock {
            main.request(REQUEST_DEADLOCK);
        } else {
            main.wake();
        }
    }
}

/// The session's threads.
impl LispSession {
    /// Registers a thread that begins; `false` if the session is ending.
    pub(crate) fn enter(&self) -> bool {
        let mut started = lock(&self.started);
        if self.ending.load(Ordering::Relaxed) {
            return false;
        }
        *started += 1;
        self.activate();
        true
    }

    /// Records that a thread has ended. Returns the number of active threads.
    pub(crate) fn leave(&self) -> usize {
        let active = self.deactivate();
        let mut started = lock(&self.started);
        *started -= 1;
        if *started == 0 {
            self.emptied.notify_all();
        }
        active
    }

    /// Records that a thread begins to wait for another. Returns the number of active threads.
    pub(crate) fn deactivate(&self) -> usize {
        self.active.fetch_sub(1, Ordering::AcqRel) - 1
    }

    pub(crate) fn activate(&self) {
        self.active.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends the session with all its threads, in any state. Their `dynamic-wind` procedures have
    /// [`GRACE`] to run. Waits for the threads.
    pub(crate) fn end(&self, kernel: &Kernel) {
        {
            let _started = lock(&self.started);
            if self.ending.swap(true, Ordering::Relaxed) {
                return;
            }
        }
        self.threads(kernel).for_each(|thread| thread.terminate());
        let started = lock(&self.started);
        let (started, _) = self
            .emptied
            .wait_timeout_while(started, GRACE, |started| *started > 0)
            .unwrap_or_else(PoisonError::into_inner);
        drop(started);
        for thread in self.threads(kernel) {
            thread.request(REQUEST_ABANDON);
            // A suspended thread would not process a request; a thread that has ended needs none.
            let _ = thread.microprocess.get().map(Microprocess::kill);
        }
        let started = lock(&self.started);
        let wait = self.emptied.wait_while(started, |started| *started > 0);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
        let gate_servers = core::mem::take(&mut *lock(&self.gate_servers));
        gate_servers.iter().filter_map(Weak::upgrade).for_each(|server| server.close());
        kernel.forget(self.id);
        for port in self.ports.iter().flatten() {
            port.abandon();
        }
        // Code of the session may exist as garbage, but no thread runs it.
        location::clear(&self.globals);
        self.forget_failure();
        *lock(&self.value) = Value::FALSE;
        *lock(&self.held) = None;
        *lock(&self.program) = None;
        *lock(&self.restored) = None;
        *lock(&self.interaction) = None;
        *lock(&self.main) = None;
        let usage = self.account.usage();
        if usage.ports + usage.sockets > 0 {
            kernel.collector.request_for_unclosed();
        }
    }

    fn threads(&self, kernel: &Kernel) -> impl Iterator<Item = Arc<LispThread>> {
        kernel.threads.started().into_iter().filter(|thread| thread.session.id == self.id)
    }

    /// Whether some thread is runnable, or waits for a point in time or for an event outside Lisp.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }
}
