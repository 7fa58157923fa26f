//! Microprocesses: threads scheduled jointly by the user program and the kernel (Paper 1).
//!
//! A microprocess is created, switched, joined and synchronised at user level, in tens of
//! nanoseconds. What only the kernel can know reaches the scheduler as an event. Examples: a kernel
//! thread fell asleep in the kernel; it woke up; a time slice is over.
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
//! # Features
//!
//! Without features there are threads, locks, channels, [`select!`](select!), sleeping, futures and
//! [schedulers](scheduler). Each feature adds modules; all are on by default.
//!
//! | feature | modules | crates that it builds |
//! |---|---|---|
//! | `io` | [`io`], [`process`], [`signals`]: files, pipes, child processes, signals | `io-uring` |
//! | `net` | [`net`]: sockets; implies `io` | `socket2` |
//! | `trace` | [`trace`]: timelines; also events for subscribers of `tracing` | `serde`, `serde_json`, `tracing` |
//! | `control` | [`control`]: snapshots, and orders from other processes; implies `trace` | |
//!
//! Without `control` the environment variable `KYOCHO_CONTROL` has no effect, and without `trace`
//! `KYOCHO_TRACE` has none.
//!
//! # The scheme
//!
//! ```text
//!   microprocess   a stack slot with its control block on top; stackless: a control block and a step function
//!        │ runs on
//!   virtual processor   a role: run queue (64 priorities), timers, free slots; touched by its holder alone, without locks
//!        │ is held by
//!   kernel thread   the holder runs microprocesses; the others wait in a pool, or sleep in the kernel
//! ```
//!
//! | event (Paper 1, §3.1.2) | here | file |
//! |---|---|---|
//! | Blocked | the *sentinel*, next in line for the core, finds the holder asleep and nominates a pooled thread, which takes the virtual processor; or the monitor finds it, or a program in the host's scheduler reports it | `sentinel`, `monitor`, `detect`, `taking` |
//! | Unblocked | the thread finds at its next call that it lost its virtual processor; it queues its microprocess and waits for one | `schedule` |
//! | Resumed | a pooled thread receives a virtual processor and runs the scheduler | `dispatch` |
//! | Preempted | the *monitor* signals the holder; the thread waits in the handler with its microprocess, and another thread takes the virtual processor | `monitor`, `preempt` |
//! | Changed | a priority, parameter or pin is changed: the virtual processor queues the microprocess anew and decides again which one runs | `microprocess`, `vp` |
//! | all of them, to a user scheduler | one type, with the paper's arguments | `event`, `policy::scheduler` |
//! | stop and resume by global id (§5) | *orders*: kill, suspend, resume, in every state | `orders`, `kill_point`, `control` |
//! | events masked | a word of the kernel thread; until it is clear, events are kept in `attention` | `kernel_thread`, `vp` |
//!
//! The paper changes the kernel to make these upcalls. Linux does not report to an unprivileged
//! program that one of its threads sleeps. So another thread must check, and Blocked is noticed
//! some 10 µs late. A program with `CAP_BPF` may run code in the host's scheduler instead
//! ([`Detection::Bpf`]).
//!
//! Priorities hold across the Kyocho processes of one user. These share a file in which each
//! virtual processor publishes the priority it wants; one that is outranked on its CPU yields it
//! (§3.3.1; `space`). The monitor also reports priorities to the host, as far as the host permits
//! it. That comes later, but takes no time from the holder (`reflection`). The owner of a lock
//! inherits the priority of its waiters, and a microprocess that of its joiner (`inherit`).
//!
//! A user scheduler decides which microprocess runs next on a virtual processor. The built-in one
//! has fixed priorities ([`scheduler`]).
//!
//! The modules lie in folders by layer. Each folder imports only from those below it; from the
//! lowest: `data`, `protocol`, `processor`, `schedule`, `events`, `wait`, `thread`, `calls`,
//! `policy`, `runtime`. `ARCHITECTURE.md` draws them, and `tests/layers.rs` checks it.
//!
//! Read `data::run_queue` and `data::heap`, then `processor::vp`, `schedule`, `thread::dispatch`,
//! then the events.
//!
//! **Invariant:** nothing allocates or frees while events are masked.
//!
//! **Invariant:** a virtual processor has at most one holder. A thread that takes it from a
//! sleeping holder first proves that the sleeper is in no section and no restartable sequence
//! (`sentinel`).
//!
//! **Invariant:** records are never unmapped; a stale handle does nothing, or at worst ends one
//! `park` early.
//!
//! Lock order: an object's guard, then a select's, then the short locks of slots. Two objects'
//! guards are held at once only when a condition variable's wait begins: its own, then the mutex's.
//!
//! # Thread-local storage
//!
//! A thread-local value belongs to the *kernel thread*. A microprocess changes kernel threads, but
//! only inside calls of this crate that may suspend or that find its virtual processor lost. After
//! a system call or a page fault, the next call of any kind may find it lost. So:
//!
//! * Between two calls of this crate a microprocess stays on its kernel thread, even while it
//!   sleeps in the kernel and while it is preempted. `errno`, the allocator's caches and libraries
//!   that use thread-local values within one call are safe: preempted code waits together with its
//!   kernel thread.
//! * Across a call of this crate, a thread-local value may be another kernel thread's. Do not keep
//!   state of a microprocess in one, and do not hold a borrow of one (`LocalKey::with`, a `RefMut`)
//!   across such a call. The compiler assumes that a function stays on one thread, and may reuse
//!   the *address* of a thread-local value after the call. Code that reads one after such a call
//!   should do so in a separate function that is not inlined. Every stackful runtime in Rust has
//!   this hole.
//! * Code that suspends but must stay on one kernel thread runs inside [`bound()`]. Values of a
//!   microprocess go into [`local!`].
//! * For the same reason do not hold a `std::sync::MutexGuard` across such a call: some hosts let
//!   only the locking thread unlock (Linux does not), and a waiter sleeps in the kernel. [`Mutex`]
//!   has neither problem.
//! * Unwinding code stays on its kernel thread even if it suspends, since the count of panics is
//!   thread-local too.
//!
//! # What a signal may interrupt
//! Preemption uses `SIGURG`, with `SA_RESTART`. Calls that Linux never restarts (`nanosleep`,
//! `poll`, ...) could return `EINTR`. The monitor therefore does not signal a sleeping thread. What
//! remains is the instant before the thread falls asleep.

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
#[cfg(feature = "net")]
pub use calls::net;
#[cfg(feature = "io")]
pub use calls::{io, process, signals};
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
#[cfg(feature = "trace")]
pub use processor::trace;
#[cfg(feature = "control")]
pub use runtime::control;
pub use runtime::{
    Deadlock, Report, Runtime, RuntimeBuilder, Waiting, concurrency, report, run, statistics,
};
pub use schedule::bound::bound;
pub use thread::global_id::{GlobalId, NotAnId};
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
