//! Leaving Lisp: what the collector may access while a thread's step is outside.
//!
//! ```text
//!  step:       &mut Machine ── lend ──► &mut Mutator, which has a pointer to its machine
//!                goes out:   publishes a `PublishedRoots` for the collector; state = SAFE
//!                comes back: state = RUNNING; when the world runs, withdraws the `PublishedRoots`
//!  collector:  world stopped, published ──► context and machine, through the `PublishedRoots`
//! ```
//!
//! A step has the only borrow of its machine, so the collector must not create another one. Instead
//! it uses pointers derived from that borrow by its owner. The owner does not use the borrow until
//! it has withdrawn the pointers: `lend` keeps the machine borrowed, and `outside` its mutator. The
//! two pointers never overlap: the context is reached through the mutator's pointer, the rest of
//! the machine through the machine's.
//!
//! **Invariant:** after a step has been outside, it uses only values that the machine and the
//! context keep. So [`Machine::outcome`] and [`Mutator::unrooted`] return values as [`Unrooted`]:
//! the compiler rejects code that keeps one while the step is outside.
#![expect(unsafe_code, reason = "the collector reads a machine that its step has borrowed")]

use crate::machine::Machine;
use crate::machine::enter::slots_of;
use crate::primitive::Function;
use core::ptr::NonNull;
use kyocho_heap::heap::context::Lender;
use kyocho_heap::heap::{Marker, Mutator, ThreadContext, Unrooted};
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

/// The pointers that a step outside has published for the collector.
#[derive(Clone, Copy, Debug)]
pub struct PublishedRoots {
    context: NonNull<ThreadContext>,
    machine: NonNull<Machine>,
}

impl PublishedRoots {
    /// The pointers for a context in a mutator that its machine has lent.
    ///
    /// # Panics
    /// The mutator was not lent: the collector would not know how far the stack is used.
    pub fn of(context: &ThreadContext) -> Self {
        let machine =
            context.lender.machine().expect("only a call whose frame is recorded goes outside");
        Self { context: NonNull::from(context), machine }
    }

    /// Marks the values kept by the context and the machine.
    ///
    /// # Safety
    /// The world is stopped, and the step that published these pointers is outside.
    pub unsafe fn trace(self, marker: &mut Marker) {
        // SAFETY: the step that shares this borrow only reads while it is outside.
        let context = unsafe { self.context.as_ref() };
        context.trace(marker);
        // SAFETY: the step has lent the machine's mutator, and uses no other part of the machine
        // until it has returned from outside.
        unsafe { trace_rest(self.machine, marker) };
    }
}

impl Machine {
    /// Lends the machine's mutator to `work`, which may go outside or pause. The machine must be
    /// ready for [`trace`](Self::trace): its current frame and the pending arguments are recorded.
    #[inline(always)]
    pub(super) fn lend<T>(&mut self, work: impl FnOnce(&mut Mutator) -> T) -> T {
        let machine = NonNull::from(self);
        // SAFETY: the pointer comes from the borrow of this call, which lasts until the call
        // returns.
        let mutator = unsafe { &mut (*machine.as_ptr()).mutator };
        mutator.context.lender = Lender::of(machine);
        let result = work(mutator);
        mutator.context.lender = Lender::default();
        result
    }

    /// Calls a primitive.
    #[inline(always)]
    pub(super) fn call_primitive(&mut self, function: Function, arguments: &[Value]) -> Result {
        self.lend(|mutator| function(mutator, arguments))
    }

    /// Runs `call` while the machine is stopped. `call` accesses no Lisp values, and may block in
    /// the kernel.
    pub fn leave<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.lend(|mutator| mutator.outside(call))
    }

    /// After `Exit::Finished` the value of the first procedure; after `Exit::Uncaught` the
    /// exception.
    pub fn outcome(&self) -> Unrooted<'_> {
        Unrooted::new(self.outcome, self)
    }

    /// Marks everything that the machine refers to. The machine is stopped, so its stack may be
    /// moved.
    pub fn trace(&mut self, marker: &mut Marker) {
        self.mutator.context.trace(marker);
        if let Some(top) = self.top() {
            let depth = self.stack.depth(self.frame);
            self.stack.give_back(top);
            self.frame = self.stack.frame_at(depth);
        }
        // SAFETY: the caller has the borrow, and nothing else uses it meanwhile.
        unsafe { trace_rest(NonNull::from(self), marker) };
    }

    /// Number of stack words in use; `None` if the first procedure has returned.
    fn top(&self) -> Option<usize> {
        let depth = self.stack.depth(self.frame);
        let slots = self.pending.unwrap_or_else(|| slots_of(self.frame));
        (depth >= 2).then(|| (depth + slots).min(self.stack.words()))
    }
}

/// Marks the values of a machine outside its mutator.
///
/// # Safety
/// Until this returns, no other code uses the machine except its mutator.
unsafe fn trace_rest(machine: NonNull<Machine>, marker: &mut Marker) {
    let machine = machine.as_ptr();
    // SAFETY: the field is outside the mutator, so by the caller's contract nothing else uses it.
    marker.mark(unsafe { (*machine).outcome });
    // SAFETY: as above.
    marker.mark(unsafe { (*machine).underflow }.segment);
    // SAFETY: as above.
    if let Some(wait) = unsafe { (*machine).wait } {
        marker.mark(wait.object);
    }
    // SAFETY: as above.
    let held = unsafe { &(*machine).held };
    held.iter().for_each(|&mutex| marker.mark(mutex));
    // SAFETY: as above.
    let frame = unsafe { (*machine).frame };
    // SAFETY: as above.
    let pending = unsafe { (*machine).pending };
    // SAFETY: as above.
    let stack = unsafe { &mut (*machine).stack };
    let depth = stack.depth(frame);
    if depth < 2 {
        // The machine has finished, so its stack contains no values.
        return;
    }
    let slots = pending.unwrap_or_else(|| slots_of(frame));
    stack.trace((depth + slots).min(stack.words()), marker);
    let limit = stack.limit();
    // SAFETY: as above.
    unsafe { (*machine).limit = limit };
}
