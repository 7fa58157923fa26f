//! The abstract machine of one Lisp thread: registers, stack, dynamic state.
//!
//! [`Machine::run`] executes until something must be done outside it: a safepoint was requested,
//! cells are needed, the thread must wait, or the program has ended. No state is on the native
//! stack. So a stopped machine needs no native stack, and can continue on any kernel thread.
//!
//! ```text
//! start --> run --> Exit::{Poll, Refill, Collect, Park} --> run --> .. --> Exit::{Finished, ..}
//! ```

pub mod access;
mod builtin;
pub mod condition;
mod continuation;
pub mod control;
mod enter;
mod interpreter;
pub mod outside;
mod own_procedures;
pub mod procedure;
pub mod resume;
mod stack;
pub mod trace;
pub mod wait;

use crate::primitive::Primitive;
use access::{Frame, Pc, Poll};
use control::Procedure;
use kyocho_heap::heap::{Heap, Mutator, ThreadContext, location};
use kyocho_heap::raise::Raise;
use kyocho_heap::value::Value;
use kyocho_syntax::location::Location;
use kyocho_sys::prim::atomic::AtomicU32;
use stack::Stack;
use std::sync::{Arc, OnceLock};
use wait::Wait;

/// Why a machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The poll word is set, or a request has interrupted a primitive.
    Poll,
    /// Continuing needs this many cells.
    Refill(usize),
    /// The heap requests a collection.
    Collect,
    /// A primitive ran out of memory. It is called again after a collection.
    Exhausted,
    /// The thread must wait. It is in the queue of the object that it waits for.
    Park,
    /// The thread must wait, at most until this time on the monotonic clock.
    ParkUntil(u64),
    /// The thread yields to others.
    Yield,
    /// The first procedure returned the machine's [outcome](Machine::outcome).
    Finished,
    /// The outcome is an exception without a handler. The stack is unchanged.
    Uncaught,
    /// The program ends with this exit code.
    Quit(i32),
    /// A frame returned where it must not, or a primitive panicked: a defect of the machine.
    Broken,
}

/// Procedures of the prelude that the machine calls.
#[derive(Debug, Default)]
pub struct Hooks {
    /// `(%raise object continuable?)`.
    pub raise: OnceLock<Location>,
    /// `(%rewind continuation values)`: runs the `dynamic-wind` procedures on the way to a
    /// continuation.
    pub rewind: OnceLock<Location>,
    /// `(%unwind-terminated)`: runs the `dynamic-wind` procedures of a thread that is being
    /// terminated.
    pub terminate: OnceLock<Location>,
}

/// The registers to continue with.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    pc: Pc,
    frame: Frame,
}

/// What is below the frames of a stack: part of a segment of the continuation.
#[derive(Clone, Copy, Debug)]
struct Underflow {
    segment: Value,
    length: usize,
    pc: Pc,
}

/// The machine of one Lisp thread.
#[derive(Debug)]
pub struct Machine {
    /// The thread's access to the heap.
    pub mutator: Mutator,
    pc: Pc,
    frame: Frame,
    limit: Frame,
    poll: Poll,
    stack: Stack,
    underflow: Underflow,
    /// Set while a procedure is about to be entered: the number of its arguments.
    pending: Option<usize>,
    /// The wait that a control procedure is in the middle of.
    pub wait: Option<Wait>,
    /// The channel at which the last search of several channels began: a fraction of 2^64.
    pub select_start: u64,
    /// Mutexes that the thread has locked. It may no longer own some of them.
    pub held: Vec<Value>,
    /// The thread has acquired locks of shared memory. It may have released them since.
    pub has_shared_locks: bool,
    /// The next primitive that finds no memory raises.
    pub out_of_memory_is_final: bool,
    /// An out-of-memory error has been raised. The runner of the machine resets this.
    pub has_raised_out_of_memory: bool,
    /// Where to continue after `Exit::Exhausted`.
    again: Option<Pc>,
    /// The reason of a stop at `Pc::broken`.
    stopped: Option<Exit>,
    /// See [`outcome`](Self::outcome).
    outcome: Value,
    hooks: Arc<Hooks>,
}

/// Installs the procedures that the machine does not define itself. Call this before any other
/// function of [`control`]. Later calls have no effect.
pub fn install(
    primitives: impl Iterator<Item = &'static Primitive>,
    procedures: impl Iterator<Item = &'static Procedure>,
) {
    control::set_tables(primitives.chain(builtin::TABLE), own_procedures::TABLE, procedures);
}

impl Machine {
    /// A machine that will call `thunk`.
    pub fn new(
        heap: Arc<Heap>,
        hooks: Arc<Hooks>,
        context: ThreadContext,
        stack_bytes_max: usize,
        thunk: Value,
    ) -> Self {
        let stack = Stack::new(stack_bytes_max);
        let mut machine = Self {
            mutator: Mutator::new(heap, context),
            pc: Pc::underflow(),
            frame: stack.bottom(),
            limit: stack.limit(),
            poll: Poll::never(),
            stack,
            underflow: Underflow { segment: Value::NIL, length: 0, pc: Pc::underflow() },
            pending: None,
            out_of_memory_is_final: true,
            has_raised_out_of_memory: false,
            again: None,
            stopped: None,
            outcome: Value::UNSPECIFIED,
            wait: None,
            select_start: 0,
            held: Vec::new(),
            has_shared_locks: false,
            hooks,
        };
        machine.restart(thunk, &[]);
        machine
    }

    /// Discards the current computation. The machine will call `procedure` with these arguments,
    /// which must fit an empty stack.
    pub fn restart(&mut self, procedure: Value, arguments: &[Value]) {
        self.underflow = Underflow { segment: Value::NIL, length: 0, pc: Pc::underflow() };
        self.stack.recover();
        self.frame = self.stack.bottom();
        self.frame.set_return_pc(Pc::underflow());
        self.frame.set_value(-1, procedure);
        for (i, &argument) in arguments.iter().enumerate() {
            self.frame.set_value(i as isize, argument);
        }
        self.pending = Some(arguments.len());
        self.wait = None;
    }

    /// Raises at the machine's position: at an instruction that has not begun, or in the call in
    /// which the machine waits. The machine has not finished.
    pub fn inject(&mut self, raise: Raise) -> Option<Exit> {
        self.wait = None;
        self.out_of_memory_is_final = true;
        let next = match self.pending.take() {
            Some(count) => match self.raise_in_callee(self.frame, count, raise) {
                Ok(next) => next,
                Err(exit) => return Some(exit),
            },
            None => self.raise_at(self.pc, self.frame, raise),
        };
        self.pc = next.pc;
        self.frame = next.frame;
        None
    }

    /// Calls the `after` procedures of all active `dynamic-wind` calls, then finishes.
    pub fn unwind(&mut self) {
        self.mutator.context.handlers = Value::NIL;
        match Self::hook(&self.hooks.terminate) {
            Some(procedure) => self.restart(procedure, &[]),
            None => self.restart(Value::FALSE, &[]),
        }
    }

    /// Checks this poll word from now on. The word must live as long as the machine.
    pub fn poll_on(&mut self, word: &AtomicU32) {
        self.poll = Poll::of(word);
    }

    /// Runs until something must be done outside.
    pub fn run(&mut self) -> Exit {
        if let Some(pc) = self.again.take() {
            self.pc = pc;
        }
        if let Some(count) = self.pending.take() {
            match self.enter(self.frame, count) {
                Ok(next) => {
                    self.pc = next.pc;
                    self.frame = next.frame;
                }
                Err(exit) => return exit,
            }
        }
        self.run_instructions()
    }

    /// Whether the primitive is called again after a collection, in place of raising this error.
    pub fn may_try_again(&self, raise: &Raise) -> bool {
        !self.out_of_memory_is_final && raise.is_out_of_memory()
    }

    /// Called before a call with frame `new` if the poll word is set, or if `new` is above the
    /// limit of the stack. Stops the machine, or enlarges the stack and repeats the instruction at
    /// `pc`.
    #[cold]
    #[inline(never)]
    fn safepoint(&mut self, pc: Pc, frame: Frame, new: Frame) -> Result<Next, Exit> {
        if self.poll.is_set() {
            return Err(Exit::Poll);
        }
        let slots = self.stack.depth(new) - self.stack.depth(frame);
        match self.grow(frame, slots) {
            Ok(frame) => Ok(Next { pc, frame }),
            Err(raise) => Ok(self.raise_at(pc, frame, raise)),
        }
    }

    /// Makes room for `slots` above `frame`. Returns the frame, which may have moved.
    fn grow(&mut self, frame: Frame, slots: usize) -> Result<Frame, Raise> {
        let mutator = &self.mutator;
        let grown = self.stack.grow(frame, slots, |bytes| mutator.charge(bytes).is_ok());
        let frame = grown.map_err(|_| Raise::error("recursion too deep", Vec::new()))?;
        self.limit = self.stack.limit();
        Ok(frame)
    }

    #[cold]
    #[inline(never)]
    fn reserve(&mut self, frame: Frame, slots: usize) -> Result<Frame, Next> {
        self.grow(frame, slots).map_err(|raise| match self.raise_in_callee(frame, 0, raise) {
            Ok(next) => next,
            Err(exit) => {
                self.stopped = Some(exit);
                Next { pc: Pc::broken(), frame }
            }
        })
    }

    /// Runs `call` for a control procedure whose frame has `count` arguments. `call` accesses no
    /// Lisp values, and may block in the kernel. Collections can run meanwhile.
    pub fn outside<T>(&mut self, frame: Frame, count: usize, call: impl FnOnce() -> T) -> T {
        self.with_pauses(frame, count, |m| m.outside(call))
    }

    /// As [`outside`](Self::outside), for long work that uses the processor.
    pub fn compute_outside<T>(
        &mut self,
        frame: Frame,
        count: usize,
        work: impl FnOnce() -> T,
    ) -> T {
        self.with_pauses(frame, count, |m| m.compute_outside(work))
    }

    /// Sets the outcome of a machine that will not run again.
    pub fn finish_as(&mut self, outcome: Value) {
        self.outcome = outcome;
    }

    /// Runs `work`, which may [pause](kyocho_heap::heap::pause). Meanwhile the machine can be
    /// traced, like a machine that is about to enter the callee of `frame`.
    pub fn with_pauses<T>(
        &mut self,
        frame: Frame,
        count: usize,
        work: impl FnOnce(&mut Mutator) -> T,
    ) -> T {
        self.frame = frame;
        self.pending = Some(count);
        let result = self.lend(work);
        self.pending = None;
        result
    }

    /// The value of a hook, if the prelude has defined it.
    fn hook(hook: &OnceLock<Location>) -> Option<Value> {
        let value = location::value(hook.get()?);
        (value != Value::UNBOUND).then_some(value)
    }
}
