//! Signals: handlers, their stacks, masks, and sending a signal to one kernel thread.
#![expect(unsafe_code, reason = "installs handlers")]

use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

pub use libc::siginfo_t as Info;

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::mapping::Mapping;
use crate::memory::{PAGE_BYTES, guard_page};
use crate::raw::call;
use crate::thread_id::ThreadId;

/// Number of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signal(i32);

impl Signal {
    /// Break point.
    pub const TRAP: Self = Self(libc::SIGTRAP);
    /// Invalid memory reference.
    pub const SEGV: Self = Self(libc::SIGSEGV);
    /// Access to memory that nothing backs.
    pub const BUS: Self = Self(libc::SIGBUS);
    /// Urgent data on a socket. Ignored by default and rarely used, so a runtime can use it.
    pub const URG: Self = Self(libc::SIGURG);
    /// The interval timer.
    pub const ALRM: Self = Self(libc::SIGALRM);
    /// User-defined.
    pub const USR1: Self = Self(libc::SIGUSR1);
    /// User-defined.
    pub const USR2: Self = Self(libc::SIGUSR2);
    /// The terminal hung up; by convention, a service reloads its configuration.
    pub const HUP: Self = Self(libc::SIGHUP);
    /// Ctrl-C.
    pub const INT: Self = Self(libc::SIGINT);
    /// Ctrl-\.
    pub const QUIT: Self = Self(libc::SIGQUIT);
    /// A request to terminate.
    pub const TERM: Self = Self(libc::SIGTERM);
    /// Kills the process; cannot be handled.
    pub const KILL: Self = Self(libc::SIGKILL);
    /// A child process has ended or stopped.
    pub const CHLD: Self = Self(libc::SIGCHLD);
    /// Stops the process; cannot be handled.
    pub const STOP: Self = Self(libc::SIGSTOP);
    /// The stop key of the terminal.
    pub const TSTP: Self = Self(libc::SIGTSTP);
    /// A background process reads from its terminal.
    pub const TTIN: Self = Self(libc::SIGTTIN);
    /// A background process writes to its terminal.
    pub const TTOU: Self = Self(libc::SIGTTOU);
    /// The terminal was resized.
    pub const WINCH: Self = Self(libc::SIGWINCH);
    /// A write to a pipe or socket without a reader.
    pub const PIPE: Self = Self(libc::SIGPIPE);

    /// The largest signal number.
    pub const NUMBER_MAX: i32 = 64;

    /// The signal with this number, if it is valid.
    #[must_use]
    pub const fn new(number: i32) -> Option<Self> {
        if number >= 1 && number <= Self::NUMBER_MAX { Some(Self(number)) } else { None }
    }

    /// The `n`-th real-time signal that the C library leaves to programs, counted from 0.
    ///
    /// # Panics
    /// There are fewer.
    #[must_use]
    pub fn realtime(n: i32) -> Self {
        let number = libc::SIGRTMIN() + n;
        assert!(n >= 0 && number <= libc::SIGRTMAX(), "no such real-time signal");
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// A signal handler: gets the signal's number, its cause, and the interrupted context.
pub type Handler = unsafe extern "C" fn(signal: i32, info: *mut Info, context: *mut c_void);

/// Options of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandlerOptions {
    /// Run on the alternate stack of the thread, if it has one (`SA_ONSTACK`).
    pub on_alternate_stack: bool,
    /// Leave the signal itself unblocked, because the handler may switch stacks and never return
    /// here (`SA_NODEFER`).
    pub reentrant: bool,
    /// Restart system calls that the handler interrupts (`SA_RESTART`).
    pub restart_calls: bool,
    /// Block all other signals meanwhile. An alternate stack of the C library or of std has room
    /// for one handler, hardly for two.
    pub alone: bool,
}

/// The previous action of a signal.
#[derive(Clone, Copy)]
pub struct Action(libc::sigaction);

impl core::fmt::Debug for Action {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Action").field("handler", &self.0.sa_sigaction).finish_non_exhaustive()
    }
}

impl Action {
    /// The handler's address; `None` for "default" and "ignore".
    #[must_use]
    pub const fn handler(&self) -> Option<usize> {
        match self.0.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => None,
            address => Some(address),
        }
    }

    /// Does what the action would have done for this occurrence of the signal: for a handler that
    /// finds that the signal is not meant for it. If the action is the default one, it is installed
    /// again, so that the fault recurs and ends the process.
    ///
    /// # Safety
    /// Called inside a handler of `signal`, with the arguments of the handler.
    pub unsafe fn forward(&self, signal: Signal, info: *mut Info, context: *mut c_void) {
        match self.0.sa_sigaction {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                // SAFETY: the caller requests that the previous action be installed.
                let _ends_the_process = unsafe { restore(signal, self) };
            }
            // With or without SA_SIGINFO: extra arguments are harmless in the C calling convention.
            address => {
                // SAFETY: the kernel would have called this address with these arguments.
                let handler: Handler = unsafe { core::mem::transmute::<usize, Handler>(address) };
                // SAFETY: guaranteed by the caller.
                unsafe { handler(signal.number(), info, context) };
            }
        }
    }
}

/// Installs a handler for all threads. Returns the previous action.
///
/// # Errors
/// `INVAL`: the signal cannot be handled.
///
/// # Safety
/// The handler does only what is safe wherever the signal may arrive: no allocation, no lock that
/// the interrupted code may hold, and `errno` preserved ([`preserving_errno`]).
pub unsafe fn install(
    signal: Signal,
    handler: Handler,
    manner: HandlerOptions,
) -> Result<Action, Errno> {
    let mut flags = libc::SA_SIGINFO;
    for (wanted, flag) in [
        (manner.on_alternate_stack, libc::SA_ONSTACK),
        (manner.reentrant, libc::SA_NODEFER),
        (manner.restart_calls, libc::SA_RESTART),
    ] {
        flags |= if wanted { flag } else { 0 };
    }
    let action = libc::sigaction {
        sa_sigaction: handler as *const () as usize,
        sa_mask: if manner.alone { full_set() } else { empty_set() },
        sa_flags: flags,
        sa_restorer: None,
    };
    exchange(signal, &action)
}

/// Makes all threads, and executed programs, ignore `signal`.
///
/// # Errors
/// `INVAL`: the signal cannot be ignored. Injected errors.
pub fn ignore(signal: Signal) -> Result<(), Errno> {
    let action = libc::sigaction {
        sa_sigaction: libc::SIG_IGN,
        sa_mask: empty_set(),
        sa_flags: 0,
        sa_restorer: None,
    };
    exchange(signal, &action).map(drop)
}

/// Installs a previous action again. Returns the current one.
///
/// # Errors
/// As for [`install`].
///
/// # Safety
/// The action is still valid: its code is loaded, and the data that it uses exists.
pub unsafe fn restore(signal: Signal, action: &Action) -> Result<Action, Errno> {
    exchange(signal, &action.0)
}

fn exchange(signal: Signal, action: &libc::sigaction) -> Result<Action, Errno> {
    fault::check(Call::Signal)?;
    let mut before = MaybeUninit::uninit();
    // Through the C library, which supplies the code that returns from a handler.
    // SAFETY: both structures are valid during the call; the callers guarantee the handler.
    let answer = unsafe { libc::sigaction(signal.number(), action, before.as_mut_ptr()) };
    if answer != 0 {
        return Err(Errno::last());
    }
    // SAFETY: the call has succeeded, so it has filled the structure.
    Ok(Action(unsafe { before.assume_init() }))
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set and cannot fail.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised above.
    unsafe { set.assume_init() }
}

fn full_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the set and cannot fail.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: initialised above.
    unsafe { set.assume_init() }
}

/// Runs `body` and preserves `errno` of this kernel thread: for handlers that call the C library.
pub fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the address of this thread's `errno`, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { errno.read() };
    let value = body();
    // SAFETY: code inside a handler stays on its kernel thread.
    unsafe { errno.write(before) };
    value
}

/// Sends a signal to one kernel thread of this process.
///
/// # Errors
/// `SRCH`: it is gone. `AGAIN`: too many queued real-time signals.
pub fn send(thread: ThreadId, signal: Signal) -> Result<(), Errno> {
    fault::check(Call::Kill)?;
    let process = std::process::id() as usize;
    let arguments = [process, thread.number() as usize, signal.number() as usize];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_tgkill, arguments) }?;
    Ok(())
}

/// Whether signals are blocked for this kernel thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Blocked.
    Block,
    /// Delivered, including pending ones.
    Unblock,
}

/// Blocks or unblocks one signal for the calling kernel thread. Returns the previous setting.
///
/// # Errors
/// Injected errors.
pub fn set_delivery(signal: Signal, delivery: Delivery) -> Result<Delivery, Errno> {
    fault::check(Call::Signal)?;
    let bit = 1_u64 << (signal.number() - 1);
    let mut before = 0_u64;
    let how = match delivery {
        Delivery::Block => libc::SIG_BLOCK,
        Delivery::Unblock => libc::SIG_UNBLOCK,
    };
    let arguments =
        [how as usize, &raw const bit as usize, &raw mut before as usize, size_of::<u64>()];
    // SAFETY: the kernel reads one set of 64 signals and writes another.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) }?;
    Ok(if before & bit == 0 { Delivery::Unblock } else { Delivery::Block })
}

/// Blocks all signals of the calling kernel thread until dropped: the nearest a user program gets
/// to disabling interrupts. Two system calls in all.
#[derive(Debug)]
#[must_use = "dropping it delivers the signals"]
pub struct AllBlocked {
    before: u64,
    // Bound to a kernel thread: neither `Send` nor `Sync`.
    _thread: PhantomData<*mut ()>,
}

impl AllBlocked {
    /// Blocks all signals that can be blocked.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Self {
        Self { before: exchange_mask(u64::MAX), _thread: PhantomData }
    }
}

impl Drop for AllBlocked {
    fn drop(&mut self) {
        exchange_mask(self.before);
    }
}

/// Sets the mask of the calling thread and returns the previous one. The kernel refuses no mask.
fn exchange_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    let places = [&raw const mask as usize, &raw mut before as usize];
    let arguments = [libc::SIG_SETMASK as usize, places[0], places[1], size_of::<u64>()];
    // SAFETY: the kernel reads one set of 64 signals and writes another.
    let answer = unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    assert!(answer.is_ok(), "two valid addresses and the size of a set");
    before
}

/// A stack for signal handlers of the calling kernel thread, with a guard page below.
///
/// In use until dropped, on the thread that created it.
#[derive(Debug)]
pub struct AlternateStack {
    before: libc::stack_t,
    _memory: Mapping,
    // Bound to a kernel thread: neither `Send` nor `Sync`.
    _thread: PhantomData<*mut ()>,
}

impl AlternateStack {
    /// Gives the calling kernel thread a stack of at least `bytes` for handlers.
    ///
    /// # Errors
    /// `NOMEM`; `PERM` when called on an alternate stack.
    pub fn install(bytes: usize) -> Result<Self, Errno> {
        let bytes = bytes.max(libc::MINSIGSTKSZ * 2).next_multiple_of(PAGE_BYTES);
        let memory = Mapping::reserve(bytes + PAGE_BYTES)?;
        let guard = ptr::with_exposed_provenance_mut(memory.base());
        let guard = NonNull::new(guard).ok_or(Errno::NOMEM)?;
        // SAFETY: the first page of memory that is used here only.
        unsafe { guard_page(guard) }?;
        let stack = libc::stack_t {
            ss_sp: ptr::with_exposed_provenance_mut(memory.base() + PAGE_BYTES),
            ss_flags: 0,
            ss_size: bytes,
        };
        fault::check(Call::Signal)?;
        let before = exchange_stack(&stack)?;
        Ok(Self { before, _memory: memory, _thread: PhantomData })
    }
}

/// Size of this kernel thread's stack for handlers in bytes; 0 if it has none.
///
/// # Errors
/// Injected errors.
pub fn alternate_stack_bytes() -> Result<usize, Errno> {
    fault::check(Call::Signal)?;
    let mut now = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: the kernel writes one structure.
    unsafe { call(libc::SYS_sigaltstack, [0, &raw mut now as usize]) }?;
    Ok(if now.ss_flags & libc::SS_DISABLE == 0 { now.ss_size } else { 0 })
}

/// Makes the memory at `base` this kernel thread's stack for handlers, until the thread ends.
///
/// # Errors
/// As for [`AlternateStack::install`].
///
/// # Safety
/// Only this thread uses the memory, as long as it lives.
pub unsafe fn use_alternate_stack(base: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    fault::check(Call::Signal)?;
    let stack = libc::stack_t { ss_sp: base.as_ptr().cast(), ss_flags: 0, ss_size: bytes };
    exchange_stack(&stack)?;
    Ok(())
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // Fails only on the alternate stack itself, where it must not be dropped.
        let answer = exchange_stack(&self.before);
        assert!(answer.is_ok(), "alternate stack dropped while in use");
    }
}

fn exchange_stack(stack: &libc::stack_t) -> Result<libc::stack_t, Errno> {
    let mut before =
        libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    let arguments = [ptr::from_ref(stack) as usize, &raw mut before as usize];
    // SAFETY: the kernel reads one structure and writes the other; the memory lives in
    // `AlternateStack`.
    unsafe { call(libc::SYS_sigaltstack, arguments) }?;
    Ok(before)
}

#[cfg(test)]
mod tests;
