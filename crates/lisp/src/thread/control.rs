//! Control procedures of threads: SRFI 18, priorities, and sleeping in the kernel.

use crate::kernel::session::thread::{LispThread, READY, RUNNING, Status, ThreadObject, thread_of};
use crate::kernel::timeout::{Time, duration_of, until};
use crate::kernel::wait::OnThread;
use crate::kernel::{Kernel, lock};
use crate::thread::{ThreadContext, runner};
use kyocho_heap::heap::barrier;
use kyocho_heap::heap::cache_size::CELLS_MIN;
use kyocho_heap::heap::{CellCache, Kind};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::{Deadline, Gone, Microprocess, Priority};
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::procedure;
use kyocho_vm::machine::wait::Wait;
use kyocho_vm::machine::{Exit, Machine};
use std::sync::Arc;

pub(super) const TABLE: &[Procedure] = &[
    Procedure::new("current-thread", 0, Some(0), |m, _, _| {
        Ok(Control::Value(m.mutator.context.thread))
    }),
    Procedure::new("thread?", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(Value::boolean(frame.get(0).as_foreign::<ThreadObject>().is_some())))
    }),
    Procedure::new("make-thread", 1, Some(2), |m, frame, count| {
        make(m, frame, count).map(Control::Value)
    }),
    Procedure::new("thread-start!", 1, Some(1), |m, frame, _| {
        start(m, argument("thread-start!", frame)?)?;
        Ok(Control::Value(frame.get(0)))
    }),
    Procedure::new("spawn", 1, Some(2), |m, frame, count| {
        let object = make(m, frame, count)?;
        if let Some(thread) = object.as_foreign::<ThreadObject>() {
            start(m, &thread.0)?;
        }
        Ok(Control::Value(object))
    }),
    Procedure::new("thread-number", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(Value::fixnum(argument("thread-number", frame)?.id as i64)))
    }),
    Procedure::new("thread-name", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(lock(&argument("thread-name", frame)?.inner).name))
    }),
    Procedure::new("thread-specific", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(lock(&argument("thread-specific", frame)?.inner).specific))
    }),
    Procedure::new("thread-specific-set!", 2, Some(2), |_, frame, _| {
        let mut inner = lock(&argument("thread-specific-set!", frame)?.inner);
        barrier::overwrite(|| inner.specific);
        inner.specific = frame.get(1);
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("thread-priority", 1, Some(1), |_, frame, _| {
        let level = lock(&argument("thread-priority", frame)?.inner).priority.level();
        Ok(Control::Value(Value::fixnum(level.into())))
    }),
    Procedure::new("thread-priority-set!", 2, Some(2), set_priority),
    Procedure::new("thread-yield!", 0, Some(0), yield_processor),
    Procedure::new("thread-sleep!", 1, Some(1), sleep),
    Procedure::new("raw-sleep", 1, Some(1), raw_sleep),
    Procedure::new("thread-terminate!", 1, Some(1), terminate),
    Procedure::new("%threads", 0, Some(0), |m, _, _| threads(m).map(Control::Value)),
    Procedure::new("%suspend", 1, Some(1), |_, frame, _| {
        order(argument("suspend", frame)?, Microprocess::suspend)
    }),
    Procedure::new("%resume", 1, Some(1), |_, frame, _| {
        order(argument("resume", frame)?, Microprocess::resume)
    }),
    Procedure::new("current-time", 0, Some(0), |m, _, _| time(m, Deadline::now().ns())),
    Procedure::new("time?", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(Value::boolean(frame.get(0).as_foreign::<Time>().is_some())))
    }),
    Procedure::new("time->seconds", 1, Some(1), |m, frame, _| {
        let value = frame.get(0);
        let time: &Time = value
            .as_foreign()
            .ok_or_else(|| Raise::wrong_type("time->seconds", 1, "time", value))?;
        Ok(Control::Value(m.mutator.flonum(time.0 as f64 / 1e9)?))
    }),
    Procedure::new("seconds->time", 1, Some(1), |m, frame, _| {
        let ns = duration_of("seconds->time", 1, frame.get(0))?.as_nanos();
        time(m, u64::try_from(ns).unwrap_or(u64::MAX))
    }),
];

fn time(machine: &mut Machine, ns: u64) -> Result<Control> {
    Ok(Control::Value(machine.mutator.foreign(Box::new(Time(ns)))?))
}

fn argument(who: &'static str, frame: Frame) -> Result<&'static Arc<LispThread>> {
    thread_of(who, 1, frame.get(0))
}

/// `(make-thread thunk [name])`.
fn make(machine: &mut Machine, frame: Frame, count: usize) -> Result {
    let thunk = frame.get(0);
    if !matches!(
        thunk.kind(),
        Some(Kind::Closure | Kind::Primitive | Kind::Continuation | Kind::Parameter)
    ) {
        return Err(Raise::wrong_type("make-thread", 1, "procedure", thunk));
    }
    let kernel = machine.kernel()?;
    // A thread without a name is named after its procedure.
    let name = match count {
        1 => procedure::name_of(thunk).map_or(Value::FALSE, Value::symbol),
        _ => frame.get(1),
    };
    let session = Arc::clone(&machine.thread()?.session);
    let thread = Arc::new(LispThread::new(kernel.threads.new_id(), session, thunk, name));
    if let Ok(me) = machine.thread() {
        let priority = lock(&me.inner).priority;
        lock(&thread.inner).priority = priority;
    }
    let object = machine.mutator.foreign(Box::new(ThreadObject(Arc::clone(&thread))))?;
    lock(&thread.inner).object = object;
    Ok(object)
}

/// `(%threads)`: the started threads of the caller's account. Each is a vector: number, thread,
/// what it waits for, cells taken, nanoseconds run, whether it is runnable, display name.
fn threads(machine: &mut Machine) -> Result {
    let (kernel, me) = (machine.kernel()?, machine.thread()?);
    let mut list = Value::NIL;
    for thread in kernel.threads.started().iter().rev() {
        if !Arc::ptr_eq(&thread.session.account, &me.session.account) {
            continue;
        }
        let parked = thread.parked.load(Ordering::Acquire);
        let (object, waits_for) = {
            let inner = lock(&thread.inner);
            (inner.object, inner.waits_for.filter(|_| parked))
        };
        let waits_for = match waits_for {
            Some(what) => machine.mutator.string(what)?,
            None => Value::FALSE,
        };
        let number = |count: &AtomicU64| {
            Value::fixnum(count.load(Ordering::Relaxed).min(i64::MAX as u64 >> 4) as i64)
        };
        let (taken, ran) = (number(&thread.taken), number(&thread.ran_ns));
        let runs = matches!(thread.state.load(Ordering::Acquire), RUNNING | READY);
        let id = Value::fixnum(thread.id as i64);
        let title = machine.mutator.string(&thread.title())?;
        let fields = [id, object, waits_for, taken, ran, Value::boolean(runs), title];
        let entry = machine.mutator.vector_of(&fields)?;
        list = machine.mutator.cons(entry, list)?;
    }
    Ok(list)
}

/// Sends an order to a thread's microprocess. Does nothing if the thread has not begun or has
/// ended.
fn order(
    thread: &LispThread,
    order: impl FnOnce(&Microprocess) -> core::result::Result<(), Gone>,
) -> Result<Control> {
    let given = thread.microprocess.get().is_some_and(|microprocess| order(microprocess).is_ok());
    Ok(Control::Value(Value::boolean(given)))
}

/// Starts a thread.
///
/// # Errors
/// The thread was started before; memory is out; or the account's bound is reached.
pub(crate) fn start(machine: &mut Machine, thread: &Arc<LispThread>) -> Result<()> {
    let kernel = machine.kernel()?;
    let (thunk, object) = {
        let inner = lock(&thread.inner);
        let Status::New(thunk) = inner.status else {
            let message = "thread-start!: the thread was started before";
            return Err(Raise::error(message, vec![inner.object]));
        };
        (thunk, inner.object)
    };
    let context = machine.mutator.context.inherited(object);
    kernel.equip(thread, context, thunk, &[]);
    runner::start(&kernel, thread)
        .map_err(|error| Raise::error(format!("thread-start!: {error}"), Vec::new()))
}

fn set_priority(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let thread = argument("thread-priority-set!", frame)?;
    let most = machine.thread()?.session.account.bounds().priority_max;
    let level = frame.get(1).as_fixnum().and_then(|level| u8::try_from(level).ok());
    let priority = level.and_then(Priority::new).filter(|&priority| priority <= most);
    let Some(priority) = priority else {
        let bound = format!("0 <= priority <= {}", most.level());
        return Err(Raise::out_of_range("thread-priority-set!", 2, frame.get(1), bound));
    };
    lock(&thread.inner).priority = priority;
    thread.apply_priority();
    Ok(Control::Value(Value::UNSPECIFIED))
}

fn yield_processor(machine: &mut Machine, _: Frame, _: usize) -> Result<Control> {
    if machine.wait.take().is_some() {
        return Ok(Control::Value(Value::UNSPECIFIED));
    }
    machine.wait = Some(Wait::on(Value::FALSE));
    Ok(Control::Stop(Exit::Yield))
}

/// `(thread-sleep! timeout)`.
fn sleep(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let wait = match machine.wait.take() {
        Some(wait) => wait,
        None => until("thread-sleep!", 1, Value::FALSE, Some(frame.get(0)))?,
    };
    let Some(deadline) = wait.deadline.filter(|_| !wait.is_over()) else {
        return Ok(Control::Value(Value::UNSPECIFIED));
    };
    machine.wait = Some(wait);
    Ok(Control::Stop(Exit::ParkUntil(deadline.ns())))
}

/// `(raw-sleep seconds)`: sleeps in the kernel, as a foreign library might. The runtime detects
/// that the kernel thread sleeps and gives the virtual processor to others.
fn raw_sleep(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let deadline = match machine.wait.take().and_then(|wait| wait.deadline) {
        Some(deadline) => Some(deadline),
        None => Deadline::after(duration_of("raw-sleep", 1, frame.get(0))?),
    };
    let Some(deadline) = deadline else {
        return Err(Raise::out_of_range("raw-sleep", 1, frame.get(0), "less than a century"));
    };
    let me = machine.thread()?;
    let is_wanted = || me.has_request();
    machine.outside(frame, count, || {
        while !is_wanted() && kyocho_sys::sleep::until(deadline.ns()).is_err() {}
    });
    if Deadline::now() >= deadline || !is_wanted() {
        return Ok(Control::Value(Value::UNSPECIFIED));
    }
    machine.wait = Some(Wait { deadline: Some(deadline), ..Wait::on(Value::FALSE) });
    Ok(Control::Stop(Exit::Poll))
}

/// `(thread-terminate! thread)`.
fn terminate(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let thread = argument("thread-terminate!", frame)?;
    let me = machine.thread()?;
    let joiners = {
        let mut inner = lock(&thread.inner);
        if inner.status.has_ended() {
            return Ok(Control::Value(Value::UNSPECIFIED));
        }
        if let Status::New(thunk) = inner.status {
            barrier::overwrite(|| thunk);
            inner.status = Status::Terminated;
            core::mem::take(&mut inner.joiners)
        } else {
            Vec::new()
        }
    };
    for joiner in joiners {
        joiner.wake();
    }
    thread.terminate();
    if Arc::ptr_eq(thread, me) {
        return Ok(Control::Stop(Exit::Poll));
    }
    Ok(Control::Value(Value::UNSPECIFIED))
}

impl Kernel {
    /// Creates the machine of a thread that has not started.
    #[expect(unsafe_code, reason = "the thread is not started")]
    pub(crate) fn equip(
        &self,
        thread: &LispThread,
        context: ThreadContext,
        procedure: Value,
        arguments: &[Value],
    ) {
        let heap = Arc::clone(&self.heap);
        // A handler of an exception raised at the end of the stack may capture the stack, so the
        // heap must have room for it.
        let bytes = self.options.stack_max_bytes.min(self.options.memory_max_bytes / 4);
        let mut machine = Machine::new(heap, Arc::clone(&self.hooks), context, bytes, procedure);
        match self.options.cell_cache {
            CellCache::Off => machine.mutator.fix_want(CELLS_MIN),
            CellCache::Fixed(cells) => machine.mutator.fix_want(CELLS_MIN.max(cells as usize)),
            // Until its rate is known.
            CellCache::Auto => machine.mutator.set_want(CELLS_MIN),
        }
        machine.restart(procedure, arguments);
        // SAFETY: the thread has not started, so no other thread uses its machine.
        *unsafe { thread.machine() } = Some(Box::new(machine));
    }
}
