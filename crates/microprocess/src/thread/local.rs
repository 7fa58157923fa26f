//! Microprocess-local values, the counterpart of `thread_local!` for microprocesses.
//!
//! ```text
//!   record.locals ──► [ key 0: Rc<..> │ key 1: none │ key 2: Rc<..> │ … ]
//! ```
//!
//! They are found through the record. So they stay with their microprocess when it changes kernel
//! threads, and may be used across calls that suspend. A microprocess without such values pays one
//! load at its end.
//!
//! **Invariant:** only the microprocess itself, while it runs, accesses its values.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::error::Error;
use core::fmt;
use core::mem;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::rc::Rc;

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::processor::record::{Locals, Record};
use crate::schedule;

/// How often destructors may make new values before those are no longer dropped, as in POSIX.
const ROUNDS_MAX: u32 = 4;

/// The number of keys that were used so far, and the greatest number of a key. Numbers begin at 1.
static KEYS: AtomicUsize = AtomicUsize::new(0);

/// A static with a separate value for each microprocess; see [`local!`](crate::local!).
pub struct LocalKey<T: 'static> {
    /// Assigned at the first use; 0 before.
    number: AtomicUsize,
    initial: fn() -> T,
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// The caller is not a microprocess, so it has no microprocess-local values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutsideError;

impl fmt::Display for OutsideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this works inside a microprocess only: see `kyocho_microprocess::run`")
    }
}

impl Error for OutsideError {}

/// Declares statics with a separate value for each microprocess. A value is made when the
/// microprocess first uses it, and dropped when the microprocess ends.
///
/// ```
/// use core::cell::Cell;
/// use kyocho_microprocess::{local, run, spawn, yield_now};
///
/// local! {
///     /// What this microprocess has done so far.
///     static STEPS: Cell<u32> = Cell::new(0);
/// }
///
/// run(|| {
///     let workers: Vec<_> = (1..=3)
///         .map(|count| spawn(move || {
///             (0..count).for_each(|_| { STEPS.set(STEPS.get() + 1); yield_now(); });
///             STEPS.get()
///         }))
///         .collect();
///     let steps: Vec<u32> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
///     assert_eq!(steps, [1, 2, 3]);
/// })
/// .unwrap();
/// ```
#[macro_export]
macro_rules! local {
    ($($(#[$meta:meta])* $visibility:vis static $name:ident: $type:ty = $initial:expr;)+) => {
        $($(#[$meta])* $visibility static $name: $crate::LocalKey<$type> =
            $crate::LocalKey::new(|| $initial);)+
    };
}

impl<T: 'static> LocalKey<T> {
    /// The key that [`local!`](crate::local!) declares. `initial` makes the value of each
    /// microprocess.
    #[must_use]
    pub const fn new(initial: fn() -> T) -> Self {
        Self { number: AtomicUsize::new(0), initial }
    }

    /// Calls `body` with the caller's value; `body` may suspend.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        match self.try_with(body) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`with`](Self::with), for callers that may not be microprocesses.
    ///
    /// # Errors
    /// The caller is not a microprocess.
    pub fn try_with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Result<R, OutsideError> {
        let record = schedule::try_current().ok_or(OutsideError)?;
        let index = self.index();
        let value = find::<T>(record, index).unwrap_or_else(|| {
            let fresh = Rc::new((self.initial)());
            // Making the value may have used this same key.
            find::<T>(record, index).unwrap_or_else(|| {
                keep(record, index, Rc::<T>::clone(&fresh));
                fresh
            })
        });
        Ok(body(&value))
    }

    /// The index of this key's values.
    fn index(&self) -> usize {
        let number = self.number.load(Ordering::Relaxed);
        if number != 0 {
            return number - 1;
        }
        let fresh = KEYS.fetch_add(1, Ordering::Relaxed) + 1;
        let given =
            self.number.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed).err();
        given.unwrap_or(fresh) - 1
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// A copy of the caller's value.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Sets the caller's value.
    ///
    /// # Panics
    /// As [`with`](Self::with).
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Calls `body` with a borrow of the caller's value.
    ///
    /// # Panics
    /// As [`with`](Self::with), and if the value is borrowed mutably.
    pub fn with_borrow<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| body(&cell.borrow()))
    }

    /// Calls `body` with a mutable borrow of the caller's value.
    ///
    /// # Panics
    /// As [`with`](Self::with), and if the value is borrowed.
    pub fn with_borrow_mut<R>(&'static self, body: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| body(&mut cell.borrow_mut()))
    }
}

/// The value of the calling microprocess at `index`; `record` is the caller's.
fn find<T: 'static>(record: &'static Record, index: usize) -> Option<Rc<T>> {
    let locals = record.locals.take()?;
    let value = locals.get(index).cloned().flatten();
    record.locals.set(Some(locals));
    value?.downcast().ok()
}

/// Stores `value` as the calling microprocess's value at `index`.
fn keep(record: &'static Record, index: usize, value: Rc<dyn Any>) {
    let mut locals = record.locals.take().unwrap_or_default();
    if locals.len() <= index {
        locals.resize_with(index + 1, || None);
    }
    locals[index] = Some(value);
    record.locals.set(Some(locals));
}

/// Drops the values of the calling microprocess, which is about to end. If one panics while it is
/// dropped, the others are dropped all the same.
#[inline]
pub(crate) fn end(record: &'static Record) {
    if let Some(locals) = record.locals.take() {
        drop_all(record, *locals);
    }
}

#[cold]
fn drop_all(record: &'static Record, first: Locals) {
    let mut left = first;
    for _ in 0..ROUNDS_MAX {
        for value in left.into_iter().flatten() {
            drop(catch_unwind(AssertUnwindSafe(|| drop(value))));
        }
        // Values that the destructors above have made.
        match record.locals.take() {
            Some(locals) => left = *locals,
            None => return,
        }
    }
    mem::forget(left);
}

#[cfg(test)]
mod tests;
