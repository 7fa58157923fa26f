//! A step of a Lisp thread that is outside of Lisp: in a raw kernel call, or in long work that needs no Lisp value.
//!
//! ```text
//!  step        hands over what it keeps; SAFE ──► call ──► RUNNING; world stopped? wait ──► takes it back
//!  collector                stops the world, does not wait for it, marks what was handed over
//! ```
#![expect(unsafe_code, reason = "what is handed over to the collector is a place without a lock")]

use crate::heap::Mutator;
use crate::machine::outside::HandOver;
use crate::system::kernel::Kernel;
use crate::system::statistics::Counted;
use crate::thread::ThreadContext;
use crate::thread::lisp_thread::{LispThread, SAFE};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;

/// Whose time it is that the thread spends outside.
#[derive(Clone, Copy)]
enum Time {
    /// Nobody's: it waits in the kernel since then.
    SleepingFrom(u64),
    /// The thread's: it computes.
    Computing,
}

/// A thread that touches nothing of Lisp, until it returns or unwinds.
struct Outside<'a> {
    kernel: &'a Kernel,
    thread: &'a LispThread,
    time: Time,
}

impl<'a> Outside<'a> {
    fn go(kernel: &'a Kernel, thread: &'a LispThread, context: &ThreadContext, time: Time) -> Self {
        // SAFETY: this is the thread's own step, which runs.
        unsafe { thread.hand_over(Some(HandOver::of(context))) };
        thread.state.store(SAFE, Ordering::SeqCst);
        let outside = Self { kernel, thread, time };
        if kernel.is_torture_due(matches!(time, Time::Computing)) {
            kernel.collect_meanwhile();
        }
        outside
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        let Self { kernel, thread, time } = *self;
        if let Time::SleepingFrom(begin_ns) = time {
            thread.outside_ns.fetch_add(monotonic_ns() - begin_ns, Ordering::Relaxed);
        }
        kernel.threads.come_back(thread);
        // SAFETY: this is the thread's own step, which runs again.
        unsafe { thread.hand_over(None) };
    }
}

impl ThreadContext {
    /// Runs `call`, which touches nothing of Lisp and may block in the kernel: collections go on
    /// meanwhile, and the virtual processor serves others.
    fn outside<T>(&self, call: impl FnOnce() -> T) -> T {
        let (Some(kernel), Some(thread)) = (&self.kernel, self.lisp_thread()) else {
            return call();
        };
        kernel.calls.count(Counted::Host, 1);
        let _comes_back = Outside::go(kernel, thread, self, Time::SleepingFrom(monotonic_ns()));
        call()
    }

    /// The same for work that computes: the thread pays for its time.
    pub(super) fn apart<T>(&self, work: impl FnOnce() -> T) -> T {
        let (Some(kernel), Some(thread)) = (&self.kernel, self.lisp_thread()) else {
            return work();
        };
        let _comes_back = Outside::go(kernel, thread, self, Time::Computing);
        work()
    }
}

impl Mutator {
    /// Runs `call`, which touches nothing of Lisp and may block in the kernel. Nothing that was got from this mutator stays but what its
    /// context and its machine keep.
    ///
    /// ```compile_fail,E0502
    /// # use kyocho_lisp::{heap::Mutator, value::Value};
    /// fn second(m: &mut Mutator, list: Value) -> Option<Value> {
    ///     let rest = m.unrooted(list).cdr()?;
    ///     m.outside(|| ()); // a collection may go by
    ///     Some(rest.car()?.value())
    /// }
    /// ```
    ///
    /// Without the call in between it is right:
    ///
    /// ```
    /// # use kyocho_lisp::{heap::Mutator, value::Value};
    /// fn second(m: &mut Mutator, list: Value) -> Option<Value> {
    ///     let rest = m.unrooted(list).cdr()?;
    ///     let second = rest.car()?.value();
    ///     Some(second)
    /// }
    /// ```
    pub fn outside<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.context.outside(call)
    }

    /// Does `work`, which touches nothing of Lisp, while collections go by; of its own only what is kept stays.
    pub(crate) fn apart<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.context.apart(work)
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

/// How long one sleeps between two looks whether the collection is over.
const NAP_NS: u64 = 200_000;
