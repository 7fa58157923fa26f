//! Fault injection: a test can make the k-th system call of a kind fail.
//!
//! Most fallible wrappers of this crate call [`check`] before the system call. If nothing is
//! injected, that is one relaxed load. A test sweeps ([`sweep`]): it runs its scenario with call 1
//! failing, then with call 2, and so on until a run meets no fault. Every run must either succeed
//! or report the error, and must leave everything consistent.
//!
//! Injection affects every thread of the process, because a runtime's own threads make the calls
//! that matter. So tests that inject need a test program of their own; within it, injections wait
//! for each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Errno;
use crate::prim::atomic::unmodelled::{AtomicU32, Ordering};

/// A kind of call that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// Mapping memory.
    Mmap,
    /// Advice about memory: guards, discarding.
    Madvise,
    /// Changing protection.
    Mprotect,
    /// Waiting on a futex. An injected fault looks like a wake, whatever the error.
    FutexWait,
    /// Starting a kernel thread.
    ThreadStart,
    /// Reading or setting the CPUs a thread may use.
    Affinity,
    /// Reading or setting a scheduling class or nice value.
    Scheduler,
    /// Installing a signal handler or an alternate stack, changing a mask.
    Signal,
    /// Sending a signal.
    Kill,
    /// Creating or arming a timer.
    Timer,
    /// Opening a file or making a descriptor.
    Open,
    /// Reading from a descriptor.
    Read,
    /// Writing to a descriptor.
    Write,
    /// Setting up or entering an I/O ring.
    Ring,
    /// Making, loading or running a BPF program.
    Bpf,
    /// Registering a thread's area for restartable sequences.
    Rseq,
    /// Asking for page faults, answering them, asking which pages were written.
    Userfault,
}

/// What is armed: 0 for nothing, `ANY` for every kind, otherwise 1 + the kind.
static ARMED: AtomicU32 = AtomicU32::new(0);
/// Remaining calls of that kind up to the failing one; 0 once it has failed.
static REMAINING: AtomicU32 = AtomicU32::new(0);
/// The error number to fail with.
static ERRNO: AtomicU32 = AtomicU32::new(0);
/// Locked while an injection is armed.
static PLANE: Mutex<()> = Mutex::new(());

const ANY: u32 = u32::MAX;

/// Fails if a test has injected a fault for this call.
///
/// # Errors
/// The injected one.
#[inline]
pub fn check(call: Call) -> Result<(), Errno> {
    match ARMED.load(Ordering::Relaxed) {
        0 => Ok(()),
        armed => count_down(armed, call),
    }
}

#[cold]
fn count_down(armed: u32, call: Call) -> Result<(), Errno> {
    if armed != ANY && armed != 1 + call as u32 {
        return Ok(());
    }
    let before =
        REMAINING.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
    match before {
        Ok(1) => Err(Errno::new(ERRNO.load(Ordering::Acquire) as i32)),
        _ => Ok(()),
    }
}

/// Which kinds of call an injection counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// Every call that can fail by injection.
    Any,
    /// Calls of one kind.
    Only(Call),
}

/// An injected fault, armed until dropped.
#[derive(Debug)]
pub struct Injection {
    _plane: MutexGuard<'static, ()>,
}

impl Injection {
    /// Makes the `nth` call (from 1) of `kinds` fail with `errno`, on any thread. Blocks until no
    /// other injection is armed.
    ///
    /// # Panics
    /// `nth` is 0.
    #[must_use]
    pub fn new(kinds: Kinds, nth: u32, errno: Errno) -> Self {
        assert!(nth > 0, "calls are counted from 1");
        let plane = PLANE.lock().unwrap_or_else(PoisonError::into_inner);
        ERRNO.store(errno.number() as u32, Ordering::Release);
        REMAINING.store(nth, Ordering::Release);
        let armed = match kinds {
            Kinds::Any => ANY,
            Kinds::Only(call) => 1 + call as u32,
        };
        ARMED.store(armed, Ordering::Release);
        Self { _plane: plane }
    }

    /// Whether the call has failed.
    #[must_use]
    pub fn fired(&self) -> bool {
        REMAINING.load(Ordering::Acquire) == 0
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        ARMED.store(0, Ordering::Release);
    }
}

/// Runs `scenario` with call 1 of `kinds` failing, then with call 2, and so on until a run meets no
/// fault. Returns the number of runs that met one. `scenario` gets the number of the failing call,
/// and must check its result whether or not it met the fault.
///
/// # Panics
/// More than `faults_max` runs meet a fault.
pub fn sweep(kinds: Kinds, errno: Errno, faults_max: u32, mut scenario: impl FnMut(u32)) -> u32 {
    for nth in 1..=faults_max {
        let injection = Injection::new(kinds, nth, errno);
        scenario(nth);
        if !injection.fired() {
            return nth - 1;
        }
    }
    panic!("more than {faults_max} runs met a fault");
}

#[cfg(test)]
mod tests;
