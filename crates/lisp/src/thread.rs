//! Lisp threads: stackless microprocesses that step a machine.
//!
//! ```text
//! spawn --> Runner::step --> Machine::run --> Exit --> Step --> .. (park, wake) .. --> Done
//! ```
//!
//! **Invariant:** a thread's machine is touched by the kernel thread that runs its step, between
//! `Threads::enter` and `leave`, or by the collector while the world is stopped; by nobody else. Of one whose step is outside, the collector
//! touches what the step has handed over (`machine/outside.rs`).
//! **Lock order:** a channel (several by their addresses), mutex or condition variable; then a
//! thread's `inner`; then the registry. None is held across a safepoint.

pub(crate) mod channel;
pub(crate) mod condvar;
pub(crate) mod control;
pub(crate) mod lisp_thread;
pub(crate) mod mutex;
pub(crate) mod outside;
pub(crate) mod runner;
pub(crate) mod safepoint;
pub(crate) mod select;
pub(crate) mod ticket;
pub(crate) mod wait;

pub use kyocho_heap::heap::context::ThreadContext;

use crate::machine::control::Procedure;
use crate::system::kernel::Kernel;
use crate::system::lisp_session::LispSession;
use crate::thread::lisp_thread::lisp_thread;
use core::any::Any;
use std::sync::Arc;

/// Control procedures of threads, mutexes, condition variables and channels.
pub(crate) const TABLES: [&[Procedure]; 5] =
    [control::TABLE, mutex::TABLE, condvar::TABLE, channel::TABLE, select::TABLE];

/// The system that runs a context's thread, where there is one: primitives run without in tests.
pub(crate) fn kernel(context: &ThreadContext) -> Option<&Kernel> {
    let host: &dyn Any = &**context.host.as_ref()?;
    host.downcast_ref()
}

/// Whose thread it is.
pub(crate) fn session(context: &ThreadContext) -> Option<&Arc<LispSession>> {
    lisp_thread(context.thread).map(|thread| &thread.session)
}

/// Whether somebody wants something of the thread: what waits in the kernel should give up.
pub(crate) fn has_request(context: &ThreadContext) -> bool {
    lisp_thread(context.thread).is_some_and(|thread| thread.has_request())
}

/// The same to ask while the thread is outside.
pub(crate) fn wish(context: &ThreadContext) -> impl Fn() -> bool + use<> {
    let thread = lisp_thread(context.thread).cloned();
    move || thread.as_ref().is_some_and(|thread| thread.has_request())
}
