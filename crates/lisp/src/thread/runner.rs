//! The step function of a Lisp thread: runs its machine, and serves the machine's requests.

mod priority;
mod shortage;

use crate::kernel::session::thread::{
    LispThread, REFILL_IDLE, REFILL_REQUESTED, REFILL_SERVED, REQUEST_ABANDON, REQUEST_BACKTRACE,
    REQUEST_DEADLOCK, REQUEST_INTERRUPT, REQUEST_OUT_OF_MEMORY, REQUEST_TERMINATE, Status,
};
use crate::kernel::{Ended, Kernel, lock};
use crate::report::Report;
use crate::shared;
use crate::thread::mutex;
use crate::thread::withdraw::withdraw;
use core::panic::AssertUnwindSafe;
use kyocho_heap::account::{Countable, Exceeded};
use kyocho_heap::heap::barrier;
use kyocho_heap::heap::cache_size::CacheSize;
use kyocho_heap::raise::Raise;
use kyocho_heap::value::Value;
use kyocho_library::port::Role;
use kyocho_microprocess::{Builder, Deadline, Microprocess, Stackless, Step};
use kyocho_syntax::symbol;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_vm::machine::resume::Failure;
use kyocho_vm::machine::{Exit, Machine};
use std::io;
use std::panic::catch_unwind;
use std::sync::Arc;

/// The object that the scheduler steps.
#[derive(Debug)]
pub(crate) struct Runner {
    thread: Arc<LispThread>,
    kernel: Arc<Kernel>,
    /// Whether it is a thread of one of several users, which share the processors.
    shares: bool,
    cache_size: CacheSize,
    /// Cells that the cache had received up to the last refill.
    taken: u64,
    terminating: bool,
    /// Whether a collection has ended since it first requested the cells that it needs now.
    collected: bool,
    /// Continues when more collections than this have ended.
    awaits: Option<u64>,
    /// How often in succession a primitive ran out of memory.
    exhausted: u32,
    /// How often in succession a refill failed.
    starved: u32,
    /// Cells taken when it last waited because the collector was behind.
    paced: u64,
    /// Whether an out-of-memory error is raised if the current primitive fails once more.
    raises_error: bool,
    /// Whether the error has been raised, and its handler uses the reserve.
    error_raised: bool,
}

/// Starts a thread whose machine exists.
///
/// # Errors
/// The account's bound on threads is reached, the session ends, or the host has no memory for the
/// microprocess.
pub(crate) fn start(kernel: &Arc<Kernel>, thread: &Arc<LispThread>) -> io::Result<()> {
    {
        let mut inner = lock(&thread.inner);
        if let Status::New(thunk) = inner.status {
            barrier::overwrite(|| thunk);
        }
        inner.status = Status::Started;
    }
    let priority = thread.base_priority();
    let name = thread.name_outside();
    // The main threads of sessions do not count, so a user can always evaluate and end other
    // threads.
    if !thread.session.is_main(thread) {
        let exceeded = |error: Exceeded| io::Error::other(error.to_string());
        let held = thread.session.account.hold(Countable::Threads).map_err(exceeded)?;
        *lock(&thread.held) = Some(held);
    }
    kernel.threads.register(thread);
    if !thread.session.enter() {
        retire(kernel, thread);
        return Err(io::Error::other("the session ends"));
    }
    let runner = Runner {
        thread: Arc::clone(thread),
        kernel: Arc::clone(kernel),
        shares: thread.session.id != 0,
        cache_size: CacheSize::new(monotonic_ns()),
        taken: 0,
        terminating: false,
        collected: false,
        awaits: None,
        exhausted: 0,
        starved: 0,
        paced: 0,
        raises_error: false,
        error_raised: false,
    };
    let started = Builder::new().name(name).priority(priority).spawn_stackless(Box::new(runner));
    if started.is_err() {
        retire(kernel, thread);
        thread.session.leave();
    }
    started.map(|_| ())
}

/// Removes a thread from the started ones.
fn retire(kernel: &Kernel, thread: &LispThread) {
    kernel.threads.unregister(thread);
    *lock(&thread.held) = None;
}

impl Stackless for Runner {
    fn step(&mut self) -> Step {
        let thread = Arc::clone(&self.thread);
        if thread.parked.swap(false, Ordering::AcqRel) {
            thread.session.activate();
        }
        if self.shares {
            return self.step_within_share(&thread);
        }
        self.step_unshared(&thread)
    }

    /// Ends the thread as `thread-terminate!` does, after a kill from outside Lisp.
    fn killed(&mut self) -> Step {
        self.thread.terminate();
        self.step()
    }
}

impl Runner {
    fn step_now(&mut self, thread: &Arc<LispThread>) -> Step {
        if !self.kernel.threads.enter(thread) {
            return Step::Park;
        }
        // Discards the count of symbols that this kernel thread made for other threads.
        symbol::take_made_bytes();
        let step = self.advance(thread);
        let waits = matches!(step, Step::Park | Step::ParkUntil(_));
        self.kernel.threads.leave(thread, waits);
        step
    }

    #[expect(unsafe_code, reason = "this is the step that owns the machine")]
    fn advance(&mut self, thread: &Arc<LispThread>) -> Step {
        // SAFETY: this is the thread's own step, between `enter` and `leave`.
        let slot = unsafe { thread.machine() };
        let Some(machine) = slot else { return Step::Done };
        machine.mutator.begin_step();
        if thread.microprocess.get().is_none() {
            let me = thread.microprocess.get_or_init(Microprocess::current);
            machine.poll_on(me.poll_word());
            // Its priority may have been set before its microprocess was known.
            thread.apply_priority();
            machine.out_of_memory_is_final = false;
            machine.mutator.spends_reserve = false;
        }
        match thread.refill.load(Ordering::Acquire) {
            // It was woken for another reason; the system-call thread still uses its cache.
            REFILL_REQUESTED => return Step::Park,
            REFILL_SERVED => {
                thread.refill.store(REFILL_IDLE, Ordering::Relaxed);
                self.starved = 0;
                self.collected = machine.mutator.cells.remaining() == 0;
            }
            _ => {}
        }
        if thread.requests.load(Ordering::Acquire) == 0 && self.awaits_collection() {
            return Step::Park;
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
            // After a panic the machine does not run again, but the thread ends properly and its
            // end is reported.
            let exit = catch_unwind(AssertUnwindSafe(|| machine.run())).unwrap_or(Exit::Broken);
            // Reading and expanding do not check the account, so check here.
            if symbol::has_made() && machine.mutator.admit_symbols().is_err() {
                thread.request(REQUEST_OUT_OF_MEMORY);
            }
            self.note_shortage(thread, machine, exit);
            if let Some(step) = self.serve(thread, machine, exit) {
                return step;
            }
        }
    }

    /// Serves the request for which the machine stopped. Returns the result of the step; `None` if
    /// the machine continues.
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
            Exit::Exhausted => self.find_exhausted(thread, machine),
            Exit::Refill(cells) => self.refill(thread, machine, cells),
            Exit::Collect => {
                let wanted = self.kernel.heap.collection_wanted();
                if wanted { self.collection_is_due(machine) } else { None }
            }
            Exit::Park => Some(Step::Park),
            Exit::ParkUntil(ns) => Some(Step::ParkUntil(Deadline::at_ns(ns))),
            Exit::Yield => Some(Step::Yield),
            Exit::Uncaught if self.runs_after_procedures(thread, machine) => {
                self.report_unless_joined(thread, machine);
                lock(&thread.inner).status = Status::Failing(machine.outcome().value());
                self.unwind(thread, machine);
                None
            }
            exit => Some(self.end(thread, machine, exit)),
        }
    }

    /// Serves the requests of other threads. Returns the result of the step if it ends.
    fn serve_requests(&mut self, thread: &Arc<LispThread>, machine: &mut Machine) -> Option<Step> {
        let requests = thread.requests.swap(0, Ordering::AcqRel);
        if requests & REQUEST_BACKTRACE != 0 {
            thread.answer_backtrace_requests(machine);
        }
        if requests & REQUEST_ABANDON != 0 {
            self.terminating = true;
            withdraw(machine, thread);
            machine.finish_as(Value::UNSPECIFIED);
            return Some(self.end(thread, machine, Exit::Finished));
        }
        if requests & REQUEST_TERMINATE != 0 && !self.terminating {
            withdraw(machine, thread);
            self.unwind(thread, machine);
            return None;
        }
        let raise = if requests & REQUEST_INTERRUPT != 0 {
            Raise::error("interrupted", Vec::new())
        } else if requests & REQUEST_DEADLOCK != 0 {
            // A thread may have been woken after the deadlock was detected.
            machine.wait?;
            Raise::error(self.kernel.describe_deadlock(&thread.session), Vec::new())
        } else if requests & REQUEST_OUT_OF_MEMORY != 0 {
            Raise::out_of_memory()
        } else {
            return None;
        };
        withdraw(machine, thread);
        machine.inject(raise).map(|exit| self.end(thread, machine, exit))
    }

    /// Whether the thread, whose exception has no handler, still runs `after` procedures. Those of
    /// a session's main thread are left to the debugger.
    fn runs_after_procedures(&self, thread: &Arc<LispThread>, machine: &Machine) -> bool {
        let winds = !machine.mutator.context.winders.is_nil();
        winds && !self.terminating && !thread.session.is_main(thread)
    }

    /// Runs the `after` procedures, with a time limit; then the thread ends.
    fn unwind(&mut self, thread: &Arc<LispThread>, machine: &mut Machine) {
        self.terminating = true;
        if !machine.mutator.context.winders.is_nil() {
            self.kernel.watchdog.ends(thread);
        }
        machine.unwind();
    }

    /// Ends the thread.
    fn end(&mut self, thread: &Arc<LispThread>, machine: &mut Machine, exit: Exit) -> Step {
        let kernel = Arc::clone(&self.kernel);
        if let Exit::Quit(code) = exit {
            // Before other threads learn of this thread's end, and end because of it.
            thread.session.note_exit();
            thread.session.finish(Ended::Exit(code));
        }
        if exit == Exit::Uncaught && !self.terminating {
            self.report_unless_joined(thread, machine);
        }
        mutex::abandon(machine, thread);
        if machine.has_shared_locks {
            machine.leave(|| shared::abandon(thread));
        }
        // `None` if the session has already been left through an exit of this or another thread.
        let ended = thread.session.is_main(thread).then(|| self.ended(thread, machine, exit));
        if exit == Exit::Uncaught && ended.is_some() && !self.terminating {
            thread.session.keep_failure(|| self.failure(machine));
        }
        if thread.is_policy() {
            kernel.policies.ended(&kernel, thread);
        }
        if self.terminating {
            kernel.watchdog.has_ended(thread);
        }
        let (joiners, final_message) = {
            let mut inner = lock(&thread.inner);
            // A thread that joins this one may start another in its place.
            retire(&kernel, thread);
            let outcome = machine.outcome().value();
            inner.status = match (inner.status, exit) {
                (Status::Failing(object), _) => Status::Uncaught(object),
                _ if self.terminating => Status::Terminated,
                (_, Exit::Finished) => Status::Returned(outcome),
                (_, Exit::Uncaught) => Status::Uncaught(outcome),
                _ => Status::Terminated,
            };
            (core::mem::take(&mut inner.joiners), inner.final_message.take())
        };
        // No other thread waits for this step any more, and it uses no values, so it need not go
        // outside Lisp for this.
        if let Some(words) = final_message {
            thread.session.port(Role::Error).write_line_outside(&words);
        }
        for joiner in joiners {
            joiner.wake();
        }
        if let Some(ended) = ended {
            thread.session.finish(ended);
        }
        if thread.session.leave() == 0 {
            thread.session.report_deadlock(&kernel, thread);
        }
        Step::Done
    }

    /// Writes to standard error why a thread ended, unless a thread is joining it at this moment
    /// and gets the exception. A later join raises it again: reporting twice is better than not at
    /// all.
    fn report_unless_joined(&self, thread: &Arc<LispThread>, machine: &mut Machine) {
        let session = &thread.session;
        let is_reported_elsewhere =
            session.is_main(thread) || !lock(&thread.inner).joiners.is_empty();
        if is_reported_elsewhere || session.is_over() {
            return;
        }
        let report = Report::of_thread(thread, machine, machine.outcome().value());
        machine.leave(|| session.port(Role::Error).write_line_outside(&report.to_string()));
    }

    /// The state for the debugger. Not kept after an out-of-memory error, because it would keep the
    /// memory in use.
    fn failure(&self, machine: &mut Machine) -> Option<Failure> {
        let object = machine.outcome().value();
        (object != self.kernel.out_of_memory).then(|| machine.keep_failure(object))?
    }

    /// The result of the evaluation when its main thread ends.
    fn ended(&self, thread: &LispThread, machine: &mut Machine, exit: Exit) -> Ended {
        match exit {
            Exit::Finished => Ended::Values(printed(machine.outcome().value())),
            Exit::Uncaught => {
                let object = machine.outcome().value();
                Ended::Report(Report::new(&thread.session, machine, object))
            }
            other => Ended::Report(Report::internal(&format!("{other:?}"))),
        }
    }
}

/// The values of the forms of a text, as a prompt shows them.
fn printed(mut results: Value) -> Vec<String> {
    let mut values = Vec::new();
    while let Some((result, rest)) = results.uncons() {
        let each: Vec<Value> = if result.is_kind(kyocho_heap::heap::Kind::Values) {
            (0..result.size_words()).map(|i| result.field_at(i)).collect()
        } else {
            vec![result]
        };
        let shown = each.into_iter().filter(|&value| value != Value::UNSPECIFIED);
        values.extend(shown.map(kyocho_library::printer::to_message));
        results = rest;
    }
    values
}
