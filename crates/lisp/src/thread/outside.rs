//! Steps of Lisp threads outside Lisp: in a raw kernel call, or in long work that needs no Lisp
//! values.
//!
//! ```text
//!  step        publishes its roots; SAFE ──► call ──► RUNNING; waits if the world is stopped;
//!              withdraws the roots
//!  collector   stops the world, does not wait for this step, marks the published roots
//! ```
#![expect(unsafe_code, reason = "the pointers published for the collector have no lock")]

use crate::kernel::Kernel;
use crate::kernel::calls::Counted;
use crate::kernel::session::thread::{
    LispThread, REQUEST_ABANDON, REQUEST_INTERRUPT, REQUEST_OUT_OF_MEMORY, REQUEST_TERMINATE, SAFE,
    lisp_thread,
};
use core::any::Any;
use kyocho_heap::account::Account;
use kyocho_heap::heap::context::{Caller, Host, ThreadContext, Time};
use kyocho_heap::heap::pause::Until;
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_vm::machine::outside::PublishedRoots;
use std::sync::Arc;

/// A thread outside Lisp, until its call returns or unwinds.
struct Outside<'a> {
    kernel: &'a Kernel,
    thread: &'a LispThread,
    /// When it began to wait in the kernel; that time is not charged.
    waits_from_ns: Option<u64>,
}

impl<'a> Outside<'a> {
    fn go(kernel: &'a Kernel, thread: &'a LispThread, context: &ThreadContext, time: Time) -> Self {
        let waits_from_ns = (time == Time::Waiting).then(monotonic_ns);
        // SAFETY: this is the thread's own step, which is running.
        unsafe { thread.publish_roots(Some(PublishedRoots::of(context))) };
        thread.state.store(SAFE, Ordering::SeqCst);
        let outside = Self { kernel, thread, waits_from_ns };
        if kernel.is_torture_due(time == Time::Computing) {
            kernel.collect_meanwhile();
        }
        outside
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        let Self { kernel, thread, waits_from_ns } = *self;
        if let Some(begin_ns) = waits_from_ns {
            thread.outside_ns.fetch_add(monotonic_ns() - begin_ns, Ordering::Relaxed);
        }
        kernel.threads.return_from_outside(thread);
        // SAFETY: this is the thread's own step, which is running again.
        unsafe { thread.publish_roots(None) };
    }
}

/// Whether the thread must give up its work.
fn must_give_up(thread: &LispThread, until: Until) -> bool {
    const ENDS: u32 = REQUEST_TERMINATE | REQUEST_ABANDON;
    const STOPS: u32 = ENDS | REQUEST_INTERRUPT | REQUEST_OUT_OF_MEMORY;
    let requests = match until {
        Until::Stopped => STOPS,
        Until::Ended => ENDS,
    };
    let is_kill_pending = || thread.microprocess.get().is_some_and(Microprocess::is_kill_pending);
    thread.requests.load(Ordering::Acquire) & requests != 0 || is_kill_pending()
}

impl Caller for LispThread {
    fn has_request(&self) -> bool {
        Self::has_request(self)
    }

    fn session(&self) -> &(dyn Any + Send + Sync) {
        &self.session.surroundings
    }
}

impl Host for Kernel {
    #[inline]
    fn is_wanted(&self, thread: Value) -> bool {
        let microprocess = lisp_thread(thread).and_then(|thread| thread.microprocess.get());
        microprocess.is_some_and(Microprocess::is_wanted)
    }

    #[cold]
    fn let_collections_run(&self, context: &ThreadContext, until: Until) -> Result<()> {
        let Some(thread) = lisp_thread(context.thread) else { return Ok(()) };
        if must_give_up(thread, until) {
            return Err(Raise::new(Cause::Interrupted));
        }
        self.outside(context, Time::Computing, &mut || ());
        Ok(())
    }

    fn outside(&self, context: &ThreadContext, time: Time, work: &mut dyn FnMut()) {
        let Some(thread) = lisp_thread(context.thread) else { return work() };
        if time == Time::Waiting {
            self.calls.count(Counted::Host, 1);
        }
        let _comes_back = Outside::go(self, thread, context, time);
        work();
    }

    fn account(&self, thread: Value) -> Option<Arc<Account>> {
        lisp_thread(thread).map(|thread| Arc::clone(&thread.session.account))
    }

    fn caller(&self, thread: Value) -> Option<Arc<dyn Caller>> {
        let thread = lisp_thread(thread)?;
        Some(Arc::<LispThread>::clone(thread))
    }

    fn out_of_memory(&self) -> Option<Value> {
        Some(self.out_of_memory)
    }

    fn count_call(&self, number: usize) {
        self.calls.count_procedure(number);
    }
}

impl Kernel {
    /// Under torture: a collection begins and ends while the caller is outside.
    fn collect_meanwhile(&self) {
        let next = self.collector.next();
        self.collector.request();
        while self.heap.statistics().collections < next {
            self.collector.request_until(next);
            let _early = kyocho_sys::sleep::until(monotonic_ns() + NAP_NS);
        }
    }
}

/// Time between two checks whether the collection has ended.
const NAP_NS: u64 = 200_000;
