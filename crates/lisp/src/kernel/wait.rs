//! Waiting: the common part of mutexes, condition variables, channels and joins.
//!
//! A control procedure that must wait adds its thread to the object's queue, under the object's
//! lock, and stops the machine. When the thread is woken, the procedure is called again and checks
//! again. A wake may be spurious, but none is lost, for two reasons. A thread that leaves a queue
//! without being served passes on a wake that it may have got. A thread that finds by itself what
//! it waits for leaves the queue.

use crate::kernel::session::thread::{LispThread, lisp_thread};
use crate::kernel::{Kernel, lock};
use core::any::Any;
use kyocho_heap::raise::{Raise, Result};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_vm::machine::control::Control;
use kyocho_vm::machine::wait::Wait;
use kyocho_vm::machine::{Exit, Machine};
use std::collections::VecDeque;
use std::sync::Arc;

/// Threads that wait for the same event, first come first served. A thread is in at most one queue,
/// and its flag `queued` tells whether it is in one. The exception is a thread that waits for
/// several channels. It is in a queue of each, and searches the queues itself.
#[derive(Debug, Default)]
pub(crate) struct Waiters(VecDeque<Arc<LispThread>>);

impl Waiters {
    /// Adds a thread unless it is in the queue.
    pub(crate) fn add(&mut self, thread: &Arc<LispThread>) {
        if !thread.queued.swap(true, Ordering::AcqRel) {
            self.0.push_back(Arc::clone(thread));
        }
    }

    /// Removes a thread; `false` if it was not in the queue any more, because it has been woken.
    pub(crate) fn remove(&mut self, thread: &Arc<LispThread>) -> bool {
        let removed = thread.queued.load(Ordering::Acquire) && self.delist(thread);
        if removed {
            thread.queued.store(false, Ordering::Release);
        }
        removed
    }

    /// Whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes the first thread.
    pub(crate) fn wake_one(&mut self) {
        if let Some(thread) = self.0.pop_front() {
            thread.queued.store(false, Ordering::Release);
            thread.wake();
        }
    }

    /// Wakes all threads.
    pub(crate) fn wake_all(&mut self) {
        while !self.0.is_empty() {
            self.wake_one();
        }
    }
}

/// Operations of a machine that runs on a thread of the system.
pub(crate) trait OnThread {
    /// The thread that runs this machine.
    fn thread(&self) -> Result<&'static Arc<LispThread>>;

    /// The system.
    fn kernel(&self) -> Result<Arc<Kernel>>;

    /// Stops the machine until the thread is woken, or until the wait's deadline. The caller holds
    /// the lock under which a waker searches for the thread.
    fn wait_for(&mut self, thread: &Arc<LispThread>, what: &'static str, wait: Wait) -> Control;

    /// Stops the machine until the thread is woken from outside Lisp, for example by a gate. Such a
    /// wait does not count when deadlocks are detected. The wait's deadline is ignored.
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

impl Waiters {
    /// Removes a thread that gives up. If it was woken already, the wake is passed on.
    pub(crate) fn withdraw(&mut self, thread: &Arc<LispThread>) {
        if !self.remove(thread) {
            self.wake_one();
        }
    }
}

/// Operations for threads that are in several queues.
impl Waiters {
    /// Adds a thread unless it is in the queue.
    pub(crate) fn enlist(&mut self, thread: &Arc<LispThread>) {
        if !self.0.iter().any(|waiter| Arc::ptr_eq(waiter, thread)) {
            self.0.push_back(Arc::clone(thread));
        }
    }

    /// Removes a thread; `false` if it was not in the queue any more, because it has been woken.
    pub(crate) fn delist(&mut self, thread: &Arc<LispThread>) -> bool {
        let place = self.0.iter().position(|waiter| Arc::ptr_eq(waiter, thread));
        place.is_some_and(|place| self.0.remove(place).is_some())
    }

    /// Removes the first thread that can be claimed, without waking it.
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
