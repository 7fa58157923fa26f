//! The beginning and the end of a kernel thread, and the reuse of its record and its stacks.
//!
//! ```text
//!   recycled ──► start ──► run: enter, dispatch, leave ──► ended ──► Handle::join ──► retire
//!      ▲                                                                                │
//!      └────────────────────────────────── UNUSED ◄─────────────────────────────────────┘
//! ```
#![expect(unsafe_code, reason = "starts a thread on a stack of the runtime")]

use core::ffi::c_void;
use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kyocho_arch::set_current_thread_word;
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::signal::use_alternate_stack;
use kyocho_sys::thread::{OnStack, start_on};

use super::observed::open_reader;
use super::{ANY_CPU, KernelThread};
use crate::processor::instruments;
use crate::processor::kernel_stack::{self, KernelStack};
use crate::processor::spin;
use crate::processor::vp::Vp;

/// The role in which a kernel thread starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The thread holds the virtual processor.
    Holder,
    /// The thread waits for a virtual processor.
    Spare,
}

/// The right, and the duty, to join a kernel thread.
#[derive(Debug)]
pub(crate) struct Handle {
    thread: &'static KernelThread,
    stack: KernelStack,
    join: OnStack,
}

impl Handle {
    pub(crate) fn thread(&self) -> &'static KernelThread {
        self.thread
    }

    /// Waits for the end of the thread. No other thread may look at it any more.
    pub(crate) fn join(self) {
        self.join.join();
        self.stack.give_back();
        self.thread.close_reader();
        self.thread.retire();
    }

    /// Never joins the thread: it sleeps for ever, with its record and its stacks.
    pub(crate) fn forget(self) {
        let Self { join: _never, .. } = self;
    }
}

/// Records whose kernel threads have ended.
static UNUSED: Mutex<Vec<&'static KernelThread>> = Mutex::new(Vec::new());

fn unused() -> MutexGuard<'static, Vec<&'static KernelThread>> {
    UNUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KernelThread {
    /// A record that no kernel thread uses. Allocates.
    pub(crate) fn recycled() -> &'static Self {
        match unused().pop() {
            Some(record) => record,
            None => Box::leak(Box::new(Self::new(ptr::null_mut()))),
        }
    }

    /// Starts a kernel thread with this record, for `vp`. Allocates.
    pub(crate) fn start(&'static self, vp: &'static Vp, role: Role) -> Result<Handle, Errno> {
        let stack = KernelStack::take().inspect_err(|_| self.retire())?;
        self.beginning.set(Some((vp, role)));
        self.stacks.set(Some(stack));
        let argument = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: no other thread uses the stack until the handle is joined. `run` catches no
        // panic, so a panic ends the process.
        let started = unsafe { start_on(stack.base(), kernel_stack::BASE_BYTES, run, argument) };
        match started {
            Ok(join) => Ok(Handle { thread: self, stack, join }),
            Err(errno) => {
                stack.give_back();
                self.retire();
                Err(errno)
            }
        }
    }

    /// Whether the kernel thread no longer uses its record.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst) != 0
    }

    /// Returns the record for use by the next kernel thread.
    fn retire(&'static self) {
        self.hold.renew();
        self.wait_word.renew();
        self.running.set(None);
        self.nominated.store(ptr::null_mut(), Ordering::Relaxed);
        self.stacks.set(None);
        self.tid.store(0, Ordering::Relaxed);
        self.vp_word.store(ptr::null_mut(), Ordering::Relaxed);
        self.cpu.set(ANY_CPU);
        self.is_exact.set(false);
        self.has_come_back();
        self.ended.store(0, Ordering::Release);
        unused().push(self);
    }
}

/// What a kernel thread runs, from its start to its end.
extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a record, which is never freed.
    let thread = unsafe { &*argument.cast_const().cast::<KernelThread>() };
    let (beginning, stacks) = (thread.beginning.take(), thread.stacks());
    let Some(((vp, role), stack)) = beginning.zip(stacks) else { return ptr::null_mut() };
    thread.host_level.begin(vp.shared().permissions);
    instruments::begin_base();
    thread.become_current(open_reader());
    let shared = vp.shared();
    (shared.dispatcher.enter)(thread, shared);
    if role == Role::Holder {
        thread.pin(vp.cpu());
        spin::wake(vp);
    }
    // SAFETY: the memory belongs to this thread until it is joined. If the host refuses, a stack
    // overflow ends the process without a message.
    let _mute = unsafe { use_alternate_stack(stack.handlers(), kernel_stack::HANDLER_BYTES) };
    if role == Role::Spare {
        vp.pool.put(thread);
        vp.starting.fetch_sub(1, Ordering::SeqCst);
    }
    (shared.dispatcher.dispatch)(thread);
    (shared.dispatcher.leave)(thread, shared);
    // The thread's words end with it. Destructors of thread-local values find it outside the
    // runtimes.
    thread.vp_word.store(ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: null is always valid.
    unsafe { set_current_thread_word(ptr::null_mut()) };
    thread.ended.store(1, Ordering::SeqCst);
    ptr::null_mut()
}
