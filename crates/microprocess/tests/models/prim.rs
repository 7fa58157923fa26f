//! What `kyocho_sys::prim` is in models: loom's atomics and threads.
//!
//! Loom's atomics belong to one execution and cannot be made by a `const fn`, which the real code
//! uses everywhere. So each is made at its first use, which must be by the thread that makes the
//! enclosing value. Models therefore use everything once before they share it.
//!
//! A mutant of the processor: while [`forget_orderings`] is in force, every access is relaxed. Code
//! that relies on an ordering must then fail.

/// Atomic words.
pub mod atomic {
    use core::cell::{Cell, OnceCell};

    pub use loom::sync::atomic::Ordering;

    thread_local! {
        // Loom runs all its threads on one kernel thread.
        static FORGETS: Cell<bool> = const { Cell::new(false) };
        static SWAPS: Cell<bool> = const { Cell::new(false) };
        static LOADS_IN_ORDER: Cell<bool> = const { Cell::new(false) };
    }

    /// From here on no access of this test orders others.
    pub fn forget_orderings() {
        FORGETS.set(true);
    }

    /// From here on each store of this test is a swap. Loom does not know that nothing comes
    /// between a read-modify-write and the store that it read. If three threads use both on one
    /// word, it would report impossible executions.
    pub fn order_stores() {
        SWAPS.set(true);
    }

    /// From here on a sequentially consistent load of this test reads the last store. Loom treats
    /// such a load as one that only acquires, and would report impossible executions.
    pub fn order_loads() {
        LOADS_IN_ORDER.set(true);
    }

    fn is_in_order(ordering: Ordering) -> bool {
        LOADS_IN_ORDER.get() && kept(ordering) == Ordering::SeqCst
    }

    fn kept(ordering: Ordering) -> Ordering {
        if FORGETS.get() { Ordering::Relaxed } else { ordering }
    }

    /// Orders the accesses of the calling thread; has no effect while orderings are forgotten.
    pub fn fence(ordering: Ordering) {
        if kept(ordering) != Ordering::Relaxed {
            loom::sync::atomic::fence(ordering);
        }
    }

    /// A signal handler on the same thread is not part of a model.
    pub fn compiler_fence(_ordering: Ordering) {}

    macro_rules! atomic {
        ($name:ident $(<$parameter:ident>)?, $value:ty) => {
            /// A word that is made at its first use.
            #[derive(Debug)]
            pub struct $name $(<$parameter>)? {
                first: $value,
                word: OnceCell<loom::sync::atomic::$name $(<$parameter>)?>,
            }

            // SAFETY: loom runs all threads of an execution on one kernel thread, one at a time.
            unsafe impl $(<$parameter>)? Sync for $name $(<$parameter>)? {}
            // SAFETY: as above.
            unsafe impl $(<$parameter>)? Send for $name $(<$parameter>)? {}

            impl $(<$parameter>)? $name $(<$parameter>)? {
                pub const fn new(first: $value) -> Self {
                    Self { first, word: OnceCell::new() }
                }

                fn word(&self) -> &loom::sync::atomic::$name $(<$parameter>)? {
                    self.word.get_or_init(|| loom::sync::atomic::$name::new(self.first))
                }

                pub fn load(&self, ordering: Ordering) -> $value {
                    if std::thread::panicking() {
                        return self.first;
                    }
                    if is_in_order(ordering) {
                        // Changes nothing, and reads as a read-modify-write does.
                        let read = self.compare_exchange(self.first, self.first, ordering, ordering);
                        return read.unwrap_or_else(|read| read);
                    }
                    self.word().load(kept(ordering))
                }

                pub fn store(&self, value: $value, ordering: Ordering) {
                    if std::thread::panicking() {
                        // A failed execution, whose words no longer exist, unwinds.
                        return;
                    }
                    if SWAPS.get() {
                        self.word().swap(value, kept(ordering));
                    } else {
                        self.word().store(value, kept(ordering));
                    }
                }

                pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                    self.word().swap(value, kept(ordering))
                }

                pub fn compare_exchange(
                    &self,
                    old: $value,
                    new: $value,
                    good: Ordering,
                    bad: Ordering,
                ) -> Result<$value, $value> {
                    self.word().compare_exchange(old, new, kept(good), kept(bad))
                }

                pub fn compare_exchange_weak(
                    &self,
                    old: $value,
                    new: $value,
                    good: Ordering,
                    bad: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(old, new, good, bad)
                }
            }
        };
    }

    macro_rules! integer {
        ($name:ident, $value:ty) => {
            atomic!($name, $value);

            impl $name {
                pub fn fetch_update(
                    &self,
                    good: Ordering,
                    bad: Ordering,
                    change: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    self.word().fetch_update(kept(good), kept(bad), change)
                }

                pub fn fetch_or(&self, value: $value, ordering: Ordering) -> $value {
                    self.word().fetch_or(value, kept(ordering))
                }

                pub fn fetch_and(&self, value: $value, ordering: Ordering) -> $value {
                    self.word().fetch_and(value, kept(ordering))
                }

                pub fn fetch_add(&self, value: $value, ordering: Ordering) -> $value {
                    self.word().fetch_add(value, kept(ordering))
                }

                pub fn fetch_sub(&self, value: $value, ordering: Ordering) -> $value {
                    self.word().fetch_sub(value, kept(ordering))
                }
            }
        };
    }

    atomic!(AtomicBool, bool);

    impl Default for AtomicBool {
        fn default() -> Self {
            Self::new(false)
        }
    }

    atomic!(AtomicPtr<T>, *mut T);
    integer!(AtomicU8, u8);
    integer!(AtomicU32, u32);
    integer!(AtomicU64, u64);
    integer!(AtomicUsize, usize);
}

/// Interior mutability. Whether it is guarded is what the models check.
pub mod cell {
    use core::cell::OnceCell;
    use core::fmt;

    pub use core::cell::UnsafeCell;

    /// A cell that loom watches. The model fails if a read is not ordered after the last change, or
    /// a change not after the last read.
    pub struct Cell<T> {
        first: T,
        cell: OnceCell<loom::cell::UnsafeCell<T>>,
    }

    impl<T> fmt::Debug for Cell<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Cell").finish_non_exhaustive()
        }
    }

    impl<T: Copy> Cell<T> {
        pub const fn new(first: T) -> Self {
            Self { first, cell: OnceCell::new() }
        }

        fn cell(&self) -> &loom::cell::UnsafeCell<T> {
            self.cell.get_or_init(|| loom::cell::UnsafeCell::new(self.first))
        }

        pub fn get(&self) -> T {
            if std::thread::panicking() {
                // A failed execution, whose cells no longer exist, unwinds.
                return self.first;
            }
            // SAFETY: loom checks it.
            self.cell().with(|value| unsafe { *value })
        }

        pub fn set(&self, value: T) {
            self.replace(value);
        }

        pub fn replace(&self, value: T) -> T {
            if std::thread::panicking() {
                return self.first;
            }
            // SAFETY: loom checks it.
            self.cell().with_mut(|place| core::mem::replace(unsafe { &mut *place }, value))
        }
    }
}

/// A thread that waits for another one lets it run.
pub mod hint {
    pub use loom::thread::yield_now as spin_loop;
}

/// Threads that are not microprocesses: there are none here.
pub mod thread {
    pub use loom::thread::yield_now;
}

/// Time stands still: a model decides when a deadline has passed.
pub mod clock {
    use core::cell::Cell;

    thread_local! {
        // Loom runs all its threads on one kernel thread.
        static NOW_NS: Cell<u64> = const { Cell::new(1) };
        static STEP_NS: Cell<u64> = const { Cell::new(0) };
    }

    /// From here on the clock advances by `ns` between two readings of this test.
    pub fn step(ns: u64) {
        STEP_NS.set(ns);
    }

    pub fn monotonic_ns() -> u64 {
        NOW_NS.replace(NOW_NS.get() + STEP_NS.get())
    }
}
