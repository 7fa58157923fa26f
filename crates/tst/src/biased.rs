//! A lock biased towards one owner, which takes it without atomic instructions and barriers.
//!
//! Most locks are nearly always taken by the same thread. Here that thread, the *owner*, pays two
//! stores and two loads to take and release the lock. A *visitor* pays for both: it revokes the
//! bias with a barrier on every processor that runs the process (`membarrier`, 1 to 20 µs).
//! `bias.rs` proves that this suffices.
//!
//! ```text
//!            owner locks                     visitor: revoke, barrier, wait for the owner to leave
//!   BIASED ─────────────► owner inside   BIASED ────────────────────────────────────────► UNBIASED
//!     ▲                                                                                      │
//!     └─────── the owner has taken the plain lock REBIAS_AFTER times without a visitor ──────┘
//! ```
//!
//! While unbiased, the lock is a plain [mutex](crate::blocking::mutex) for all. The owner restores
//! the bias after [`REBIAS_AFTER`] acquisitions, so at most one barrier is paid in that many
//! acquisitions. No list of locks and no safepoint is needed.
//!
//! The owner is whatever thread has the one [`Owner`] handle, which the compiler checks; the fast
//! path does not compare thread identities. The handle may be sent to another thread. Linux also
//! has a barrier for rseq (`MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`), which would abort a sequence
//! of the owner. It costs a visitor the same and the owner one more store, so it is not used here.
#![expect(unsafe_code, reason = "hands out references to what the lock guards")]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use std::sync::Arc;

use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_sys::{barrier, futex};

use crate::bias::{Bias, CompilerOnly};
use crate::blocking::mutex::RawMutex;

/// Acquisitions of the plain lock by the owner, without a visitor in between, after which the owner
/// restores the bias.
pub const REBIAS_AFTER: u32 = 64;

/// State shared by owner and visitors.
struct Shared<T> {
    bias: Bias,
    lock: RawMutex,
    /// The owner's acquisitions of the plain lock since the last visitor. Guarded by the plain
    /// lock.
    turns: UnsafeCell<u32>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time access `value`, and the plain lock guards `turns`.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Sets the owner's count of acquisitions of the plain lock.
    ///
    /// # Safety
    /// The caller holds the plain lock.
    unsafe fn set_turns(&self, turns: u32) {
        // SAFETY: the caller holds the plain lock.
        unsafe { self.turns.get().write(turns) };
    }
}

/// Creates a biased lock around a value. Returns the owner's handle and one visitor's handle, which
/// can be cloned.
///
/// ```
/// let (mut owner, visitor) = kyocho_tst::biased::biased(0);
/// *owner.lock() += 1;
/// std::thread::spawn(move || *visitor.lock() += 1).join().unwrap();
/// assert_eq!(*owner.lock(), 2);
/// ```
pub fn biased<T>(value: T) -> (Owner<T>, Visitor<T>) {
    let (turns, value) = (UnsafeCell::new(0), UnsafeCell::new(value));
    let shared = Arc::new(Shared { bias: Bias::new(), lock: RawMutex::new(), turns, value });
    (Owner(Arc::clone(&shared)), Visitor(shared))
}

/// The handle of the thread towards which the lock is biased.
pub struct Owner<T>(Arc<Shared<T>>);

/// The handle of any other thread.
pub struct Visitor<T>(Arc<Shared<T>>);

impl<T> Clone for Visitor<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Owner<T> {
    /// Takes the lock and blocks the kernel thread until it is free. While the lock is biased,
    /// taking and releasing it costs two stores and two loads; otherwise it is a mutex.
    #[inline(always)]
    pub fn lock(&mut self) -> OwnerGuard<'_, T> {
        let shared = &*self.0;
        let is_fast = shared.bias.owner_enters::<CompilerOnly>();
        if !is_fast {
            lock_slowly(shared);
        }
        OwnerGuard { shared, is_fast, value: PhantomData }
    }

    /// Whether the lock is biased: the next [`Owner::lock`] is fast unless a visitor comes first.
    #[must_use]
    pub fn is_biased(&mut self) -> bool {
        self.lock().is_fast
    }
}

/// The owner takes the plain lock.
#[cold]
fn lock_slowly<T>(shared: &Shared<T>) {
    owner_leaves(shared);
    shared.lock.lock();
    // SAFETY: the owner holds the plain lock; also below.
    let turns = unsafe { *shared.turns.get() } + 1;
    if turns == REBIAS_AFTER {
        shared.bias.restore();
    }
    // SAFETY: as above.
    unsafe { shared.set_turns(turns % REBIAS_AFTER) };
}

#[inline(always)]
fn owner_leaves<T>(shared: &Shared<T>) {
    if shared.bias.owner_leaves::<CompilerOnly>() {
        wake_visitor(shared);
    }
}

#[cold]
fn wake_visitor<T>(shared: &Shared<T>) {
    // At most one visitor waits for the owner: the one that holds the plain lock.
    futex::wake(shared.bias.inside_word(), 1);
}

impl<T> Visitor<T> {
    /// Takes the lock and blocks the kernel thread until it is free. Costs a mutex, and a barrier
    /// on all processors if the lock was biased.
    pub fn lock(&self) -> VisitorGuard<'_, T> {
        let shared = &*self.0;
        shared.lock.lock();
        shared.bias.revoke(barrier::everywhere);
        while !shared.bias.owner_is_out() {
            futex::wait(shared.bias.inside_word(), 1, None);
        }
        // SAFETY: the visitor holds the plain lock.
        unsafe { shared.set_turns(0) };
        VisitorGuard { shared, value: PhantomData }
    }
}

/// Access of the owner to the value.
#[must_use = "dropping the guard frees the lock"]
pub struct OwnerGuard<'a, T> {
    shared: &'a Shared<T>,
    is_fast: bool,
    /// Makes the guard `Send` and `Sync` as the reference that it yields, like the same field of
    /// [`VisitorGuard`].
    value: PhantomData<&'a mut T>,
}

impl<T> Drop for OwnerGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_fast {
            owner_leaves(self.shared);
        } else {
            self.shared.lock.unlock();
        }
    }
}

/// Access of a visitor to the value.
#[must_use = "dropping the guard frees the lock"]
pub struct VisitorGuard<'a, T> {
    shared: &'a Shared<T>,
    value: PhantomData<&'a mut T>,
}

impl<T> Drop for VisitorGuard<'_, T> {
    fn drop(&mut self) {
        self.shared.lock.unlock();
    }
}

impl<T> Deref for OwnerGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the owner is inside, so no visitor is, and there is one owner. The same holds for
        // the three below.
        unsafe { &*self.shared.value.get() }
    }
}

impl<T> DerefMut for OwnerGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed uniquely.
        unsafe { &mut *self.shared.value.get() }
    }
}

impl<T> Deref for VisitorGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: as above; the visitor holds the plain lock.
        unsafe { &*self.shared.value.get() }
    }
}

impl<T> DerefMut for VisitorGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed uniquely.
        unsafe { &mut *self.shared.value.get() }
    }
}

/// Implements `Debug` without reading what a lock guards.
macro_rules! opaque {
    ($($name:ident $(<$life:lifetime>)?),*) => {
        $(impl<T> fmt::Debug for $name<$($life,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}

opaque!(Owner, Visitor, OwnerGuard<'_>, VisitorGuard<'_>);
