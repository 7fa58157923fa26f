//! Creation, joining and control of microprocesses by number: `kyocho_run`, `kyocho_spawn` and the
//! functions that take the number of a microprocess.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{c_int, c_uint, c_void};
use core::time::Duration;
use std::collections::hash_map::Entry;
use std::io::Write;

use kyocho_microprocess::{JoinHandle, Microprocess, Outside, Runtime, sleep, yield_now};

use crate::answer::{answer, caller, caught};
use crate::attributes::{self, Attributes, level};
use crate::error::{Code, Result};
use crate::object::Object;
use crate::run::{
    self, CANCELED, Joining, Pointer, Record, Run, RunClaim, Start, Table, call_and_end, end,
};

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
        // SAFETY: guaranteed by the caller.
        let builder = unsafe { attributes::wanted_first(attributes) }?;
        let argument = Pointer(argument);
        if Microprocess::try_current().is_some() {
            return Err(Code::BUSY);
        }
        let claim = RunClaim::new()?;
        let run = claim.begin();
        let main = move || -> Result<Pointer> {
            let mut table = run.table();
            let handle = builder
                .spawn(move || call_and_end(run, start, argument))
                .map_err(|_| Code::AGAIN)?;
            let microprocess = handle.microprocess();
            table.insert(microprocess.id(), Record::new(Joining::Never(microprocess)));
            drop(table);
            Ok(handle.join().unwrap_or(CANCELED))
        };
        let mut runtime = Runtime::builder();
        if let Ok(count @ 1..) = usize::try_from(virtual_processors) {
            runtime = runtime.virtual_processors(count);
        }
        let Pointer(value) = runtime.build().run(main).map_err(|deadlock| {
            // C has no other way to learn what waits for what. Ignored if standard error is closed.
            let _closed = writeln!(std::io::stderr(), "kyocho: {deadlock}");
            Code::DEADLOCK
        })??;
        // SAFETY: guaranteed by the caller: null or memory for a pointer.
        if let Some(result) = unsafe { result.as_mut() } {
            *result = value;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_outside_expect() -> c_int {
    answer(|| {
        caller()?;
        run::current()?.expected().push(Outside::expect());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_outside_forget() -> c_int {
    answer(|| {
        let forgotten = run::current()?.expected().pop();
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
        // SAFETY: guaranteed by the caller: null or memory for a number.
        let number = unsafe { microprocess.as_mut() }.ok_or(Code::INVALID)?;
        // SAFETY: guaranteed by the caller.
        let wanted = unsafe { attributes::wanted(attributes) }?;
        let argument = Pointer(argument);
        caller()?;
        let run = run::current()?;
        // Locked until the record is in: the new microprocess must find itself in the table.
        let mut table = run.table();
        let handle = wanted
            .builder
            .spawn(move || call_and_end(run, start, argument))
            .map_err(|_| Code::AGAIN)?;
        let microprocess = handle.microprocess();
        *number = microprocess.id();
        let joining =
            if wanted.detached { Joining::Never(microprocess) } else { Joining::Possible(handle) };
        table.insert(microprocess.id(), Record::new(joining));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_join(microprocess: u64, result: *mut *mut c_void) -> c_int {
    answer(|| {
        if caller()?.id() == microprocess {
            return Err(Code::DEADLOCK);
        }
        let run = run::current()?;
        let handle = claim(&mut run.table(), microprocess, Joining::UnderWay)?;
        let joined = DetachOnUnwind { run, id: microprocess };
        let Pointer(value) = handle.join().unwrap_or(CANCELED);
        run.table().remove(&microprocess);
        drop(joined);
        // SAFETY: guaranteed by the caller: null or memory for a pointer.
        if let Some(result) = unsafe { result.as_mut() } {
            *result = value;
        }
        Ok(())
    })
}

/// Detaches a microprocess when its joiner is killed during the wait.
struct DetachOnUnwind {
    run: &'static Run,
    id: u64,
}

impl Drop for DetachOnUnwind {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.run.table().entry(self.id) {
            let record = entry.get_mut();
            record.joining = Joining::Never(record.microprocess());
            if record.is_leaving {
                entry.remove();
            }
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_detach(microprocess: u64) -> c_int {
    answer(|| {
        let run = run::current()?;
        let mut table = run.table_from_any_thread();
        let handle = claim(&mut table, microprocess, Joining::Never)?;
        if table.get(&microprocess).is_some_and(|record| record.is_leaving) {
            table.remove(&microprocess);
        }
        drop(table);
        drop(handle);
        Ok(())
    })
}

/// Takes the handle of a joinable microprocess and records `after` in its place.
///
/// # Errors
/// `ESRCH`: there is no such microprocess. `EINVAL`: it is detached or already being joined.
fn claim(
    table: &mut Table,
    id: u64,
    after: fn(Microprocess) -> Joining,
) -> Result<JoinHandle<Pointer>> {
    let record = table.get_mut(&id).ok_or(Code::NO_SUCH)?;
    let microprocess = record.microprocess();
    match core::mem::replace(&mut record.joining, after(microprocess)) {
        Joining::Possible(handle) => Ok(handle),
        other => {
            record.joining = other;
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
    let Ok((run, _me)) = caught(|| Ok((run::current()?, caller()?))) else {
        let _closed = writeln!(std::io::stderr(), "kyocho_exit: the caller is not a microprocess");
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

/// The microprocess with number `id`.
fn named(id: u64) -> Result<Microprocess> {
    let table = run::current()?.table_from_any_thread();
    table.get(&id).map(Record::microprocess).ok_or(Code::NO_SUCH)
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
        // SAFETY: guaranteed by the caller: null or memory for a number.
        let priority = unsafe { priority.as_mut() }.ok_or(Code::INVALID)?;
        *priority = c_int::from(named(microprocess)?.priority().level());
        Ok(())
    })
}
