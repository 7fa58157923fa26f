//! Waiting: what mutexes, condition variables, channels and joins have in common.
//!
//! A control procedure that must wait puts its thread into the object's queue, under the object's
//! lock, and stops the machine; when the thread is woken the procedure is called again and looks
//! anew. A wake may come for nothing; one is never lost, because a thread that leaves a queue without
//! being served hands on the wake it may have got, and one that finds by itself what it waits for leaves
//! the queue.

use crate::system::kernel::{Kernel, lock};
use crate::thread::lisp_thread::{LispThread, lisp_thread};
use core::any::Any;
use core::time::Duration;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::Deadline;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_vm::machine::control::Control;
use kyocho_vm::machine::wait::Wait;
use kyocho_vm::machine::{Exit, Machine};
use std::collections::VecDeque;
use std::sync::Arc;

/// Threads that wait for the same thing, first come first served. A thread is in one queue at most,
/// and knows whether it is; but one that waits for the first of several channels is in a queue of each,
/// and looks for itself there.
#[derive(Debug, Default)]
pub(crate) struct Waiters(VecDeque<Arc<LispThread>>);

impl Waiters {
    /// Adds a thread unless it is there.
    pub(crate) fn add(&mut self, thread: &Arc<LispThread>) {
        if !thread.queued.swap(true, Ordering::AcqRel) {
            self.0.push_back(Arc::clone(thread));
        }
    }

    /// Takes a thread out; `false` where it was not there any more: somebody has woken it.
    pub(crate) fn remove(&mut self, thread: &Arc<LispThread>) -> bool {
        let removed = thread.queued.load(Ordering::Acquire) && self.delist(thread);
        if removed {
            thread.queued.store(false, Ordering::Release);
        }
        removed
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes the first.
    pub(crate) fn wake_one(&mut self) {
        if let Some(thread) = self.0.pop_front() {
            thread.queued.store(false, Ordering::Release);
            thread.wake();
        }
    }

    /// Wakes all.
    pub(crate) fn wake_all(&mut self) {
        while !self.0.is_empty() {
            self.wake_one();
        }
    }
}

/// What a machine is asked that runs on a thread of the system.
pub(crate) trait OnThread {
    /// The thread that runs this machine.
    fn thread(&self) -> Result<&'static Arc<LispThread>>;

    /// The system.
    fn kernel(&self) -> Result<Arc<Kernel>>;

    /// Stops the machine until the thread is woken, or the wait's deadline. Call it with the lock
    /// held under which a waker would look for the thread.
    fn wait_for(&mut self, thread: &Arc<LispThread>, what: &'static str, wait: Wait) -> Control;

    /// Stops the machine until the thread is woken by somebody outside of Lisp: that it waits is no sign of a deadlock.
    fn wait_outside(&mut self, thread: &Arc<LispThread>, what: &'static str, wait: Wait)
    -> Control;
}

impl OnThread for Machine {
    fn thread(&self) -> Result<&'static Arc<LispThread>> {
        lisp_thread(self.mutator.context.thread).ok_or_else(no_system)
    }

    fn kernel(&self) -> Result<Arc<Kernel>> {
        let host = self.mutator.context.host.clone().ok_or_else(no_system)?;
        let host: Arc<dyn Any + Send + Sync> = host;
        host.downcast().map_err(|_| no_system())
    }

    fn wait_for(&mut self, thread: &Arc<LispThread>, what: &'static str, wait: Wait) -> Control {
        self.wait = Some(wait);
        if let Some(deadline) = wait.deadline {
            return Control::Stop(Exit::ParkUntil(deadline.ns()));
        }
        lock(&thread.inner).waits_for = Some(what);
        thread.parked.store(true, Ordering::Release);
        if thread.session.deactivate() == 0
            && let Ok(kernel) = self.kernel()
        {
            thread.session.report_deadlock(&kernel, thread);
        }
        Control::Stop(Exit::Park)
    }

    fn wait_outside(
        &mut self,
        thread: &Arc<LispThread>,
        what: &'static str,
        wait: Wait,
    ) -> Control {
        self.wait = Some(wait);
        lock(&thread.inner).waits_for = Some(what);
        Control::Stop(Exit::Park)
    }
}

fn no_system() -> Raise {
    Raise::error("there are no threads here", Vec::new())
}

/// A wait until what the timeout at this place among the arguments says.
pub(crate) fn until(
    who: &'static str,
    place: usize,
    object: Value,
    timeout: Option<Value>,
) -> Result<Wait> {
    Ok(Wait { deadline: deadline_of(who, place, timeout)?, ..Wait::on(object) })
}

/// What a timeout argument says: seconds from now, a time object, or `#f` for no limit.
fn deadline_of(
    who: &'static str,
    place: usize,
    timeout: Option<Value>,
) -> Result<Option<Deadline>> {
    let Some(timeout) = timeout.filter(|timeout| timeout.is_true()) else { return Ok(None) };
    if let Some(time) = timeout.as_foreign::<crate::thread::control::Time>() {
        return Ok(Some(Deadline::at_ns(time.0)));
    }
    Ok(Deadline::after(duration_of(who, place, timeout)?))
}

/// A number of seconds, at this place among the arguments.
pub(crate) fn duration_of(who: &'static str, place: usize, seconds: Value) -> Result<Duration> {
    let real = match seconds.as_fixnum() {
        Some(whole) => whole as f64,
        None => kyocho_heap::number::Number::of(seconds)
            .ok_or_else(|| Raise::wrong_type(who, place, "real number of seconds", seconds))?
            .to_real(),
    };
    if real.is_nan() {
        return Err(Raise::wrong_type(who, place, "real number of seconds", seconds));
    }
    Ok(Duration::try_from_secs_f64(real.max(0.0)).unwrap_or(Duration::MAX))
}

/// The thread goes on elsewhere in the middle of a wait: it leaves the queue that it is in.
pub(crate) fn withdraw(machine: &mut Machine, thread: &Arc<LispThread>) {
    if let Some(wait) = machine.wait.take() {
        super::control::withdraw(wait.object, thread);
        super::mutex::withdraw(wait.object, thread);
        super::condvar::withdraw(wait.object, thread);
        super::channel::withdraw(wait.object, thread);
        super::select::withdraw(wait.object, thread);
        crate::gate::withdraw(&wait, thread);
    }
}

impl Waiters {
    /// A thread gives up: if it was woken already, the wake is the next one's.
    pub(crate) fn withdraw(&mut self, thread: &Arc<LispThread>) {
        if !self.remove(thread) {
            self.wake_one();
        }
    }
}

/// Of threads that are in several queues.
impl Waiters {
    /// Adds a thread unless it is there.
    pub(crate) fn enlist(&mut self, thread: &Arc<LispThread>) {
        if !self.0.iter().any(|waiter| Arc::ptr_eq(waiter, thread)) {
            self.0.push_back(Arc::clone(thread));
        }
    }

    /// Takes a thread out; `false` where it was not there any more: somebody has woken it.
    pub(crate) fn delist(&mut self, thread: &Arc<LispThread>) -> bool {
        let place = self.0.iter().position(|waiter| Arc::ptr_eq(waiter, thread));
        place.is_some_and(|place| self.0.remove(place).is_some())
    }

    /// Takes out the first that is claimed; it is not woken.
    pub(crate) fn claim_first(
        &mut self,
        claim: impl FnMut(&Arc<LispThread>) -> bool,
    ) -> Option<Arc<LispThread>> {
        let thread = self.0.remove(self.0.iter().position(claim)?)?;
        thread.queued.store(false, Ordering::Release);
        Some(thread)
    }

    /// Bytes that the queue takes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Arc<LispThread>>() * self.0.capacity()
    }
}
