//! A session as threads know it: whose it is, what its names mean, where its output goes, which evaluation is going on.
//!
//! ```text
//!   begin --> main thread runs the text --> finish --> reply
//!   end:  every thread is asked to terminate; after a grace it is abandoned; then locations are forgotten
//! ```
//!
//! The session of the process itself is the first. Its world is the one that the prelude was loaded into; any other
//! session's stands beside it, and shares with it the system environment alone.

use crate::gate::Desk;
use crate::service::policy::Notes;
use crate::system::kernel::{Ended, Kernel, lock};
use crate::thread::lisp_thread::{
    LispThread, REQUEST_ABANDON, REQUEST_DEADLOCK, REQUEST_INTERRUPT,
};
use core::fmt;
use core::time::Duration;
use kyocho_heap::account::{Account, Countable, Exceeded, Held};
use kyocho_heap::heap::{Marker, Mutator, location};
use kyocho_heap::raise;
use kyocho_heap::value::Value;
use kyocho_library::port::{Port, Role};
use kyocho_library::session::{Doors, Surroundings, Variables};
use kyocho_microprocess::Microprocess;
use kyocho_syntax::datum::Span;
use kyocho_syntax::environment::Environment;
use kyocho_syntax::location::Globals;
use kyocho_syntax::world::World;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_vm::machine::resume::Failure;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

/// How long the threads of a session that ends may run what `dynamic-wind` has them run.
const GRACE: Duration = Duration::from_millis(100);

/// Who is told how an evaluation ended: called once, from the thread's last step. It must not wait.
pub(crate) type Reply = Box<dyn FnOnce(Ended) + Send>;

/// The ports that a session's threads begin with: input, output, error.
pub(crate) type Ports = [Port; 3];

/// A session.
pub(crate) struct LispSession {
    /// Its number; 0 is the process's own.
    pub(crate) id: u64,
    pub(crate) account: Arc<Account>,
    pub(crate) world: Mutex<World>,
    globals: Arc<Globals>,
    /// The process's own where there are none.
    ports: Option<Ports>,
    /// What a policy of the scheduler is told of.
    pub(crate) notes: Arc<Notes>,
    /// The thread that somebody waits for: a program, or an evaluation at a prompt.
    main: Mutex<Option<Arc<LispThread>>>,
    reply: Mutex<Option<Reply>>,
    /// The program has called `exit`: what ends by that is not worth a report.
    exiting: AtomicBool,
    /// No thread begins any more.
    ending: AtomicBool,
    /// The form of its text that runs: the place of last resort for a report.
    form: Mutex<Option<Span>>,
    interaction: Mutex<Option<Arc<Environment>>>,
    /// Somebody at a prompt may ask what failed.
    has_debugger: AtomicBool,
    failure: Mutex<Option<Failure>>,
    /// What the tools at its prompt remember; false until they do.
    value: Mutex<Value>,
    /// Where `(save-image)` saves to.
    image: Mutex<Option<PathBuf>>,
    /// The environment of an image that it was given.
    restored: Mutex<Option<Arc<Environment>>>,
    /// The environment of the text that runs.
    program: Mutex<Option<Arc<Environment>>>,
    /// Started threads that do not wait for another thread.
    active: AtomicUsize,
    /// Started threads.
    started: Mutex<usize>,
    emptied: Condvar,
    /// The copy of a world: of its own, for who asked for it, or of the one that it is to begin with.
    copy: Mutex<Option<Arc<[u8]>>>,
    /// What its programs find around them.
    pub(crate) surroundings: Surroundings,
    /// Servers of gates, which are closed with it.
    desks: Mutex<Vec<Weak<Desk>>>,
    /// Its place among the sessions of its account.
    held: Mutex<Option<Held>>,
}

impl fmt::Debug for LispSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LispSession").field("id", &self.id).finish_non_exhaustive()
    }
}

impl LispSession {
    /// A session that nothing runs in.
    ///
    /// # Errors
    /// The account has as many as it may.
    pub(crate) fn new(
        id: u64,
        account: Arc<Account>,
        world: World,
        ports: Option<Ports>,
        notes: &Arc<Notes>,
        doors: &Arc<Doors>,
    ) -> Result<Self, Exceeded> {
        let held = account.hold(Countable::Sessions)?;
        let variables = Variables::default();
        let surroundings =
            Surroundings { variables, doors: Arc::clone(doors), is_of_process: id == 0 };
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
            desks: Mutex::default(),
            held: Mutex::new(Some(held)),
        })
    }

    /// The gate's server ends with it.
    pub(crate) fn closes(&self, desk: &Arc<Desk>) {
        let mut desks = lock(&self.desks);
        desks.retain(|desk| desk.strong_count() > 0);
        desks.push(Arc::downgrade(desk));
    }

    /// Marks the value of each location that its environments name, and what failed last.
    pub(crate) fn trace(&self, marker: &mut Marker) {
        if let Some(failure) = self.failure() {
            marker.mark(failure.continuation);
            marker.mark(failure.object);
        }
        marker.mark(self.value());
        location::for_each_root(&self.globals, |value| marker.mark(value));
        marker.hold(self.globals.held_bytes());
    }

    /// The environment that `(interaction-environment)` gives.
    pub(crate) fn interaction(&self) -> Arc<Environment> {
        let mut interaction = lock(&self.interaction);
        let made = || lock(&self.world).interaction_environment();
        Arc::clone(interaction.get_or_insert_with(made))
    }

    pub(crate) fn set_interaction(&self, environment: &Arc<Environment>) {
        *lock(&self.interaction) = Some(Arc::clone(environment));
    }

    /// The environment of the text that runs.
    pub(crate) fn program(&self) -> Option<Arc<Environment>> {
        lock(&self.program).clone()
    }

    /// Where `(save-image)` saves to.
    pub(crate) fn image(&self) -> Option<PathBuf> {
        lock(&self.image).clone()
    }

    pub(crate) fn set_image(&self, path: &Path) {
        *lock(&self.image) = Some(path.to_path_buf());
    }

    /// Its names are those of an image from now on.
    pub(crate) fn enter_image(&self, environment: &Arc<Environment>) {
        self.set_interaction(environment);
        *lock(&self.restored) = Some(Arc::clone(environment));
    }

    /// The environment of an image that it was given.
    pub(crate) fn restored(&self) -> Option<Arc<Environment>> {
        lock(&self.restored).clone()
    }

    pub(crate) fn set_copy(&self, contents: Option<Arc<[u8]>>) {
        *lock(&self.copy) = contents;
    }

    pub(crate) fn copy(&self) -> Option<Arc<[u8]>> {
        lock(&self.copy).clone()
    }

    /// All its locations.
    pub(crate) fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The bound name that an unbound one was most likely meant to be.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'static str> {
        let system = Arc::clone(lock(&self.world).system());
        let program = lock(&self.program).clone();
        program.and_then(|program| program.nearest(name)).or_else(|| system.nearest(name))
    }

    /// The port of a role that its threads begin with.
    pub(crate) fn port(&self, role: Role) -> Port {
        match &self.ports {
            Some(ports) => ports[role as usize].clone(),
            None => kyocho_library::port::of_process(role).clone(),
        }
    }

    /// What `parameterize` would have bound for a thread that begins here: the session's ports.
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

/// One evaluation.
impl LispSession {
    /// An evaluation begins.
    pub(crate) fn begin(&self, reply: Reply) {
        self.exiting.store(false, Ordering::Relaxed);
        *lock(&self.reply) = Some(reply);
    }

    /// This thread carries it out.
    pub(crate) fn set_main(&self, main: &Arc<LispThread>) {
        *lock(&self.main) = Some(Arc::clone(main));
    }

    /// Names that are unbound are looked for in this environment from now on.
    pub(crate) fn set_program(&self, environment: &Arc<Environment>) {
        *lock(&self.program) = Some(Arc::clone(environment));
    }

    /// The main thread has ended, or the program has.
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

    /// Whether an error that ends a thread now is nobody's business.
    pub(crate) fn is_over(&self) -> bool {
        self.exiting.load(Ordering::Relaxed) || self.ending.load(Ordering::Relaxed)
    }

    /// From now on what fails is kept, until something else fails, memory is short, or the user goes on with it.
    pub(crate) fn begin_debugging(&self) {
        self.has_debugger.store(true, Ordering::Relaxed);
    }

    /// An evaluation has failed; where there is a debugger, it is kept.
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

    /// What the tools at its prompt remember.
    pub(crate) fn value(&self) -> Value {
        *lock(&self.value)
    }

    /// Has it remembered from now on, unless something is already; what is.
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

    /// Raises in the evaluation; `false` where there is none.
    pub(crate) fn interrupt(&self) -> bool {
        self.ask_main(REQUEST_INTERRUPT)
    }

    /// Every thread waits for another, `caller` since just now: the one that somebody waits for is told. Not where one was killed from outside and does
    /// not know yet, or another hears of it just now: it runs, and then waits again or ends, and that is when it is looked at again.
    pub(crate) fn report_deadlock(&self, kernel: &Kernel, caller: &LispThread) {
        let is_to_run = |thread: &LispThread| {
            let hears = |it: &Microprocess| thread.id != caller.id && it.is_being_killed();
            thread.microprocess.get().is_some_and(|it| it.is_condemned() || hears(it))
        };
        if !self.threads(kernel).any(|thread| is_to_run(&thread)) {
            self.ask_main(REQUEST_DEADLOCK);
        }
    }

    fn ask_main(&self, request: u32) -> bool {
        let main = lock(&self.main).clone();
        main.inspect(|main| main.request(request)).is_some()
    }
}

/// Its threads.
impl LispSession {
    /// A thread begins; `false` where none may any more.
    pub(crate) fn enter(&self) -> bool {
        let mut started = lock(&self.started);
        if self.ending.load(Ordering::Relaxed) {
            return false;
        }
        *started += 1;
        self.activate();
        true
    }

    /// A thread has ended; how many are active now.
    pub(crate) fn leave(&self) -> usize {
        let active = self.deactivate();
        let mut started = lock(&self.started);
        *started -= 1;
        if *started == 0 {
            self.emptied.notify_all();
        }
        active
    }

    /// A thread begins to wait for another; how many are active now.
    pub(crate) fn deactivate(&self) -> usize {
        self.active.fetch_sub(1, Ordering::AcqRel) - 1
    }

    pub(crate) fn activate(&self) {
        self.active.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends it: all its threads, wherever they are. What they should do last has [`GRACE`]. Waits for them.
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
            // One that somebody has suspended takes no step for a request; one that has ended needs none.
            let _ = thread.microprocess.get().map(Microprocess::kill);
        }
        let started = lock(&self.started);
        let wait = self.emptied.wait_while(started, |started| *started > 0);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
        let desks = core::mem::take(&mut *lock(&self.desks));
        desks.iter().filter_map(Weak::upgrade).for_each(|desk| desk.close());
        kernel.forget(self.id);
        for port in self.ports.iter().flatten() {
            port.abandon();
        }
        // Code of the session may be garbage that is not collected yet; nobody runs it.
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
            kernel.collector.request_for_left();
        }
    }

    fn threads(&self, kernel: &Kernel) -> impl Iterator<Item = Arc<LispThread>> {
        kernel.threads.started().into_iter().filter(|thread| thread.session.id == self.id)
    }

    /// Whether some thread is runnable, or waits for a time.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }
}
