//! The step function of a Lisp thread: runs its machine, serves what it stopped for.

use crate::heap::cache_size::CacheSize;
use crate::heap::{CellCache, OutOfMemory};
use crate::machine::{Exit, Machine};
use crate::printer::{Style, to_text};
use crate::raise::Raise;
use crate::report::Report;
use crate::service::Ask;
use crate::system::kernel::{Ended, Kernel, lock};
use crate::thread::lisp_thread::{
    ASKED, GRANTED, LispThread, NOT_ASKED, REQUEST_DEADLOCK, REQUEST_INTERRUPT,
    REQUEST_OUT_OF_MEMORY, REQUEST_TERMINATE, STARVED, Status,
};
use crate::thread::mutex;
use crate::thread::wait::withdraw;
use crate::value::Value;
use kyocho_microprocess::{Builder, Deadline, Microprocess, Stackless, Step};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use std::io::Write;
use std::sync::Arc;

/// What the scheduler steps.
#[derive(Debug)]
pub(crate) struct Runner {
    thread: Arc<LispThread>,
    kernel: Arc<Kernel>,
    cache_size: CacheSize,
    /// Cells that the cache was given up to the last refill.
    taken: u64,
    terminating: bool,
    /// A collection has come since it first asked for the cells that it needs now.
    collected: bool,
    /// How often in a row the machine found the heap exhausted inside a primitive.
    exhausted: u32,
    /// How often in a row it got no cells.
    starved: u32,
    /// It was told that memory is short, and handles that with what is kept back.
    told: bool,
}

/// Collections that a primitive's allocation is worth.
const EXHAUSTED_MAX: u32 = 8;
/// Collections that a thread waits for while a greedier one holds the memory.
const STARVED_MAX: u32 = 100;
/// Cells that a thread gets at a time while memory is short.
const SHORT_CELLS: usize = 64;

/// Starts a thread whose machine is made.
///
/// # Errors
/// When the host has no memory for the microprocess.
pub(crate) fn start(kernel: &Arc<Kernel>, thread: &Arc<LispThread>) -> std::io::Result<()> {
    let (priority, name) = {
        let mut inner = lock(&thread.inner);
        inner.status = Status::Started;
        (inner.priority, inner.name)
    };
    let name = match name.is_true().then(|| to_text(name, Style::Display)) {
        Some(Ok(name)) => name,
        _ => format!("thread {}", thread.id),
    };
    kernel.threads.register(thread);
    let runner = Runner {
        thread: Arc::clone(thread),
        kernel: Arc::clone(kernel),
        cache_size: CacheSize::new(monotonic_ns()),
        taken: 0,
        terminating: false,
        collected: false,
        exhausted: 0,
        starved: 0,
        told: false,
    };
    let started = Builder::new().name(name).priority(priority).spawn_stackless(Box::new(runner));
    if started.is_err() {
        kernel.threads.unregister(thread);
    }
    started.map(|_| ())
}

impl Stackless for Runner {
    fn step(&mut self) -> Step {
        let thread = Arc::clone(&self.thread);
        if thread.parked.swap(false, Ordering::AcqRel) {
            self.kernel.threads.activate();
        }
        if !self.kernel.threads.enter(&thread) {
            return Step::Park;
        }
        let step = self.advance(&thread);
        self.kernel.threads.leave(&thread);
        step
    }

    /// Killed from outside Lisp: it ends as by `thread-terminate!`.
    fn killed(&mut self) -> Step {
        self.thread.request(&self.kernel, REQUEST_TERMINATE);
        self.step()
    }
}

impl Runner {
    #[expect(unsafe_code, reason = "this is the step that owns the machine")]
    fn advance(&mut self, thread: &Arc<LispThread>) -> Step {
        // SAFETY: this is the thread's own step, between `enter` and `leave`.
        let slot = unsafe { thread.machine() };
        let Some(machine) = slot else { return Step::Done };
        if thread.microprocess.get().is_none() {
            let me = thread.microprocess.get_or_init(Microprocess::current);
            machine.poll_on(me.poll_word());
            machine.out_of_memory_is_final = false;
            machine.mutator.spends_reserve = false;
        }
        match thread.refill.load(Ordering::Acquire) {
            // Something else woke it: its cache is still in the system-call thread's hands.
            ASKED => return Step::Park,
            GRANTED => {
                thread.refill.store(NOT_ASKED, Ordering::Relaxed);
                self.starved = 0;
                self.collected = machine.mutator.cells.remaining() == 0;
            }
            _ => {}
        }
        let step = self.run(thread, machine);
        if step == Step::Done {
            *slot = None;
        }
        step
    }

    fn run(&mut self, thread: &Arc<LispThread>, machine: &mut Machine) -> Step {
        loop {
            if thread.requests.load(Ordering::Acquire) != 0
                && let Some(step) = self.serve_requests(thread, machine)
            {
                return step;
            }
            let exit = machine.run();
            if exit != Exit::Exhausted {
                self.exhausted = 0;
                machine.out_of_memory_is_final = false;
                let spends = &mut machine.mutator.spends_reserve;
                *spends = *spends && self.kernel.is_exhausted();
            }
            if let Some(step) = self.serve(thread, machine, exit) {
                return step;
            }
        }
    }

    /// Does what the machine stopped for. The step to end with; none where the machine goes on.
    fn serve(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
        exit: Exit,
    ) -> Option<Step> {
        match exit {
            Exit::Poll => {
                let asked = thread.requests.load(Ordering::Acquire) != 0;
                (!asked).then_some(Step::Yield)
            }
            Exit::Exhausted => {
                self.exhausted += 1;
                thread.taken.store(machine.mutator.taken_cells(), Ordering::Relaxed);
                // While others hold more, memory may come back when they are told.
                let is_exhausted = self.kernel.is_exhausted();
                let is_told = is_exhausted && self.kernel.is_greediest(thread);
                machine.out_of_memory_is_final = self.exhausted >= EXHAUSTED_MAX || is_told;
                // What its handlers need is theirs without being told again; the others share what is left.
                self.told |= is_told;
                machine.mutator.spends_reserve = is_exhausted && !is_told;
                let worth_it = !machine.out_of_memory_is_final || self.exhausted == 1;
                worth_it.then(|| self.after_collection())
            }
            Exit::Refill(cells) => self.refill(thread, machine, cells),
            Exit::Collect => {
                let wanted = self.kernel.heap.collection_wanted();
                wanted.then(|| self.after_collection())
            }
            Exit::Park => Some(Step::Park),
            Exit::ParkUntil(ns) => Some(Step::ParkUntil(Deadline::at_ns(ns))),
            Exit::Yield => Some(Step::Yield),
            exit => Some(self.end(thread, machine, exit)),
        }
    }

    /// The next step comes after a collection.
    fn after_collection(&self) -> Step {
        self.kernel.await_collection();
        Step::Park
    }

    /// Does what others asked of the thread. The step to end with, if it ends.
    fn serve_requests(&mut self, thread: &Arc<LispThread>, machine: &mut Machine) -> Option<Step> {
        let requests = thread.requests.swap(0, Ordering::AcqRel);
        let kernel = Arc::clone(&self.kernel);
        if requests & REQUEST_TERMINATE != 0 && !self.terminating {
            self.terminating = true;
            withdraw(machine, &kernel, thread);
            machine.unwind();
            return None;
        }
        let raise = if requests & REQUEST_INTERRUPT != 0 {
            Raise::error("interrupted", Vec::new())
        } else if requests & REQUEST_DEADLOCK != 0 {
            // Somebody may have been woken after the alarm.
            machine.wait?;
            Raise::error(self.kernel.describe_deadlock(), Vec::new())
        } else if requests & REQUEST_OUT_OF_MEMORY != 0 {
            Raise::out_of_memory()
        } else {
            return None;
        };
        withdraw(machine, &kernel, thread);
        machine.inject(raise).map(|exit| self.end(thread, machine, exit))
    }

    /// Gets cells for a machine that needs `cells` side by side to go on: from the system-call
    /// thread.
    ///
    /// It ends: a request waits for one collection at most, and one whose cells a collection took
    /// back before they were used is served here, in the step that uses them. So each comes to
    /// cells, which the heap gives side by side, or to `after_out_of_memory`.
    fn refill(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
        cells: usize,
    ) -> Option<Step> {
        if self.kernel.heap.collection_wanted() && !self.collected {
            self.collected = true;
            return Some(self.after_collection());
        }
        let kernel = &self.kernel;
        let taken = machine.mutator.cells.taken();
        let used = (taken - self.taken) as usize;
        self.taken = taken;
        thread.taken.store(machine.mutator.taken_cells(), Ordering::Relaxed);
        let mut want = match kernel.options.cell_cache {
            CellCache::Off => cells,
            CellCache::Fixed(size) => cells.max(size as usize),
            CellCache::Auto => cells.max(self.cache_size.next(monotonic_ns(), used)),
        };
        if kernel.is_exhausted() {
            // Who has taken most is told; the others share what is left.
            if !self.told && kernel.is_greediest(thread) {
                return self.after_out_of_memory(thread, machine);
            }
            want = want.min(cells.max(SHORT_CELLS));
        } else {
            self.told = false;
        }
        machine.mutator.set_want(want.max(16));
        let words = machine.mutator.cells.words();
        let ask = Ask { need: cells, want };
        if thread.refill.swap(NOT_ASKED, Ordering::AcqRel) == STARVED {
            return self.after_out_of_memory(thread, machine);
        }
        let collected = core::mem::take(&mut self.collected);
        if !collected && !kernel.system_call.is_carried_by_caller() {
            kernel.system_call.request(thread, words, ask);
            return Some(Step::Park);
        }
        match kernel.system_call.serve(kernel, words, ask) {
            Ok(()) => {
                self.starved = 0;
                None
            }
            Err(OutOfMemory) => self.after_out_of_memory(thread, machine),
        }
    }

    /// No cells were to be had: after another collection the thread tries again; the greediest
    /// tries once, others as long as it may take the greediest to end. It is told once; where its
    /// handlers then find nothing left either, it is over.
    fn after_out_of_memory(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
    ) -> Option<Step> {
        self.starved += 1;
        let tries = if self.kernel.is_greediest(thread) { 1 } else { STARVED_MAX };
        if self.starved <= tries {
            return Some(self.after_collection());
        }
        self.starved = 0;
        if core::mem::replace(&mut self.told, true) {
            let object = self.kernel.out_of_memory;
            return Some(self.end(thread, machine, Exit::Uncaught(object)));
        }
        thread.requests.fetch_or(REQUEST_OUT_OF_MEMORY, Ordering::AcqRel);
        None
    }

    /// The thread is over.
    fn end(&mut self, thread: &Arc<LispThread>, machine: &mut Machine, exit: Exit) -> Step {
        let kernel = Arc::clone(&self.kernel);
        if let Exit::Quit(code) = exit {
            // Before anybody hears of this thread's end, and ends by it.
            kernel.exiting.store(true, Ordering::Relaxed);
            kernel.main_ended(Ended::Exit(code));
        }
        if let (Exit::Uncaught(object), false) = (exit, self.terminating) {
            self.report_unheard(thread, machine, object);
        }
        mutex::abandon(&kernel, machine, thread);
        let status = match exit {
            _ if self.terminating => Status::Terminated,
            Exit::Finished(value) => Status::Returned(value),
            Exit::Uncaught(object) => Status::Uncaught(object),
            _ => Status::Terminated,
        };
        if self.is_main(thread) && !matches!(exit, Exit::Quit(_)) {
            kernel.main_ended(self.ended(machine, exit));
        }
        let joiners = {
            let mut inner = lock(&thread.inner);
            inner.status = status;
            core::mem::take(&mut inner.joiners)
        };
        for joiner in joiners {
            joiner.wake(&kernel);
        }
        if kernel.threads.unregister(thread) == 0 {
            kernel.report_deadlock();
        }
        Step::Done
    }

    /// Says on standard error what ended a thread, unless somebody waits for its end just then: he
    /// gets it raised. Who joins the thread later gets it raised as well; better told twice than
    /// never.
    fn report_unheard(&self, thread: &Arc<LispThread>, machine: &Machine, object: Value) {
        let is_heard = self.is_main(thread) || !lock(&thread.inner).joiners.is_empty();
        if is_heard || self.kernel.exiting.load(Ordering::Relaxed) {
            return;
        }
        // The object is an argument of the call that the machine stopped in, so that a collection
        // keeps it meanwhile.
        let report = Report::of_thread(&self.kernel, thread, machine, object);
        self.kernel.threads.outside(thread, || {
            // Nobody can be told that standard error is closed.
            let _ = writeln!(std::io::stderr(), "{report}");
        });
    }

    /// Whether it is the thread that somebody has evaluate a text.
    fn is_main(&self, thread: &Arc<LispThread>) -> bool {
        lock(&self.kernel.main).as_ref().is_some_and(|main| Arc::ptr_eq(main, thread))
    }

    /// What the one who waits for the program is told where its main thread ends.
    fn ended(&self, machine: &mut Machine, exit: Exit) -> Ended {
        match exit {
            Exit::Finished(value) => Ended::Values(printed(value)),
            Exit::Uncaught(object) => Ended::Report(Report::new(&self.kernel, machine, object)),
            other => Ended::Report(Report::internal(&format!("{other:?}"))),
        }
    }
}

/// The values of the forms of a text, as a prompt shows them.
fn printed(mut results: Value) -> Vec<String> {
    let mut values = Vec::new();
    while let Some((result, rest)) = results.uncons() {
        let each: Vec<Value> = if result.is_kind(crate::heap::Kind::Values) {
            (0..result.size_words()).map(|i| result.field_at(i)).collect()
        } else {
            vec![result]
        };
        let shown = each.into_iter().filter(|&value| value != Value::UNSPECIFIED);
        values.extend(shown.map(crate::printer::to_message));
        results = rest;
    }
    values
}
