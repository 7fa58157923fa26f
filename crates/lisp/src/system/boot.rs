//! Booting: the runtime's kernel thread, `init`, the services, and getty's loop.

use crate::heap::{Heap, Limits, Mutator};
use crate::prelude;
use crate::report::Report;
use crate::syntax::datum::Datum;
use crate::syntax::environment::Environment;
use crate::syntax::error::SyntaxError;
use crate::system::kernel::{Ended, Kernel, Source, lock, read_all};
use crate::system::{BootError, Options, ServiceLine};
use crate::thread::lisp_thread::{LispThread, ThreadObject};
use crate::thread::{ThreadContext, runner};
use crate::value::Value;
use kyocho_microprocess::{Builder, Microprocess, Priority, Runtime, park};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, mpsc};

/// The definition of the procedure that runs all other texts.
const FIRST: (&str, &str) = ("prelude/run.scm", include_str!("../prelude/run.scm"));

/// The runtime's first kernel thread only waits: microprocesses have stacks of their own.
const STACK_BYTES: usize = 1 << 20;
/// Stack that an expansion may use: threads' steps run on 8 MiB, which must do for the compiler too.
const EXPANSION_STACK_BYTES: usize = 5 << 20;
/// Services do little; the compiler runs on the kernel thread's own stack.
const SERVICE_STACK_BYTES: usize = 256 * 1024;

/// The data of a text, up to the first that is wrong.
pub(super) type Data = VecDeque<Result<Datum, SyntaxError>>;

/// Something for getty to have evaluated.
#[derive(Debug)]
pub(crate) struct Evaluate {
    environment: Arc<Environment>,
    data: Data,
    /// Whether the values of the forms are wanted.
    runner: &'static str,
    reply: Option<mpsc::Sender<Ended>>,
}

impl Evaluate {
    /// A program: its forms' values are nobody's business.
    pub(super) fn program(environment: Arc<Environment>, data: Data) -> Self {
        Self { environment, data, runner: "%run-program", reply: None }
    }

    /// A text at a prompt.
    pub(super) fn text(environment: Arc<Environment>, data: Data) -> Self {
        Self { environment, data, runner: "%run-text", reply: None }
    }
}

/// Has getty evaluate something, and waits for the end.
pub(super) fn evaluate(requests: &mpsc::Sender<Evaluate>, mut what: Evaluate) -> Ended {
    let (reply, end) = mpsc::channel();
    what.reply = Some(reply);
    if requests.send(what).is_err() {
        return Ended::Report(Report::internal("the runtime has ended"));
    }
    end.recv().unwrap_or_else(|_| Ended::Report(Report::internal("the runtime has ended")))
}

enum News {
    Service(ServiceLine),
    Ready(Arc<Kernel>),
    Failed(BootError),
}

pub(super) fn boot(
    options: Options,
    on_service: &mut dyn FnMut(&ServiceLine),
) -> Result<(Arc<Kernel>, mpsc::Sender<Evaluate>), BootError> {
    let (requests, inbox) = mpsc::channel();
    let (news, from_init) = mpsc::channel();
    let body = move || {
        let mut runtime = Runtime::builder().control(options.control);
        if let Some(count) = options.virtual_processors {
            runtime = runtime.virtual_processors(count);
        }
        // A deadlock of everything can only be one of services: threads' deadlocks are theirs.
        let _ = runtime.build().run(move || init(options, &news, &inbox));
    };
    kyocho_sys::thread::start("kyocho", STACK_BYTES, body)
        .map_err(|errno| BootError::Host(errno.into()))?;
    loop {
        match from_init.recv() {
            Ok(News::Service(line)) => on_service(&line),
            Ok(News::Ready(kernel)) => return Ok((kernel, requests)),
            Ok(News::Failed(error)) => return Err(error),
            Err(mpsc::RecvError) => {
                return Err(BootError::Host(io::Error::other("the runtime ended while booting")));
            }
        }
    }
}

/// The parent of all threads.
fn init(options: Options, news: &mpsc::Sender<News>, inbox: &mpsc::Receiver<Evaluate>) {
    match start(options, news) {
        Ok(kernel) => {
            let _ = news.send(News::Ready(Arc::clone(&kernel)));
            getty(&kernel, inbox);
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
    let limits = Limits { bytes_max, torture, ..Limits::default() };
    let heap = Heap::new(limits).map_err(BootError::Host)?;
    let mut mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
    let mut words = vec![
        options
            .script
            .as_ref()
            .map_or_else(|| "kyocho".to_owned(), |script| script.to_string_lossy().into_owned()),
    ];
    words.extend(options.arguments.iter().cloned());
    crate::primitives::set_command_line(words);
    let kernel = Kernel::new(heap, options, &mut mutator)
        .map_err(|_| BootError::Host(io::ErrorKind::OutOfMemory.into()))?;
    let kernel = Arc::new(kernel);
    lock(&kernel.world).set_stack_bytes_max(EXPANSION_STACK_BYTES);
    crate::thread::wait::prepare_interruption().map_err(BootError::Host)?;
    let _ = kernel.getty.set(Microprocess::current());
    let carried = report.virtual_processors > 1;
    if carried {
        kernel.system_call.carry_by_caller();
    }
    serve("system-call", &kernel, |kernel| kernel.system_call.run(kernel))?;
    let how = if carried { "requests carried by their callers" } else { "a message a refill" };
    say("system-call", format!("{how}; cell cache {:?}", kernel.options.cell_cache));
    serve("gc", &kernel, |kernel| kernel.collector.run(kernel))?;
    let mib = kernel.options.memory_max_bytes >> 20;
    say("gc", format!("mark-region, stops the world; heap up to {mib} MiB"));
    load_prelude(&kernel, &mut mutator).map_err(BootError::Prelude)?;
    for folder in &kernel.options.library_path {
        lock(&kernel.world).add_library_folder(folder);
    }
    say("getty", "sessions: one evaluation at a time".to_owned());
    Ok(kernel)
}

fn load_prelude(kernel: &Arc<Kernel>, mutator: &mut Mutator) -> Result<(), Report> {
    let system = Arc::clone(lock(&kernel.world).system());
    let done = |ended| match ended {
        Ended::Report(report) => Err(report),
        Ended::Values(_) | Ended::Exit(_) => Ok(()),
    };
    let first = Source::new(Arc::clone(&system), read_all(FIRST.1, FIRST.0));
    let thunk = kernel.threads.as_outsider(|| first.next(kernel, mutator));
    if let Ok(Some(thunk)) = thunk {
        done(run(kernel, || start_main(kernel, mutator, thunk, None)))?;
    }
    for (name, text) in prelude::SOURCES {
        let environment = Arc::clone(&system);
        let what = Evaluate::program(environment, read_all(text, name));
        done(run(kernel, || start_text(kernel, mutator, what)))?;
    }
    Ok(())
}

fn serve(
    name: &str,
    kernel: &Arc<Kernel>,
    body: impl FnOnce(&Kernel) + Send + 'static,
) -> Result<(), BootError> {
    let kernel = Arc::clone(kernel);
    let builder = Builder::new().name(name).stack_bytes(SERVICE_STACK_BYTES);
    let urgent = builder.priority(Priority::HIGHEST);
    urgent.spawn(move || body(&kernel)).map(drop).map_err(BootError::Host)
}

/// Gives each user in turn an evaluation.
fn getty(kernel: &Arc<Kernel>, inbox: &mpsc::Receiver<Evaluate>) {
    let mut mutator = Mutator::new(Arc::clone(&kernel.heap), ThreadContext::default());
    // Waiting here sleeps in the kernel, which the scheduler takes as what it is.
    while let Ok(mut what) = inbox.recv() {
        let reply = what.reply.take();
        let ended = run(kernel, || start_text(kernel, &mut mutator, what));
        if let Some(reply) = reply {
            // Nobody listens any more: nothing to do.
            let _ = reply.send(ended);
        }
    }
}

/// Starts a main thread, and waits until it, or the program, ends.
fn run(kernel: &Arc<Kernel>, start: impl FnOnce() -> Result<(), String>) -> Ended {
    if let Err(error) = kernel.threads.as_outsider(start) {
        return Ended::Report(Report::outside(error));
    }
    loop {
        if let Some(ended) = lock(&kernel.ended).take() {
            *lock(&kernel.main) = None;
            return ended;
        }
        park();
    }
}

/// Starts a main thread that runs a text.
fn start_text(kernel: &Arc<Kernel>, mutator: &mut Mutator, what: Evaluate) -> Result<(), String> {
    *lock(&kernel.program) = Some(Arc::clone(&what.environment));
    let source = Source::new(what.environment, what.data).into_main();
    let source = mutator.foreign(Box::new(source)).map_err(|error| error.to_string())?;
    start_main(kernel, mutator, kernel.procedure(what.runner), Some(source))
}

fn start_main(
    kernel: &Arc<Kernel>,
    mutator: &mut Mutator,
    procedure: Value,
    argument: Option<Value>,
) -> Result<(), String> {
    let made = mutator.string("main").and_then(|name| {
        let thread = Arc::new(LispThread::new(kernel.threads.new_id(), Value::FALSE, name));
        let object = mutator.foreign(Box::new(ThreadObject(Arc::clone(&thread))))?;
        lock(&thread.inner).object = object;
        Ok((thread, object))
    });
    let (thread, object) = made.map_err(|error| error.to_string())?;
    let kernel_of_thread = Some(Arc::clone(kernel));
    let context =
        ThreadContext { thread: object, kernel: kernel_of_thread, ..ThreadContext::default() };
    kernel.equip(&thread, context, procedure, argument.as_slice());
    *lock(&kernel.ended) = None;
    *lock(&kernel.main) = Some(Arc::clone(&thread));
    runner::start(kernel, &thread).map_err(|error| error.to_string())
}
