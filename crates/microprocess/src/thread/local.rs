//! Microprocess-local values: for microprocesses what `thread_local!` is for kernel threads.
//!
//! ```text
//!   record.locals ──► [ key 0: Rc<..> │ key 1: none │ key 2: Rc<..> │ … ]
//! ```
//!
//! Found through the record, so they follow their microprocess from one kernel thread to the next and may be used
//! across calls that suspend. A microprocess without any pays a load at its end.
//!
//! **Invariant:** a record's values are touched by its own microprocess alone, while that runs.

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

/// How often destructors may make new values before those are left alone, as in POSIX.
const ROUNDS_MAX: u32 = 4;

/// Numbers given to keys so far; 0 is none.
static KEYS: AtomicUsize = AtomicUsize::new(0);

/// A static of which each microprocess has its own value; see [`local!`](crate::local!).
pub struct LocalKey<T: 'static> {
    /// Given at the first use; 0 before.
    number: AtomicUsize,
    initial: fn() -> T,
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// The caller is no microprocess, so it has no microprocess-local values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutsideError;

impl fmt::Display for OutsideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this works inside a microprocess only: see `kyocho_microprocess::run`")
    }
}

impl Error for OutsideError {}

/// Declares statics of which each microprocess has its own value, made at its first use and dropped at its end.
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
    /// What [`local!`](crate::local!) declares: `initial` makes each microprocess's value.
    #[must_use]
    pub const fn new(initial: fn() -> T) -> Self {
        Self { number: AtomicUsize::new(0), initial }
    }

    /// Passes the caller's value to `body`, which may suspend.
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        match self.try_with(body) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`with`](Self::with), for callers that may be no microprocess.
    ///
    /// # Errors
    /// They are none.
    pub fn try_with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Result<R, OutsideError> {
        let record = schedule::try_current().ok_or(OutsideError)?;
        let index = self.index();
        let value = find::<T>(record, index).unwrap_or_else(|| {
            let fresh = Rc::new((self.initial)());
            // Its making may have used this very key.
            find::<T>(record, index).unwrap_or_else(|| {
                keep(record, index, Rc::<T>::clone(&fresh));
                fresh
            })
        });
        Ok(body(&value))
    }

    /// Where the values of this key lie.
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
    /// Passes the caller's value to `body`.
    ///
    /// # Panics
    /// As [`with`](Self::with), and when the value is borrowed mutably.
    pub fn with_borrow<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| body(&cell.borrow()))
    }

    /// Passes the caller's value to `body`, which may change it.
    ///
    /// # Panics
    /// As [`with`](Self::with), and when the value is borrowed.
    pub fn with_borrow_mut<R>(&'static self, body: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| body(&mut cell.borrow_mut()))
    }
}

/// The value of the calling microprocess, whose record is `record`, at `index`.
fn find<T: 'static>(record: &'static Record, index: usize) -> Option<Rc<T>> {
    let locals = record.locals.take()?;
    let value = locals.get(index).cloned().flatten();
    record.locals.set(Some(locals));
    value?.downcast().ok()
}

/// Makes `value` that of the calling microprocess at `index`.
fn keep(record: &'static Record, index: usize, value: Rc<dyn Any>) {
    let mut locals = record.locals.take().unwrap_or_default();
    if locals.len() <= index {
        locals.resize_with(index + 1, || None);
    }
    locals[index] = Some(value);
    record.locals.set(Some(locals));
}

/// Drops the values of the calling microprocess, which is about to end. What panics ends alone.
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
        // Those that the destructors above made.
        match record.locals.take() {
            Some(locals) => left = *locals,
            None => return,
        }
    }
    mem::forget(left);
}

#[cfg(test)]
mod tests;
