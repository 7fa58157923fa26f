//! A lock biased towards one owner, who takes it without an atomic instruction and without a barrier.
//!
//! Most locks are taken by one thread nearly always. Here that thread, the *owner*, pays two stores and two loads for a lock and
//! its release; a *visitor* pays for both: it takes the bias away by a barrier on every processor that runs the process (`membarrier`,
//! 1 to 20 µs). `bias.rs` says why that is enough.
//!
//! ```text
//!              owner locks                       visitor comes: revoke, barrier, wait for the owner to leave
//!   BIASED ───────────────► owner inside     BIASED ─────────────────────────────────────────────► UNBIASED
//!     ▲                                                                                               │
//!     └───────── the owner has taken the plain lock REBIAS_AFTER times without a visitor ─────────────┘
//! ```
//!
//! While unbiased it is a plain [mutex](crate::blocking::mutex) for all, so that a barrier is paid once in [`REBIAS_AFTER`] turns of the owner at
//! most. That policy is the whole upkeep: there is no list of locks and no safepoint.
//!
//! Being the owner is having the one [`Owner`], which the compiler checks: the fast path asks for no thread's identity. The handle may be
//! sent to another thread. Linux's barrier for rseq (`MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`) would abort an owner's sequence instead; it costs the
//! visitor the same, and the owner one store more, so nothing here uses it.
#![expect(unsafe_code, reason = "hands out references to what the lock guards")]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use std::sync::Arc;

use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_sys::{barrier, futex};

use crate::bias::{Bias, CompilerOnly};
use crate::blocking::mutex::RawMutex;

/// Turns by the plain lock, without a visitor in between, after which the owner takes the bias back.
pub const REBIAS_AFTER: u32 = 64;

/// What owner and visitors share.
struct Shared<T> {
    bias: Bias,
    lock: RawMutex,
    /// The owner's turns by the plain lock since a visitor was here. Belongs to the plain lock.
    turns: UnsafeCell<u32>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time reach `value`, and `turns` belongs to the plain lock within it.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Sets how many turns of the owner the plain lock has seen.
    ///
    /// # Safety
    /// The caller has the plain lock.
    unsafe fn set_turns(&self, turns: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.turns.get().write(turns) };
    }
}

/// A lock around a value: the handle of its owner, and one of a visitor, of which there may be more.
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

/// The one towards whom the lock is biased.
pub struct Owner<T>(Arc<Shared<T>>);

/// Everybody else.
pub struct Visitor<T>(Arc<Shared<T>>);

impl<T> Clone for Visitor<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Owner<T> {
    /// Takes the lock. Two stores and two loads with its release, while the lock is biased; otherwise a mutex, which blocks.
    #[inline(always)]
    pub fn lock(&mut self) -> OwnerGuard<'_, T> {
        let shared = &*self.0;
        let is_fast = shared.bias.owner_enters::<CompilerOnly>();
        if !is_fast {
            lock_slowly(shared);
        }
        OwnerGuard { shared, is_fast, value: PhantomData }
    }

    /// Whether the next [`Owner::lock`] will find the bias standing, unless a visitor comes.
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
    // SAFETY: the owner has the plain lock; so below.
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
    // One visitor at a time waits for the owner: it has the plain lock.
    futex::wake(shared.bias.inside_word(), 1);
}

impl<T> Visitor<T> {
    /// Takes the lock; blocks the kernel thread. A mutex, and a barrier on all processors when it was biased.
    pub fn lock(&self) -> VisitorGuard<'_, T> {
        let shared = &*self.0;
        shared.lock.lock();
        shared.bias.revoke(barrier::everywhere);
        while !shared.bias.owner_is_out() {
            futex::wait(shared.bias.inside_word(), 1, None);
        }
        // SAFETY: the visitor has the plain lock.
        unsafe { shared.set_turns(0) };
        VisitorGuard { shared, value: PhantomData }
    }
}

/// The owner's right to use the value.
#[must_use = "dropping the guard frees the lock"]
pub struct OwnerGuard<'a, T> {
    shared: &'a Shared<T>,
    is_fast: bool,
    /// Shared and sent as the reference that it gives; so below.
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

/// A visitor's right to use the value.
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
        // SAFETY: the owner is inside: no visitor is, and there is one owner. So for the three below.
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
        // SAFETY: as above, with the plain lock.
        unsafe { &*self.shared.value.get() }
    }
}

impl<T> DerefMut for VisitorGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed uniquely.
        unsafe { &mut *self.shared.value.get() }
    }
}

/// `Debug` that looks at nothing a lock guards.
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
