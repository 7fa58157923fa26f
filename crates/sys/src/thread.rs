//! Starting kernel threads, with the fault plane in front.

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
