//! Starting kernel threads, with the fault plane in front.
#![expect(unsafe_code, reason = "starts threads on stacks of the caller")]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::prim::thread::{Builder, JoinHandle};

/// Starts a kernel thread. Allocates; it inherits scheduling class, CPUs and signal mask of the caller.
///
/// # Errors
/// `AGAIN`: the host allows no more threads. `NOMEM`: no memory for its stack.
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

/// A kernel thread on a stack that its starter provided. Must be joined before the stack is used again.
#[derive(Debug)]
#[must_use = "its stack is in use until it is joined"]
pub struct OnStack(libc::pthread_t);

// SAFETY: the name of a thread; any thread may join it.
unsafe impl Send for OnStack {}

/// Starts a kernel thread that runs `body(argument)` on the given stack. Allocates; what it inherits, as for [`start`].
///
/// Half as dear as [`start`]: nothing is mapped, nothing is protected. The C library keeps its own data at the top of the
/// stack; a guard below is the caller's matter, as is a stack for signal handlers.
///
/// # Errors
/// As for [`start`].
///
/// # Safety
/// The stack is the thread's alone until it is joined. `body` does not unwind.
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
    // SAFETY: initialised above; the stack is the caller's promise.
    let set = check(unsafe {
        libc::pthread_attr_setstack(attributes.as_mut_ptr(), stack.as_ptr().cast(), stack_bytes)
    });
    let mut thread = MaybeUninit::uninit();
    let started = set.and_then(|()| {
        // SAFETY: attributes are initialised, the place for the answer is ours; body and stack are the caller's promise.
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
    /// Waits for the thread's end; its stack is free then.
    ///
    /// # Panics
    /// The thread joins itself.
    pub fn join(self) {
        // SAFETY: started by `start_on` and joined once: `self` is consumed.
        let answer = unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
        assert_eq!(answer, 0, "a thread does not join itself");
    }
}

#[cfg(test)]
mod tests;
