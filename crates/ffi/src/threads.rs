//! Microprocesses by number, and the run they belong to: `kyocho_run`, `kyocho_spawn` and what follows from them.
//!
//! A number of C may be stale or made up, a `JoinHandle` may not. So a table keeps the handles; it belongs to one run, because a
//! microprocess that its run abandons may be in the middle of changing it.
#![expect(unsafe_code, reason = "the border to C")]

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use core::time::Duration;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;

use kyocho_microprocess::{
    JoinHandle, Microprocess, Mutex, MutexGuard, Outside, Runtime, exit, sleep, yield_now,
};
use kyocho_sys::prim::atomic::{AtomicPtr, Ordering};

use crate::attributes::{self, Attributes, level};
use crate::error::{Code, Result, answer, caller, caught};
use crate::keys;
use crate::object::Object;

/// What a microprocess of C starts with.
type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// A pointer of C, whose meaning and owner C knows.
#[derive(Debug, Clone, Copy)]
struct Pointer(*mut c_void);

// SAFETY: an address; what lies there is C's matter, as between any two of its threads.
unsafe impl Send for Pointer {}

/// The result of a microprocess that was killed.
const CANCELED: Pointer = Pointer(ptr::without_provenance_mut(usize::MAX));

/// A microprocess as it is known to C.
#[derive(Debug)]
struct Known {
    joining: Joining,
    /// It has looked at the table for the last time.
    is_leaving: bool,
}

#[derive(Debug)]
enum Joining {
    /// Nobody has asked for its end yet.
    Possible(JoinHandle<Pointer>),
    /// Somebody waits for it.
    UnderWay(Microprocess),
    /// Nobody will; it leaves the table by itself.
    Never(Microprocess),
}

impl Known {
    const fn new(joining: Joining) -> Self {
        Self { joining, is_leaving: false }
    }

    fn microprocess(&self) -> Microprocess {
        match &self.joining {
            Joining::Possible(handle) => handle.microprocess(),
            Joining::UnderWay(microprocess) | Joining::Never(microprocess) => *microprocess,
        }
    }
}

type Table = HashMap<u64, Known>;

/// One call of `kyocho_run`. Lives for ever, as abandoned microprocesses do.
#[derive(Debug)]
struct Run {
    table: Mutex<Table>,
    expected: Mutex<Vec<Outside>>,
    /// The run before it: for who looks for memory that nobody refers to.
    _former: Option<&'static Self>,
}

/// The latest run, under way or over.
static LATEST: AtomicPtr<Run> = AtomicPtr::new(ptr::null_mut());

impl Run {
    /// A new one, in the place of the former.
    fn begin(_place: &Place) -> &'static Self {
        // SAFETY: null, or a run, which lives for ever. The place lets one caller here at a time.
        let former = unsafe { LATEST.load(Ordering::Acquire).as_ref() };
        let (table, expected) = (Mutex::new(Table::new()), Mutex::new(Vec::new()));
        let run = &*Box::leak(Box::new(Self { table, expected, _former: former }));
        LATEST.store(ptr::from_ref(run).cast_mut(), Ordering::Release);
        run
    }
}

impl Run {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Kernel threads have no queue to wait in: from them, looks until the lock is free.
    fn table_from_anywhere(&self) -> MutexGuard<'_, Table> {
        wait_anywhere(&self.table)
    }
}

/// Locks a mutex that is held for moments only, on any kind of thread.
fn wait_anywhere<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    if Microprocess::try_current().is_some() {
        return mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    loop {
        if let Ok(guard) = mutex.try_lock() {
            return guard;
        }
        kyocho_sys::prim::thread::yield_now();
    }
}

/// The run under way; null, or [`STARTING`] between runs.
static RUN: AtomicPtr<Run> = AtomicPtr::new(ptr::null_mut());

/// Taken, but not there yet.
const STARTING: *mut Run = ptr::without_provenance_mut(1);

fn run() -> Result<&'static Run> {
    let run = RUN.load(Ordering::Acquire);
    if run.addr() <= STARTING.addr() {
        return Err(Code::NOT_PERMITTED);
    }
    // SAFETY: neither null nor the mark, so a run, which lives for ever.
    Ok(unsafe { &*run })
}

/// Frees the place of the run when it is over.
struct Place;

impl Place {
    fn take() -> Result<Self> {
        RUN.compare_exchange(ptr::null_mut(), STARTING, Ordering::AcqRel, Ordering::Relaxed)
            .map(|_| Self)
            .map_err(|_| Code::BUSY)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        RUN.store(ptr::null_mut(), Ordering::Release);
    }
}

/// The life of a microprocess of C. Not inlined into what holds values: nothing on its stack is dropped.
#[inline(never)]
fn live(run: &'static Run, start: Start, argument: Pointer) -> Pointer {
    // SAFETY: C passed a function for this argument.
    let result = unsafe { start(argument.0) };
    end(run, Pointer(result))
}

/// Ends the calling microprocess of C: values of its own are destroyed, and it leaves the table if nobody will join it.
fn end(run: &'static Run, result: Pointer) -> ! {
    let last = || {
        keys::run_destructors();
        let Some(me) = Microprocess::try_current() else { return };
        if let Entry::Occupied(mut entry) = run.table().entry(me.id()) {
            entry.get_mut().is_leaving = true;
            if matches!(entry.get().joining, Joining::Never(_)) {
                entry.remove();
            }
        }
    };
    // SAFETY: whoever runs during a run was made by `kyocho_run` or `kyocho_spawn`, by a closure that returns a `Pointer`. On its
    // stack are frames of C and `live`'s, which hold nothing that needs to be dropped.
    unsafe { exit(result, last) }
}

/// Ends the calling microprocess of C, which was killed.
pub(crate) fn end_killed() -> ! {
    match run() {
        Ok(run) => end(run, CANCELED),
        Err(_) => unreachable!("a microprocess of C runs during a run"),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_run(
    virtual_processors: c_uint,
    attributes: *const Object<Attributes>,
    start: Option<Start>,
    argument: *mut c_void,
    result: *mut *mut c_void,
) -> c_int {
    answer(|| {
        let start = start.ok_or(Code::INVALID)?;
        // SAFETY: the caller's promise.
        let builder = unsafe { attributes::wanted_first(attributes) }?;
        let argument = Pointer(argument);
        if Microprocess::try_current().is_some() {
            return Err(Code::BUSY);
        }
        let place = Place::take()?;
        let run = Run::begin(&place);
        RUN.store(ptr::from_ref(run).cast_mut(), Ordering::Release);
        let main = move || -> Result<Pointer> {
            let mut table = run.table();
            let handle =
                builder.spawn(move || live(run, start, argument)).map_err(|_| Code::AGAIN)?;
            let microprocess = handle.microprocess();
            table.insert(microprocess.id(), Known::new(Joining::Never(microprocess)));
            drop(table);
            Ok(handle.join().unwrap_or(CANCELED))
        };
        let mut runtime = Runtime::builder();
        if let Ok(count @ 1..) = usize::try_from(virtual_processors) {
            runtime = runtime.virtual_processors(count);
        }
        let Pointer(value) = runtime.build().run(main).map_err(|deadlock| {
            // There is no other way to tell C who waits for what. Standard error closed: nobody wants to know.
            let _closed = writeln!(std::io::stderr(), "kyocho: {deadlock}");
            Code::DEADLOCK
        })??;
        // SAFETY: the caller's promise: null or a place for a pointer.
        if let Some(place) = unsafe { result.as_mut() } {
            *place = value;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_outside_expect() -> c_int {
    answer(|| {
        caller()?;
        wait_anywhere(&run()?.expected).push(Outside::expect());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_outside_forget() -> c_int {
    answer(|| {
        let forgotten = wait_anywhere(&run()?.expected).pop();
        forgotten.map(drop).ok_or(Code::NOT_PERMITTED)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_spawn(
    microprocess: *mut u64,
    attributes: *const Object<Attributes>,
    start: Option<Start>,
    argument: *mut c_void,
) -> c_int {
    answer(|| {
        let start = start.ok_or(Code::INVALID)?;
        // SAFETY: the caller's promise: null or a place for a number.
        let place = unsafe { microprocess.as_mut() }.ok_or(Code::INVALID)?;
        // SAFETY: the caller's promise.
        let wanted = unsafe { attributes::wanted(attributes) }?;
        let argument = Pointer(argument);
        caller()?;
        let run = run()?;
        // Locked, so that the new one finds itself in the table.
        let mut table = run.table();
        let handle =
            wanted.builder.spawn(move || live(run, start, argument)).map_err(|_| Code::AGAIN)?;
        let microprocess = handle.microprocess();
        *place = microprocess.id();
        let joining =
            if wanted.detached { Joining::Never(microprocess) } else { Joining::Possible(handle) };
        table.insert(microprocess.id(), Known::new(joining));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_join(microprocess: u64, result: *mut *mut c_void) -> c_int {
    answer(|| {
        if caller()?.id() == microprocess {
            return Err(Code::DEADLOCK);
        }
        let run = run()?;
        let handle = claim(&mut run.table(), microprocess, Joining::UnderWay)?;
        let given_up = GivenUp { run, id: microprocess };
        let Pointer(value) = handle.join().unwrap_or(CANCELED);
        run.table().remove(&microprocess);
        drop(given_up);
        // SAFETY: the caller's promise: null or a place for a pointer.
        if let Some(place) = unsafe { result.as_mut() } {
            *place = value;
        }
        Ok(())
    })
}

/// Leaves a microprocess to itself whose joiner is killed.
struct GivenUp {
    run: &'static Run,
    id: u64,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.run.table().entry(self.id) {
            let known = entry.get_mut();
            known.joining = Joining::Never(known.microprocess());
            if known.is_leaving {
                entry.remove();
            }
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_detach(microprocess: u64) -> c_int {
    answer(|| {
        let run = run()?;
        let mut table = run.table_from_anywhere();
        let handle = claim(&mut table, microprocess, Joining::Never)?;
        if table.get(&microprocess).is_some_and(|known| known.is_leaving) {
            table.remove(&microprocess);
        }
        drop(table);
        drop(handle);
        Ok(())
    })
}

/// Takes the handle of a joinable microprocess; `after` is what it is known as from now on.
fn claim(
    table: &mut Table,
    id: u64,
    after: fn(Microprocess) -> Joining,
) -> Result<JoinHandle<Pointer>> {
    let known = table.get_mut(&id).ok_or(Code::NO_SUCH)?;
    let microprocess = known.microprocess();
    match core::mem::replace(&mut known.joining, after(microprocess)) {
        Joining::Possible(handle) => Ok(handle),
        other => {
            known.joining = other;
            Err(Code::INVALID)
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_self() -> u64 {
    Microprocess::try_current().map_or(0, |me| me.id())
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_exit(result: *mut c_void) -> ! {
    let Ok((run, _me)) = caught(|| Ok((run()?, caller()?))) else {
        let _closed = writeln!(std::io::stderr(), "kyocho_exit: the caller is no microprocess");
        std::process::abort();
    };
    end(run, Pointer(result))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_yield() -> c_int {
    answer(|| caller().map(|_| yield_now()))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_nanosleep(nanoseconds: u64) -> c_int {
    answer(|| caller().map(|_| sleep(Duration::from_nanos(nanoseconds))))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_usleep(microseconds: u64) -> c_int {
    answer(|| caller().map(|_| sleep(Duration::from_micros(microseconds))))
}

/// The microprocess that C calls `id`.
fn named(id: u64) -> Result<Microprocess> {
    let table = run()?.table_from_anywhere();
    table.get(&id).map(Known::microprocess).ok_or(Code::NO_SUCH)
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_kill(microprocess: u64) -> c_int {
    answer(|| named(microprocess)?.kill().map_err(|_| Code::NO_SUCH))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_suspend(microprocess: u64) -> c_int {
    answer(|| named(microprocess)?.suspend().map_err(|_| Code::NO_SUCH))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_resume(microprocess: u64) -> c_int {
    answer(|| named(microprocess)?.resume().map_err(|_| Code::NO_SUCH))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_setpriority(microprocess: u64, priority: c_int) -> c_int {
    answer(|| {
        let priority = level(priority)?;
        named(microprocess)?.set_priority(priority);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_getpriority(microprocess: u64, priority: *mut c_int) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise: null or a place for a number.
        let place = unsafe { priority.as_mut() }.ok_or(Code::INVALID)?;
        *place = c_int::from(named(microprocess)?.priority().level());
        Ok(())
    })
}
