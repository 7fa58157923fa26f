//! The only access of the workspace to atomics, cells, clocks and kernel threads, so that a model
//! checker or a simulator can replace them.
//!
//! No other file of the workspace names `core::sync::atomic`, `std::time::Instant` and the like. A
//! test (`tests/door.rs`) checks the sources, because the compiler does not distinguish a
//! re-export.

/// Atomic words: `core`'s, or loom's under `cfg(loom)`.
pub mod atomic {
    #[cfg(not(loom))]
    pub use core::sync::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        compiler_fence, fence,
    };
    #[cfg(loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };

    /// Always `core`'s: for statics that interact with Linux, which no model runs. (loom's have no
    /// `const fn new`.)
    pub mod unmodelled {
        pub use core::sync::atomic::{
            AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
            Ordering, compiler_fence, fence,
        };
    }
}

/// Interior mutability.
pub mod cell {
    pub use core::cell::{Cell, UnsafeCell};
}

/// Time.
pub mod clock {
    pub use std::time::{Instant, SystemTime};

    pub use crate::clock::monotonic_ns;
}

/// What a loop does while it waits for another thread: in a model it must run that thread.
pub mod hint {
    #[cfg(not(loom))]
    pub use core::hint::spin_loop;
    #[cfg(loom)]
    pub use loom::thread::yield_now as spin_loop;
}

/// Locks that put a kernel thread to sleep: `std`'s, or loom's under `cfg(loom)`.
pub mod sync {
    #[cfg(loom)]
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
    pub use std::sync::PoisonError;
    #[cfg(not(loom))]
    pub use std::sync::{Condvar, Mutex, MutexGuard};
}

/// Kernel threads: `std`'s, or loom's under `cfg(loom)`.
pub mod thread {
    #[cfg(loom)]
    pub use loom::thread::{JoinHandle, spawn, yield_now};
    #[cfg(not(loom))]
    pub use std::thread::{
        Builder, JoinHandle, Thread, current, panicking, park, park_timeout, scope, sleep, spawn,
        yield_now,
    };
}
