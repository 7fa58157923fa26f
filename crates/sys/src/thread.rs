//! Starting kernel threads, with fault injection.
#![expect(unsafe_code, reason = "starts threads on stacks of the caller")]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::prim::thread::{Builder, JoinHandle};

/// Starts a kernel thread. Allocates. The thread inherits scheduling class, CPUs and signal mask of
/// the caller.
///
/// # Errors
/// `AGAIN`: the host permits no more threads. `NOMEM`: no memory for its stack.
pub fn start<T: Send + 'static>(
    name: &str,
    stack_bytes: usize,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Errno> {
    fault::check(Call::ThreadStart)?;
    Builder::new()
        .name(name.into())
        .stack_size(stack_bytes)
        .spawn(body)
        .map_err(|error| error.raw_os_error().map_or(Errno::AGAIN, Errno::new))
}

/// A kernel thread on a stack that the caller provided. Join it before the stack is reused.
#[derive(Debug)]
#[must_use = "its stack is in use until it is joined"]
pub struct OnStack(libc::pthread_t);

// SAFETY: an identifier of a thread, which any thread may join.
unsafe impl Send for OnStack {}

/// Starts a kernel thread that runs `body(argument)` on the given stack. Allocates. The thread
/// inherits the same as with [`start`].
///
/// Costs half as much as [`start`]: nothing is mapped or protected. The C library keeps its own
/// data at the top of the stack. The caller provides a guard below, and a stack for signal
/// handlers.
///
/// # Errors
/// As for [`start`].
///
/// # Safety
/// Only the thread uses the stack until it is joined. `body` does not unwind.
#[cfg(not(loom))]
pub unsafe fn start_on(
    stack: NonNull<u8>,
    stack_bytes: usize,
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> Result<OnStack, Errno> {
    fault::check(Call::ThreadStart)?;
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: initialises the attributes.
    check(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
    // SAFETY: initialised above; the caller guarantees the stack.
    let set = check(unsafe {
        libc::pthread_attr_setstack(attributes.as_mut_ptr(), stack.as_ptr().cast(), stack_bytes)
    });
    let mut thread = MaybeUninit::uninit();
    let started = set.and_then(|()| {
        // SAFETY: the attributes are initialised, the result goes to a local variable; the caller
        // guarantees body and stack.
        check(unsafe {
            libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), body, argument)
        })
    });
    // SAFETY: initialised above, not used afterwards.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    started?;
    // SAFETY: a successful call has written it.
    Ok(OnStack(unsafe { thread.assume_init() }))
}

fn check(answer: i32) -> Result<(), Errno> {
    if answer == 0 { Ok(()) } else { Err(Errno::new(answer)) }
}

impl OnStack {
    /// Waits for the thread's end. Its stack is free then.
    ///
    /// # Panics
    /// The thread joins itself.
    pub fn join(self) {
        // SAFETY: started by `start_on` and joined once: `self` is consumed.
        let answer = unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
        assert_eq!(answer, 0, "a thread cannot join itself");
    }
}

#[cfg(test)]
mod tests;
