//! The one door to atomics, cells, clocks and kernel threads, so that a model checker or a
//! simulator can stand behind it.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "this is the door itself")]

/// Atomic words: `core`'s, or loom's under `cfg(loom)`.
pub mod atomic {
    #[cfg(not(loom))]
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        compiler_fence, fence,
    };
}

/// Interior mutability.
pub mod cell {
    pub use core::cell::UnsafeCell;
}

/// Time.
pub mod clock {
    pub use std::time::{Instant, SystemTime};
}

/// Kernel threads.
pub mod thread {
    pub use std::thread::{sleep, spawn};
}
