//! Boot: the runtime's kernel thread, `init`, the services, the prelude; and the start of
//! evaluations.

use crate::kernel::service::markers::Markers;
use crate::kernel::session::thread::{LispThread, ThreadObject};
use crate::kernel::session::{LispSession, Reply};
use crate::kernel::{Ended, Kernel, lock};
use crate::report::Report;
use crate::system::forms::{Source, read_all};
use crate::system::keeper::keep;
use crate::system::procedures::new_kernel;
use crate::system::{BootError, Options, ServiceLine};
use crate::thread::{ThreadContext, runner};
use kyocho_heap::heap::{Heap, Limits, Mutator};
use kyocho_heap::raise;
use kyocho_heap::value::Value;
use kyocho_library::package;
use kyocho_library::prelude;
use kyocho_microprocess::{Microprocess, Priority, Runtime, park};
use kyocho_syntax::datum::{Datum, DatumKind, Span};
use kyocho_syntax::environment::Environment;
use kyocho_syntax::error::SyntaxError;
use kyocho_syntax::symbol::Symbol;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

/// The runtime's first kernel thread only waits: microprocesses have stacks of their own.
const STACK_BYTES: usize = 1 << 20;
/// Stack for an expansion. Steps of threads run on 8 MiB, of which the compiler needs a part.
const EXPANSION_STACK_BYTES: usize = 5 << 20;

/// The data of a text, up to the first error.
pub(super) type Data = VecDeque<Result<Datum, SyntaxError>>;

/// A request from outside the runtime, run inside it. It must not wait.
pub(crate) type Job = Box<dyn FnOnce(&Arc<Kernel>) + Send>;

/// A text to evaluate in a session.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) environment: Arc<Environment>,
    pub(crate) data: Data,
    /// The procedure that runs the text. It determines whether the values of the forms are
    /// returned.
    pub(crate) runner: &'static str,
}

impl Text {
    /// A program, whose values are ignored.
    pub(super) fn program(environment: Arc<Environment>, data: Data) -> Self {
        Self { environment, data, runner: "%run-program" }
    }

    /// A text that loads an image into a session.
    pub(super) fn image(session: &LispSession, path: &Path) -> Self {
        let nowhere = Span::default();
        let name = Datum::symbol(Symbol::intern("%enter-image"), nowhere);
        let path = Datum::new(DatumKind::String(path.to_string_lossy().into_owned()), nowhere);
        let call = Datum::pair(name, Datum::pair(path, Datum::nil(nowhere), nowhere), nowhere);
        let system = Arc::clone(lock(&session.world).system());
        Self::program(system, Data::from([Ok(call)]))
    }

    /// An empty text, for the effect of `runner` alone.
    pub(super) fn none(environment: Arc<Environment>, runner: &'static str) -> Self {
        Self { environment, data: Data::new(), runner }
    }

    /// A text at a prompt.
    pub(super) fn prompt(environment: Arc<Environment>, data: Data) -> Self {
        Self { environment, data, runner: "%run-text" }
    }

    /// A text at a prompt that writes the values itself.
    pub(super) fn printing(environment: Arc<Environment>, data: Data) -> Self {
        Self { environment, data, runner: "%run-and-print" }
    }
}

/// Starts the evaluation of a text and waits for its end. Must be called on a kernel thread outside
/// the runtime.
pub(super) fn evaluate(jobs: &mpsc::Sender<Job>, session: &Arc<LispSession>, text: Text) -> Ended {
    let (reply, end) = mpsc::channel();
    let reply = move |ended| {
        // If the receiver has gone, the result is not needed.
        let _ = reply.send(ended);
    };
    let session = Arc::clone(session);
    let job = move |kernel: &Arc<Kernel>| kernel.begin(&session, text, Box::new(reply));
    if jobs.send(Box::new(job)).is_err() {
        return Ended::Report(Report::internal("the runtime has ended"));
    }
    end.recv().unwrap_or_else(|_| Ended::Report(Report::internal("the runtime has ended")))
}

/// Cells for the objects of an evaluation's main thread, and how many collections to wait for them.
const BEGIN_CELLS: usize = 64;
const STOCK_TRIES: u32 = 3;

enum News {
    Service(ServiceLine),
    Ready(Arc<Kernel>),
    Failed(BootError),
}

pub(super) fn boot(
    options: Options,
    on_service: &mut dyn FnMut(&ServiceLine),
) -> Result<(Arc<Kernel>, mpsc::Sender<Job>), BootError> {
    let (jobs, inbox) = mpsc::channel();
    let (news, from_init) = mpsc::channel();
    let body = move || {
        let mut runtime = Runtime::builder().control(options.control);
        if let Some(count) = options.virtual_processors {
            runtime = runtime.virtual_processors(count);
        }
        if let Some(slice) = options.time_slice {
            runtime = runtime.time_slice(slice);
        }
        // The runtime's own deadlock detection would only see services; deadlocks of Lisp threads
        // are reported by sessions.
        let _ = runtime.build().run(move || init(options, &news, &inbox));
    };
    kyocho_sys::thread::start("kyocho", STACK_BYTES, body)
        .map_err(|errno| BootError::Host(errno.into()))?;
    loop {
        match from_init.recv() {
            Ok(News::Service(line)) => on_service(&line),
            Ok(News::Ready(kernel)) => return Ok((kernel, jobs)),
            Ok(News::Failed(error)) => return Err(error),
            Err(mpsc::RecvError) => {
                return Err(BootError::Host(io::Error::other("the runtime ended while booting")));
            }
        }
    }
}

/// Body of the parent of all threads.
fn init(options: Options, news: &mpsc::Sender<News>, inbox: &mpsc::Receiver<Job>) {
    match start(options, news) {
        Ok(kernel) => {
            let _ = news.send(News::Ready(Arc::clone(&kernel)));
            // Waiting here blocks in the kernel, which the scheduler detects.
            while let Ok(job) = inbox.recv() {
                job(&kernel);
            }
        }
        Err(error) => {
            let _ = news.send(News::Failed(error));
        }
    }
}

fn start(options: Options, news: &mpsc::Sender<News>) -> Result<Arc<Kernel>, BootError> {
    let say = |name, detail| {
        let _ = news.send(News::Service(ServiceLine { name, detail }));
    };
    let report = kyocho_microprocess::report();
    say("init", "the parent of all threads".to_owned());
    say("scheduler", report.to_string().replace('\n', "; "));
    let (bytes_max, torture) = (options.memory_max_bytes, options.torture);
    let helpers_max = Markers::count_for(report.virtual_processors).saturating_sub(1);
    let limits = Limits { bytes_max, torture, helpers_max, ..Limits::default() };
    let heap = Heap::new(limits).map_err(BootError::Host)?;
    let mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
    let mut words = vec![
        options
            .script
            .as_ref()
            .map_or_else(|| "kyocho".to_owned(), |script| script.to_string_lossy().into_owned()),
    ];
    words.extend(options.arguments.iter().cloned());
    kyocho_library::primitives::set_command_line(words);
    kyocho_heap::number::bound_integers(options.integer_bits_max);
    let options = Options { virtual_processors: Some(report.virtual_processors), ..options };
    let kernel = new_kernel(heap, options, mutator)
        .map_err(|_| BootError::Host(io::ErrorKind::OutOfMemory.into()))?;
    let kernel = Arc::new(kernel);
    lock(&kernel.base.world).set_stack_bytes_max(EXPANSION_STACK_BYTES);
    let carried = report.virtual_processors > 1;
    if carried {
        kernel.system_call.carry_by_caller();
    }
    serve("system-call", &kernel, |kernel| kernel.system_call.run(kernel))?;
    let how =
        if carried { "requests served by their callers" } else { "one message for each refill" };
    say("system-call", format!("{how}; cell cache {:?}", kernel.options.cell_cache));
    serve("gc", &kernel, |kernel| kernel.collector.run(kernel))?;
    let markers = Arc::clone(&kernel.collector.markers);
    for place in 0..markers.count() {
        let body = move |kernel: &Kernel| kernel.collector.markers.run(place, kernel);
        serve(&format!("marker {place}"), &kernel, body)?;
    }
    kernel.heap.invite_by(Box::new(move || markers.invite()));
    let mib = kernel.options.memory_max_bytes >> 20;
    say("gc", format!("mark-region, concurrent marking; heap up to {mib} MiB"));
    serve("shares", &kernel, |kernel| kernel.shares.run(kernel))?;
    say("shares", "accounts over their share run less urgently".to_owned());
    serve("watchdog", &kernel, |kernel| kernel.watchdog.run(kernel))?;
    say("watchdog", "time limits for policies in Lisp and for terminated threads".to_owned());
    load_prelude(&kernel).map_err(BootError::Prelude)?;
    kernel.note_booted();
    for path in &kernel.options.packages {
        let package = package::open(path).map(Arc::new);
        let package =
            package.map_err(|error| BootError::Package(path.clone(), error.to_string()))?;
        let added = lock(&kernel.base.world).add_package(package);
        added.map_err(|error| BootError::Package(path.clone(), error.to_string()))?;
    }
    for folder in &kernel.options.library_path {
        lock(&kernel.base.world).add_library_folder(folder);
    }
    say("getty", "one for each session; sessions evaluate concurrently".to_owned());
    Ok(kernel)
}

fn load_prelude(kernel: &Arc<Kernel>) -> Result<(), Report> {
    let system = Arc::clone(lock(&kernel.base.world).system());
    let first = Source::new(Arc::clone(&system), read_all(prelude::FIRST.1, prelude::FIRST.0));
    let thunk = kernel
        .threads
        .as_outsider(|| first.next_alone(kernel, &kernel.base, &mut lock(&kernel.mutator)));
    if let Ok(Some(thunk)) = thunk {
        await_end(|reply| {
            kernel.begin_with(&kernel.base, reply, |_| Ok((thunk, None)));
        })?;
    }
    for (name, text) in prelude::SOURCES {
        let what = Text::program(Arc::clone(&system), read_all(text, name));
        await_end(|reply| kernel.begin(&kernel.base, what, reply))?;
    }
    Ok(())
}

/// As a microprocess, starts something with `begin` and waits for its end.
fn await_end(begin: impl FnOnce(Reply)) -> Result<(), Report> {
    let me = Microprocess::current();
    let slot = Arc::new(Mutex::new(None));
    let reply = {
        let slot = Arc::clone(&slot);
        move |ended| {
            *lock(&slot) = Some(ended);
            me.unpark();
        }
    };
    begin(Box::new(reply));
    loop {
        match lock(&slot).take() {
            None => {}
            Some(Ended::Report(report)) => return Err(report),
            Some(Ended::Values(_) | Ended::Exit(_)) => return Ok(()),
        }
        park();
    }
}

fn serve(
    name: &str,
    kernel: &Arc<Kernel>,
    body: impl Fn(&Kernel) + Send + Sync + 'static,
) -> Result<(), BootError> {
    let kernel = Arc::clone(kernel);
    keep(name, Priority::HIGHEST, move || body(&kernel)).map_err(BootError::Host)
}

impl Kernel {
    /// Starts the main thread of a text. `reply` is called when the thread ends, or if it cannot
    /// begin. Called by a microprocess; waits for nothing except a collection.
    pub(crate) fn begin(self: &Arc<Self>, session: &Arc<LispSession>, text: Text, reply: Reply) {
        session.set_program(&text.environment);
        let procedure = self.procedure(text.runner);
        self.begin_with(session, reply, |mutator| {
            let source = Source::new(text.environment, text.data).into_main();
            Ok((procedure, Some(mutator.foreign(Box::new(source))?)))
        });
    }

    /// Starts a main thread that calls the procedure returned by `make` with its argument.
    fn begin_with(
        self: &Arc<Self>,
        session: &Arc<LispSession>,
        reply: Reply,
        make: impl FnOnce(&mut Mutator) -> raise::Result<(Value, Option<Value>)>,
    ) {
        session.begin(reply);
        self.stock_up();
        let made = self.threads.as_outsider(|| {
            let mut mutator = lock(&self.mutator);
            let failed = |_| "out of memory".to_owned();
            let (procedure, argument) = make(&mut mutator).map_err(failed)?;
            let thread = self.main_thread(session, &mut mutator, procedure, argument);
            let thread = thread.map_err(failed)?;
            session.set_main(&thread);
            runner::start(self, &thread).map_err(|error| error.to_string())
        });
        if let Err(error) = made {
            session.finish(Ended::Report(Report::outside(error)));
        }
    }

    /// Makes cells available for the start of an evaluation. Garbage of the last evaluation may
    /// fill the heap, and no collection may have been requested. If no cells can be obtained,
    /// making the objects reports the error.
    fn stock_up(&self) {
        for _ in 0..STOCK_TRIES {
            let stocked = self.threads.as_outsider(|| lock(&self.mutator).stock(BEGIN_CELLS));
            if stocked.is_ok() {
                return;
            }
            self.await_collection();
            park();
        }
    }

    fn main_thread(
        self: &Arc<Self>,
        session: &Arc<LispSession>,
        mutator: &mut Mutator,
        procedure: Value,
        argument: Option<Value>,
    ) -> raise::Result<Arc<LispThread>> {
        let name = mutator.string("main")?;
        let id = self.threads.new_id();
        let thread = Arc::new(LispThread::new(id, Arc::clone(session), Value::FALSE, name));
        let object = mutator.foreign(Box::new(ThreadObject(Arc::clone(&thread))))?;
        lock(&thread.inner).object = object;
        let parameters = session.parameters(self, mutator)?;
        let context = ThreadContext::of_thread(object, parameters, Some(Arc::<Self>::clone(self)));
        self.equip(&thread, context, procedure, argument.as_slice());
        Ok(thread)
    }
}
