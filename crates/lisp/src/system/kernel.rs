//! What all threads of one system share: heap, environments, what the compiler knows.

use crate::compiler;
use crate::compiler::inline::Builtins;
use crate::heap::{ForeignObject, Heap, Kind, Marker, Mutator};
use crate::machine::{Hooks, condition, control};
use crate::raise::{Cause, Raise, Result};
use crate::report::Report;
use crate::service::{Collector, SystemCall};
use crate::syntax::datum::{Datum, Span};
use crate::syntax::environment::{Environment, Globals};
use crate::syntax::error::SyntaxError;
use crate::syntax::expander::TopLevel;
use crate::syntax::reader::{ReadError, Reader};
use crate::syntax::source;
use crate::syntax::world::World;
use crate::system::Options;
use crate::thread::lisp_thread::LispThread;
use crate::thread::safepoint::Threads;
use crate::value::Value;
use core::fmt;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Threads that the report of a deadlock lists.
const DEADLOCK_LINES_MAX: usize = 20;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shared part of a system.
pub(crate) struct Kernel {
    pub(crate) heap: Arc<Heap>,
    pub(crate) world: Mutex<World>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) builtins: Builtins,
    pub(crate) hooks: Arc<Hooks>,
    /// What is raised when there is no memory to make a condition from.
    pub(crate) out_of_memory: Value,
    pub(crate) options: Options,
    pub(crate) threads: Threads,
    pub(crate) system_call: SystemCall,
    pub(crate) collector: Collector,
    /// The thread that somebody waits for: a program, or an evaluation at a prompt.
    pub(crate) main: Mutex<Option<Arc<LispThread>>>,
    /// The program has called `exit`: what ends by that is not worth a report.
    pub(crate) exiting: AtomicBool,
    /// The form of its text that runs: the place of last resort for a report.
    pub(crate) form: Mutex<Option<Span>>,
    /// How it ended.
    pub(crate) ended: Mutex<Option<Ended>>,
    /// The getty thread, which waits for it.
    pub(crate) getty: OnceLock<Microprocess>,
    interaction: Mutex<Option<Arc<Environment>>>,
    /// The environment of the program or session that runs.
    pub(crate) program: Mutex<Option<Arc<Environment>>>,
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
    /// A kernel whose system environment holds every primitive.
    pub(crate) fn new(heap: Arc<Heap>, options: Options, mutator: &mut Mutator) -> Result<Self> {
        let world = World::new();
        let mut builtins = Builtins::default();
        let mut define = |name: &str, index: usize| -> Result<_> {
            let global = world.system().define_name(name);
            let object = mutator.object(Kind::Primitive, 0, 1)?;
            object.set_payload_word(0, index as u64);
            global.word.store(object.to_word(), Ordering::Release);
            Ok(global)
        };
        for (index, primitive) in control::primitives().iter().enumerate() {
            let global = define(primitive.name, index)?;
            builtins.declare(global, primitive);
        }
        for (index, procedure) in control::procedures() {
            builtins.forget(define(procedure.name, index)?);
        }
        let hooks = Hooks::default();
        let system = |name: &str| world.runtime(name);
        let _ = hooks.raise.set(system("%raise"));
        let _ = hooks.rewind.set(system("%rewind"));
        let _ = hooks.terminate.set(system("%unwind-terminated"));
        let globals = Arc::clone(world.globals());
        let out_of_memory =
            condition::make(mutator, condition::OUT_OF_MEMORY, "out of memory", &[])
                .ok_or_else(Raise::out_of_memory)?;
        Ok(Self {
            heap,
            world: Mutex::new(world),
            globals,
            builtins,
            hooks: Arc::new(hooks),
            out_of_memory,
            options,
            threads: Threads::default(),
            system_call: SystemCall::default(),
            collector: Collector::default(),
            main: Mutex::new(None),
            exiting: AtomicBool::new(false),
            form: Mutex::new(None),
            ended: Mutex::new(None),
            getty: OnceLock::new(),
            interaction: Mutex::new(None),
            program: Mutex::new(None),
        })
    }

    /// Marks every top-level location's value.
    pub(crate) fn trace(&self, marker: &mut Marker<'_>) {
        marker.mark(self.out_of_memory);
        self.globals.for_each(|global| marker.mark_word(global.word.load(Ordering::Relaxed)));
    }

    /// The value of one of the system's own procedures.
    pub(crate) fn procedure(&self, name: &str) -> Value {
        let global = lock(&self.world).runtime(name);
        Value::from_word(global.word.load(Ordering::Relaxed))
    }

    /// The environment that `(interaction-environment)` gives: the last session's.
    pub(crate) fn interaction(&self) -> Arc<Environment> {
        let mut interaction = lock(&self.interaction);
        let made = || lock(&self.world).interaction_environment();
        Arc::clone(interaction.get_or_insert_with(made))
    }

    pub(crate) fn set_interaction(&self, environment: &Arc<Environment>) {
        *lock(&self.interaction) = Some(Arc::clone(environment));
    }

    /// The bound name that an unbound one was most likely meant to be.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'static str> {
        let system = Arc::clone(lock(&self.world).system());
        let program = lock(&self.program).clone();
        program.and_then(|program| program.nearest(name)).or_else(|| system.nearest(name))
    }

    /// The main thread has ended, or the program has: the first to say so is heard. What ends
    /// after an `exit`, such as a join of the thread that called it, ends because of it.
    pub(crate) fn main_ended(&self, ended: Ended) {
        lock(&self.ended).get_or_insert(ended);
        if let Some(getty) = self.getty.get() {
            getty.unpark();
        }
    }

    /// The calling thread is unparked after the next collection.
    pub(crate) fn await_collection(&self) {
        self.threads.hold(Microprocess::current());
        self.collector.request();
    }

    /// Whether the last collection found so little that only small requests can be served.
    pub(crate) fn is_exhausted(&self) -> bool {
        let limits = self.heap.limits();
        self.heap.statistics().last.held_bytes + limits.reserve_bytes() > limits.bytes_max
    }

    /// Whether no started thread has taken more cells.
    pub(crate) fn is_greediest(&self, thread: &LispThread) -> bool {
        let taken = thread.taken.load(Ordering::Relaxed);
        let threads = self.threads.started();
        threads.iter().all(|other| other.taken.load(Ordering::Relaxed) <= taken)
    }

    /// Who waits for what.
    pub(crate) fn describe_deadlock(&self) -> String {
        let mut text = "deadlock: every thread waits for another".to_owned();
        for thread in self.threads.started().iter().take(DEADLOCK_LINES_MAX) {
            let what = lock(&thread.inner).waits_for.unwrap_or("nothing");
            text.push_str(&format!("\n    thread {} waits for {what}", thread.name()));
        }
        text
    }

    /// Expands and compiles one datum.
    pub(crate) fn compile(
        &self,
        mutator: &mut Mutator,
        environment: &Arc<Environment>,
        datum: &Datum,
    ) -> Result<Vec<Item>> {
        let forms = lock(&self.world).expand(environment, datum).map_err(Raise::syntax)?;
        self.compile_forms(mutator, forms, datum.span)
    }

    pub(crate) fn compile_forms(
        &self,
        mutator: &mut Mutator,
        forms: Vec<TopLevel>,
        span: Span,
    ) -> Result<Vec<Item>> {
        let compile = |form| match form {
            TopLevel::Form(core) => compiler::compile(mutator, &self.builtins, &core)
                .map(Item::Thunk)
                .map_err(|error| error.into_raise(span)),
            TopLevel::Ready(name) => Ok(Item::Ready(name)),
        };
        forms.into_iter().map(compile).collect()
    }
}

/// Something to do for a form at top level.
#[derive(Debug)]
pub(crate) enum Item {
    /// Call this.
    Thunk(Value),
    /// Tell the world that this library's body has run.
    Ready(Arc<str>),
}

/// Forms that are being run one after the other: a file, a text at the prompt.
#[derive(Debug)]
pub(crate) struct Source(Mutex<SourceState>);

#[derive(Debug)]
struct SourceState {
    environment: Arc<Environment>,
    data: VecDeque<core::result::Result<Datum, SyntaxError>>,
    items: VecDeque<Item>,
    /// Whether it is the text that somebody waits for, not one that it loads or makes.
    is_main: bool,
}

impl SourceState {
    /// A form begins.
    fn begin(&self, kernel: &Kernel, place: Span) {
        if self.is_main {
            *lock(&kernel.form) = Some(place);
        }
    }

    /// Makes the form what comes next. Where there is no memory for that, it stays where it was: it is asked for again after a
    /// collection.
    fn compile(&mut self, kernel: &Kernel, mutator: &mut Mutator, datum: Datum) -> Result<()> {
        self.begin(kernel, datum.span);
        let environment = Arc::clone(&self.environment);
        let compiled = kernel.compile(mutator, &environment, &datum);
        if compiled.as_ref().is_err_and(Raise::is_out_of_memory) {
            self.data.push_front(Ok(datum));
        }
        self.items = compiled?.into();
        Ok(())
    }
}

impl ForeignObject for Source {
    fn trace(&self, marker: &mut Marker<'_>) {
        for item in &lock(&self.0).items {
            if let Item::Thunk(thunk) = item {
                marker.mark(*thunk);
            }
        }
    }
}

/// Reads a whole text; the first error ends it.
pub(crate) fn read_all(
    text: &str,
    name: &str,
) -> VecDeque<core::result::Result<Datum, SyntaxError>> {
    let mut reader = Reader::of_text(text, source::register(name));
    let mut data = VecDeque::new();
    loop {
        match reader.read() {
            Ok(Some(datum)) => data.push_back(Ok(datum)),
            Ok(None) => return data,
            Err(ReadError::Incomplete(error) | ReadError::Wrong(error)) => {
                data.push_back(Err(error));
                return data;
            }
        }
    }
}

impl Source {
    /// The forms of a text.
    pub(crate) fn new(
        environment: Arc<Environment>,
        data: VecDeque<core::result::Result<Datum, SyntaxError>>,
    ) -> Self {
        Self(Mutex::new(SourceState { environment, data, items: VecDeque::new(), is_main: false }))
    }

    /// The same text, as the one that somebody waits for.
    pub(crate) fn into_main(self) -> Self {
        lock(&self.0).is_main = true;
        self
    }

    /// Forms that are compiled already.
    pub(crate) fn of_items(environment: Arc<Environment>, items: Vec<Item>) -> Self {
        let data = VecDeque::new();
        Self(Mutex::new(SourceState { environment, data, items: items.into(), is_main: false }))
    }

    /// Where the forms are evaluated.
    pub(crate) fn environment(&self) -> Arc<Environment> {
        Arc::clone(&lock(&self.0).environment)
    }

    /// The procedure to call next; `None` at the end.
    pub(crate) fn next(&self, kernel: &Kernel, mutator: &mut Mutator) -> Result<Option<Value>> {
        let mut state = lock(&self.0);
        loop {
            match state.items.pop_front() {
                Some(Item::Thunk(thunk)) => return Ok(Some(thunk)),
                Some(Item::Ready(name)) => lock(&kernel.world).library_ready(&name),
                None => match state.data.pop_front() {
                    None => return Ok(None),
                    Some(Err(error)) => return Err(Raise::syntax(error)),
                    Some(Ok(datum)) => state.compile(kernel, mutator, datum)?,
                },
            }
        }
    }
}

impl Raise {
    /// A syntax error, with its place.
    pub(crate) fn syntax(error: SyntaxError) -> Self {
        Self::new(Cause::Syntax { message: error.explanation(), span: error.span() })
    }
}
