//! Signals: handlers, the stack they run on, masks, sending one to a kernel thread.
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
    /// Memory reference that nothing backs.
    pub const BUS: Self = Self(libc::SIGBUS);
    /// Urgent data on a socket: ignored by default and hardly used, which makes it free for a runtime.
    pub const URG: Self = Self(libc::SIGURG);
    /// The interval timer.
    pub const ALRM: Self = Self(libc::SIGALRM);
    /// For users.
    pub const USR1: Self = Self(libc::SIGUSR1);
    /// For users.
    pub const USR2: Self = Self(libc::SIGUSR2);
    /// The terminal hung up; by custom, a service reads its configuration again.
    pub const HUP: Self = Self(libc::SIGHUP);
    /// Ctrl-C.
    pub const INT: Self = Self(libc::SIGINT);
    /// Ctrl-\.
    pub const QUIT: Self = Self(libc::SIGQUIT);
    /// A polite request to end.
    pub const TERM: Self = Self(libc::SIGTERM);
    /// Ended by the host at once.
    pub const KILL: Self = Self(libc::SIGKILL);
    /// A child process has ended or stopped.
    pub const CHLD: Self = Self(libc::SIGCHLD);
    /// Stops whom it is sent to.
    pub const STOP: Self = Self(libc::SIGSTOP);
    /// The terminal's key for stopping.
    pub const TSTP: Self = Self(libc::SIGTSTP);
    /// A background process reads from its terminal.
    pub const TTIN: Self = Self(libc::SIGTTIN);
    /// A background process writes to its terminal.
    pub const TTOU: Self = Self(libc::SIGTTOU);
    /// The terminal has another size.
    pub const WINCH: Self = Self(libc::SIGWINCH);
    /// A write to a pipe or socket that nobody reads.
    pub const PIPE: Self = Self(libc::SIGPIPE);

    /// The largest number there is.
    pub const NUMBER_MAX: i32 = 64;

    /// The signal with this number, if there may be one.
    #[must_use]
    pub const fn new(number: i32) -> Option<Self> {
        if number >= 1 && number <= Self::NUMBER_MAX { Some(Self(number)) } else { None }
    }

    /// The `n`-th real-time signal that the C library leaves to programs.
    ///
    /// # Panics
    /// When there are not so many.
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

/// What runs on a signal: its number, its cause, the interrupted context.
pub type Handler = unsafe extern "C" fn(signal: i32, info: *mut Info, context: *mut c_void);

/// How a handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// On the alternate stack of the thread, if it has one (`SA_ONSTACK`).
    pub on_alternate_stack: bool,
    /// With the signal itself left unblocked, because the handler may switch stacks and never
    /// return here (`SA_NODEFER`).
    pub reentrant: bool,
    /// System calls that it interrupts go on afterwards (`SA_RESTART`).
    pub restart_calls: bool,
    /// With all other signals held back: an alternate stack that the C library or std gave its thread has room for one
    /// handler, hardly for two.
    pub alone: bool,
}

/// What a signal did before.
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

    /// Does for this occurrence what the action would have done: for a handler that finds a signal
    /// not meant for it. "Default" is put back in place, so that the fault occurs again and ends the process.
    ///
    /// # Safety
    /// Inside a handler of `signal`, with the arguments it got.
    pub unsafe fn forward(&self, signal: Signal, info: *mut Info, context: *mut c_void) {
        match self.0.sa_sigaction {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                // SAFETY: putting a former action back is what the caller asked for.
                let _ends_the_process = unsafe { restore(signal, self) };
            }
            // With or without SA_SIGINFO: extra arguments do no harm in the C calling convention.
            address => {
                // SAFETY: the kernel would have called this address with these arguments.
                let handler: Handler = unsafe { core::mem::transmute::<usize, Handler>(address) };
                // SAFETY: the caller's promise.
                unsafe { handler(signal.number(), info, context) };
            }
        }
    }
}

/// Installs a handler for all threads; what was there before.
///
/// # Errors
/// `INVAL`: nobody may handle this signal.
///
/// # Safety
/// The handler does only what is safe wherever the signal may arrive: no allocation, no lock that the
/// interrupted code may hold, `errno` preserved ([`preserving_errno`]).
pub unsafe fn install(signal: Signal, handler: Handler, manner: Manner) -> Result<Action, Errno> {
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

/// Has all threads ignore `signal`, and programs that they execute.
///
/// # Errors
/// `INVAL`: nobody may ignore this signal. Injected ones.
pub fn ignore(signal: Signal) -> Result<(), Errno> {
    let action = libc::sigaction {
        sa_sigaction: libc::SIG_IGN,
        sa_mask: empty_set(),
        sa_flags: 0,
        sa_restorer: None,
    };
    exchange(signal, &action).map(drop)
}

/// Puts a former action back; what was there before.
///
/// # Errors
/// As for [`install`].
///
/// # Safety
/// The action is still valid: its code is loaded, what it uses exists.
pub unsafe fn restore(signal: Signal, action: &Action) -> Result<Action, Errno> {
    exchange(signal, &action.0)
}

fn exchange(signal: Signal, action: &libc::sigaction) -> Result<Action, Errno> {
    fault::check(Call::Signal)?;
    let mut before = MaybeUninit::uninit();
    // Through the C library, which supplies the code that returns from a handler.
    // SAFETY: both structures are valid during the call; the handler is our callers' promise.
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

/// Runs `body` and leaves `errno` of this kernel thread as it was: for handlers that call the C library.
pub fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the address of this thread's `errno`, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { errno.read() };
    let value = body();
    // SAFETY: a handler does not change kernel threads.
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

/// Signals of this kernel thread to hold back, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Hold back.
    Block,
    /// Deliver, also what was held back.
    Unblock,
}

/// Blocks or unblocks one signal for the calling kernel thread; whether it was blocked before.
///
/// # Errors
/// Injected ones.
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

/// All signals of the calling kernel thread held back, until dropped: as near as a user program comes to disabling interrupts.
/// Two system calls, this one and the drop.
#[derive(Debug)]
#[must_use = "dropping it delivers the signals"]
pub struct AllBlocked {
    before: u64,
    // Belongs to a kernel thread: neither `Send` nor `Sync`.
    _thread: PhantomData<*mut ()>,
}

impl AllBlocked {
    /// Holds back what can be held back.
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

/// Sets the mask of the calling thread; what it was. The kernel refuses no set.
fn exchange_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    let places = [&raw const mask as usize, &raw mut before as usize];
    let arguments = [libc::SIG_SETMASK as usize, places[0], places[1], size_of::<u64>()];
    // SAFETY: the kernel reads one set of 64 signals and writes another.
    let answer = unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    assert!(answer.is_ok(), "two valid addresses and the size of a set");
    before
}

/// A stack for handlers of the calling kernel thread, with a guard page below.
///
/// In force until dropped, on the thread that made it.
#[derive(Debug)]
pub struct AlternateStack {
    before: libc::stack_t,
    _memory: Mapping,
    // Belongs to a kernel thread: neither `Send` nor `Sync`.
    _thread: PhantomData<*mut ()>,
}

impl AlternateStack {
    /// Gives this kernel thread a stack of at least `bytes` for handlers.
    ///
    /// # Errors
    /// `NOMEM`; `PERM` when called on an alternate stack.
    pub fn install(bytes: usize) -> Result<Self, Errno> {
        let bytes = bytes.max(libc::MINSIGSTKSZ * 2).next_multiple_of(PAGE_BYTES);
        let memory = Mapping::reserve(bytes + PAGE_BYTES)?;
        let guard = ptr::with_exposed_provenance_mut(memory.base());
        let guard = NonNull::new(guard).ok_or(Errno::NOMEM)?;
        // SAFETY: the first page of memory that nobody knows but us.
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

/// How large this kernel thread's stack for handlers is; 0 where it has none.
///
/// # Errors
/// Injected ones.
pub fn alternate_stack_bytes() -> Result<usize, Errno> {
    fault::check(Call::Signal)?;
    let mut now = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: the kernel writes one structure.
    unsafe { call(libc::SYS_sigaltstack, [0, &raw mut now as usize]) }?;
    Ok(if now.ss_flags & libc::SS_DISABLE == 0 { now.ss_size } else { 0 })
}

/// Gives this kernel thread the memory at `base` as its stack for handlers, until the thread ends.
///
/// # Errors
/// As for [`AlternateStack::install`].
///
/// # Safety
/// The memory is the thread's alone as long as the thread lives.
pub unsafe fn use_alternate_stack(base: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    fault::check(Call::Signal)?;
    let stack = libc::stack_t { ss_sp: base.as_ptr().cast(), ss_flags: 0, ss_size: bytes };
    exchange_stack(&stack)?;
    Ok(())
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // Fails only on the alternate stack itself, which nobody may drop from under their feet.
        let answer = exchange_stack(&self.before);
        assert!(answer.is_ok(), "alternate stack dropped while in use");
    }
}

fn exchange_stack(stack: &libc::stack_t) -> Result<libc::stack_t, Errno> {
    let mut before =
        libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    let arguments = [ptr::from_ref(stack) as usize, &raw mut before as usize];
    // SAFETY: the kernel reads one structure and writes the other; the memory lives in `AlternateStack`.
    unsafe { call(libc::SYS_sigaltstack, arguments) }?;
    Ok(before)
}

#[cfg(test)]
mod tests;
