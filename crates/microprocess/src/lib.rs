//! Microprocesses: threads by cooperation of user program and kernel (Paper 1).
//!
//! A microprocess is created, switched, joined and synchronised at user level, in tens of nanoseconds. What only the kernel can
//! know reaches the scheduler as an event: a kernel thread stopped inside the kernel, or came back; a time slice is over.
//!
//! ```
//! use kyocho_microprocess::{channel, run, spawn};
//!
//! let sum: u64 = run(|| {
//!     let (sender, receiver) = channel::rendezvous();
//!     spawn(move || (1..=10).for_each(|n| sender.send(n).unwrap()));
//!     receiver.into_iter().sum()
//! })
//! .unwrap();
//! assert_eq!(sum, 55);
//! ```
//!
//! # The scheme
//!
//! ```text
//!   microprocess   a stack slot with its control block on top; stackless: a control block and a step function
//!        │ runs on
//!   virtual processor   a role: run queue (64 priorities), timers, free slots; touched by its holder alone, without locks
//!        │ is held by
//!   kernel thread   the one that holds it runs microprocesses; the others wait in a pool, or sleep in the kernel
//! ```
//!
//! | event (Paper 1, §3.1.2) | here | file |
//! |---|---|---|
//! | Blocked | the *sentinel*, next in line for the core, sees the holder asleep and gives the processor to a pooled thread; or the host tells | `sentinel`, `detect`, `taking` |
//! | Unblocked | the thread finds its processor gone at its next call, queues its microprocess and waits for its turn | `schedule` |
//! | Resumed | a pooled thread is given a virtual processor and dispatches | `dispatch` |
//! | Preempted | the *monitor* signals the holder; thread and microprocess wait in the handler, the processor goes on | `monitor`, `preempt` |
//! | Changed | a priority set from outside: its virtual processor queues it anew, and reconsiders | `microprocess`, `vp` |
//! | all of them, to a user scheduler | one type, with the paper's arguments | `event`, `policy::scheduler` |
//! | stop and resume by global id (§5) | *orders*: kill, suspend, resume, in every state | `orders`, `kill_point`, `control` |
//! | events masked | a word of the kernel thread; what comes up meanwhile lies in `attention` until it is clear again | `kernel_thread`, `vp` |
//!
//! The paper changes the kernel to make these upcalls; an unprivileged program on Linux is not told that its thread sleeps, so something
//! must watch; one with `CAP_BPF` may run a program in the host's scheduler ([`Detection::Bpf`]). Blocked is therefore noticed some 10 µs late.
//!
//! Priorities hold across the Kyocho processes of one user: they share a file in which each virtual processor says what it wants, and
//! whoever is outranked on its CPU stands aside (§3.3.1; `space`). The host is told of them, late but for nothing, by what it permits (`reflection`). Who is waited for, as the owner of a lock or by `join`, inherits the
//! priority of who waits (`inherit`).
//!
//! User schedulers decide who runs next on a virtual processor; the built-in one is fixed priorities ([`scheduler`]).
//!
//! The modules lie in folders by layer, each of which imports from those below it alone: `data`, `protocol`, `processor`, `schedule`,
//! `events`, `wait`, `thread`, `calls`, `policy`, `runtime`. `ARCHITECTURE.md` draws them, and `tests/layers.rs` checks it.
//!
//! Read `data::run_queue` and `data::heap`, then `processor::vp`, `schedule`, `thread::dispatch`, then the events.
//!
//! **Invariant:** nothing allocates, frees or suspends while events are masked.
//!
//! **Invariant:** a virtual processor has at most one holder; who takes it from a sleeping one proves that the sleeper is in
//! no section and no restartable sequence (`sentinel`).
//!
//! **Invariant:** records are never unmapped; a stale handle does nothing, or at worst ends one `park` early.
//!
//! Lock order: an object's guard, then a select's, then the short locks of slots. No two objects' guards at once.
//!
//! # Thread-local storage
//!
//! A thread-local value belongs to the *kernel thread*. A microprocess changes kernel threads, but only inside calls of this crate that
//! may suspend (or that find its processor gone, which after any system call or page fault may be the next call of all). So:
//!
//! * Between two calls of this crate a microprocess stays on its kernel thread, even while it sleeps in the kernel and while it is
//!   preempted. `errno`, the allocator's caches and libraries that use thread-local values within one call are safe: preempted
//!   code waits together with its kernel thread.
//! * Across a call of this crate, a thread-local value may be another kernel thread's. Do not keep state of a microprocess
//!   in one, and do not hold a borrow of one (`LocalKey::with`, a `RefMut`) across such a call. The compiler believes that a function stays on one
//!   thread and may reuse the *address* of a thread-local value after the call; whatever reads one after a call should
//!   do so in a function of its own that is not inlined. This is the known hole of every stackful runtime in Rust.
//! * What must stay on one kernel thread although it suspends runs inside [`bound()`]; values of a microprocess go into [`local!`].
//! * For the same reason do not hold a `std::sync::MutexGuard` across such a call: some hosts let only the locking thread unlock
//!   (Linux futexes do not mind), and who waits for it sleeps in the kernel. [`Mutex`] has neither problem.
//! * Code that unwinds stays on its kernel thread even where it suspends, since the count of panics is thread-local too.
//!
//! # What a signal may interrupt
//! Preemption uses `SIGURG`, with `SA_RESTART`. Calls that Linux never restarts (`nanosleep`, `poll`, ...) could return
//! `EINTR`; the monitor therefore does not signal a thread that sleeps, which leaves only the instant before it does.

mod calls;
mod data;
mod events;
mod policy;
mod processor;
mod protocol;
mod runtime;
mod schedule;
mod thread;
mod wait;

pub use calls::future::{FutureHandle, block_on, spawn_future, within};
pub use calls::{io, net, process, signals};
pub use data::deadline::Deadline;
pub use data::detection::Detection;
pub use data::killed::Killed;
pub use data::priority::Priority;
pub use data::stackless::{Stackless, Step};
pub use data::statistics::Statistics;
pub use events::outside::Outside;
pub use policy::concurrency::{ConcurrencyError, set_concurrency};
pub use policy::scheduler;
#[doc(hidden)]
pub use processor::instruments;
pub use processor::record::{Kind, Reason};
pub use processor::reflection::Reflection;
pub use processor::space::{OnUnanswered, Reach};
pub use processor::trace;
pub use runtime::control;
pub use runtime::{
    Deadlock, Report, Runtime, RuntimeBuilder, Waiting, concurrency, report, run, statistics,
};
pub use schedule::bound::bound;
pub use thread::local::{LocalKey, OutsideError};
pub use thread::microprocess::{
    Microprocess, is_stackless, park, park_timeout, sleep, virtual_processor, yield_now,
};
pub use thread::orders::{Gone, always_unwind};
pub use thread::scope::{Scope, ScopedJoinHandle, scope};
pub use thread::spawn::{Builder, JoinHandle, exit, spawn};
#[doc(hidden)]
pub use wait::bell;
pub use wait::interval::Interval;
pub use wait::sync::{Barrier, Condvar, Mutex, MutexGuard, RwLock, Semaphore};
pub use wait::{channel, select, sync};
