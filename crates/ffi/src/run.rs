//! The run of `kyocho_run` that is under way, its table of microprocesses, and how a microprocess
//! of C ends.
//!
//! A number that C passes may be stale or made up; a `JoinHandle` cannot be. So a table maps
//! numbers to handles. The table belongs to one run, because a microprocess that its run abandons
//! may be in the middle of changing it.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::c_void;
use core::ptr;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::PoisonError;

use kyocho_microprocess::{JoinHandle, Microprocess, Mutex, MutexGuard, Outside, exit};
use kyocho_sys::prim::atomic::{AtomicPtr, Ordering};
use kyocho_sys::prim::thread;

use crate::error::{Code, Result};
use crate::specific;

/// The start function of a microprocess of C.
pub(crate) type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// A pointer that C passes on: only C knows its target and the owner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointer(pub(crate) *mut c_void);

// SAFETY: an address. Access to the memory there is C's responsibility, as between its threads.
unsafe impl Send for Pointer {}

/// The result of a microprocess that was killed.
pub(crate) const CANCELED: Pointer = Pointer(ptr::without_provenance_mut(usize::MAX));

/// The table's record of a microprocess.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) joining: Joining,
    /// The microprocess has accessed the table for the last time.
    pub(crate) is_leaving: bool,
}

/// Whether a microprocess is joined, and by what handle.
#[derive(Debug)]
pub(crate) enum Joining {
    /// It is joinable, and nothing has joined it yet.
    Possible(JoinHandle<Pointer>),
    /// A microprocess waits for its end.
    UnderWay(Microprocess),
    /// It is detached, and removes itself from the table.
    Never(Microprocess),
}

impl Record {
    pub(crate) const fn new(joining: Joining) -> Self {
        Self { joining, is_leaving: false }
    }

    pub(crate) fn microprocess(&self) -> Microprocess {
        match &self.joining {
            Joining::Possible(handle) => handle.microprocess(),
            Joining::UnderWay(microprocess) | Joining::Never(microprocess) => *microprocess,
        }
    }
}

pub(crate) type Table = HashMap<u64, Record>;

/// One call of `kyocho_run`. Never freed, because abandoned microprocesses may still use it.
#[derive(Debug)]
pub(crate) struct Run {
    table: Mutex<Table>,
    expected: Mutex<Vec<Outside>>,
    /// The previous run: keeps it reachable for leak checkers.
    _previous: Option<&'static Self>,
}

/// The latest run, under way or over.
static LATEST: AtomicPtr<Run> = AtomicPtr::new(ptr::null_mut());

/// The run under way; null, or [`STARTING`], between runs.
static CURRENT: AtomicPtr<Run> = AtomicPtr::new(ptr::null_mut());

/// Marks [`CURRENT`] as claimed by a run that has not started yet.
const STARTING: *mut Run = ptr::without_provenance_mut(1);

/// The right to be the process's only run. Dropping it allows the next run.
pub(crate) struct RunClaim;

impl RunClaim {
    /// Claims the right to be the only run of the process.
    ///
    /// # Errors
    /// `EBUSY`: a run is under way.
    pub(crate) fn new() -> Result<Self> {
        CURRENT
            .compare_exchange(ptr::null_mut(), STARTING, Ordering::AcqRel, Ordering::Relaxed)
            .map(|_| Self)
            .map_err(|_| Code::BUSY)
    }

    /// Starts a new run, which is the current one from here on.
    pub(crate) fn begin(&self) -> &'static Run {
        // SAFETY: null, or a run, which is never freed. The claim admits one caller at a time.
        let previous = unsafe { LATEST.load(Ordering::Acquire).as_ref() };
        let (table, expected) = (Mutex::new(Table::new()), Mutex::new(Vec::new()));
        let run = &*Box::leak(Box::new(Run { table, expected, _previous: previous }));
        LATEST.store(ptr::from_ref(run).cast_mut(), Ordering::Release);
        CURRENT.store(ptr::from_ref(run).cast_mut(), Ordering::Release);
        run
    }
}

impl Drop for RunClaim {
    fn drop(&mut self) {
        CURRENT.store(ptr::null_mut(), Ordering::Release);
    }
}

/// The run under way.
///
/// # Errors
/// `EPERM`: there is none.
pub(crate) fn current() -> Result<&'static Run> {
    let run = CURRENT.load(Ordering::Acquire);
    if run.addr() <= STARTING.addr() {
        return Err(Code::NOT_PERMITTED);
    }
    // SAFETY: neither null nor the mark, so a run, which is never freed.
    Ok(unsafe { &*run })
}

impl Run {
    /// Locks the table. The caller is a microprocess.
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the table from a microprocess or a kernel thread.
    pub(crate) fn table_from_any_thread(&self) -> MutexGuard<'_, Table> {
        lock_from_any_thread(&self.table)
    }

    /// Locks the list of `kyocho_outside_expect` calls, from a microprocess or a kernel thread.
    pub(crate) fn expected(&self) -> MutexGuard<'_, Vec<Outside>> {
        lock_from_any_thread(&self.expected)
    }
}

/// Locks a mutex that is never held for long. A microprocess blocks; a kernel thread polls, because
/// it cannot wait in the mutex's queue.
fn lock_from_any_thread<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    if Microprocess::try_current().is_some() {
        return mutex.lock().unwrap_or_else(PoisonError::into_inner);
    }
    loop {
        if let Ok(guard) = mutex.try_lock() {
            return guard;
        }
        thread::yield_now();
    }
}

/// Body of every microprocess of C. Not inlined into a caller that holds values: nothing on the
/// microprocess's stack is dropped when it ends.
#[inline(never)]
pub(crate) fn call_and_end(run: &'static Run, start: Start, argument: Pointer) -> Pointer {
    // SAFETY: C passed the function together with this argument.
    let result = unsafe { start(argument.0) };
    end(run, Pointer(result))
}

/// Ends the calling microprocess of C: destroys its specific values, and removes it from the table
/// if it is detached.
pub(crate) fn end(run: &'static Run, result: Pointer) -> ! {
    let last = || {
        specific::run_destructors();
        let Some(me) = Microprocess::try_current() else { return };
        if let Entry::Occupied(mut entry) = run.table().entry(me.id()) {
            entry.get_mut().is_leaving = true;
            if matches!(entry.get().joining, Joining::Never(_)) {
                entry.remove();
            }
        }
    };
    // SAFETY: every microprocess of a run was created by `kyocho_run` or `kyocho_spawn`, with a
    // closure that returns a `Pointer`. Its stack has frames of C and of `call_and_end`, which hold
    // nothing that needs to be dropped.
    unsafe { exit(result, last) }
}

/// Ends the calling microprocess of C, which was killed.
pub(crate) fn end_killed() -> ! {
    match current() {
        Ok(run) => end(run, CANCELED),
        Err(_) => unreachable!("a microprocess of C runs only during a run"),
    }
}
