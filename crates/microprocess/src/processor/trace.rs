//! Timelines: what ran when, on which virtual processor, and the events in between.
//!
//! ```text
//!   holder (masked) ── note ──► ring of its virtual processor ── stop ──► Timeline ──► Chrome's JSON (`chrome`)
//!                               newest CAPACITY moments; older ones are overwritten and counted
//! ```
//!
//! When recording is off, each event costs one load and a branch that is not taken. When it is on,
//! each switch costs some 30 ns, most of it for the clock.

use core::error::Error;
use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use kyocho_sys::prim::clock::monotonic_ns;
use serde::{Deserialize, Serialize};

pub mod chrome;
mod ring;

pub(crate) use ring::Trace;

use crate::data::detection::Detection;
use crate::processor::record::Record;
use crate::processor::shared::{self, Shared};

/// What happened at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
#[non_exhaustive]
pub enum What {
    /// A microprocess began to run on the virtual processor.
    Runs,
    /// The virtual processor became idle.
    Idles,
    /// The running microprocess sleeps in the kernel.
    Blocked,
    /// A microprocess returned from a sleep in the kernel.
    Unblocked,
    /// The running microprocess was stopped in code that does not call the runtime.
    Preempted,
    /// A kernel thread of the pool received the virtual processor.
    Resumed,
    /// The orders, the priority, the parameter or the pin of a microprocess were changed.
    Changed,
}

/// Something that happened on a virtual processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Moment {
    /// The time, in nanoseconds on the monotonic clock.
    pub at_ns: u64,
    /// The virtual processor, numbered across the runtimes of the address space.
    pub virtual_processor: usize,
    /// What happened.
    pub what: What,
    /// The id of the microprocess concerned; 0 if there is none.
    pub id: u64,
    /// Its name at that time.
    pub name: Option<String>,
}

/// A recording of one address space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The process number.
    pub process: u32,
    /// When recording began and ended, in nanoseconds on the monotonic clock.
    pub from_ns: u64,
    /// See `from_ns`.
    pub to_ns: u64,
    /// How many virtual processors there were.
    pub virtual_processors: usize,
    /// The moments, in order of time.
    pub moments: Vec<Moment>,
    /// The number of moments that newer ones overwrote.
    pub dropped: u64,
}

/// The error of [`start`]: a timeline is being recorded already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timeline is being recorded already")
    }
}

impl Error for Busy {}

/// The most moments of a timeline; the newest are kept. They fit in one reply of the control
/// socket.
const MOMENTS_MAX: usize = 300_000;

/// The start of the present recording, if there is one.
static RECORDING: Mutex<Option<u64>> = Mutex::new(None);

/// Records what happens in this address space from now on, until [`stop`]. May be called from any
/// kernel thread. The first recording takes 4 MiB for each virtual processor.
///
/// # Errors
/// A timeline is being recorded already.
pub fn start() -> Result<(), Busy> {
    let mut recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    if recording.is_some() {
        return Err(Busy);
    }
    *recording = Some(monotonic_ns());
    shared::all().into_iter().for_each(watch);
    Ok(())
}

fn watch(shared: &'static Shared) {
    for vp in shared.vps() {
        vp.trace.turn_on(vp.current.get());
    }
}

/// Adds a runtime that starts to the present recording, if there is one.
pub(crate) fn join(shared: &'static Shared) {
    if RECORDING.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
        watch(shared);
    }
}

/// Ends the recording; returns what was recorded of the runtimes that run now. Empty if there was
/// no recording.
#[must_use]
pub fn stop() -> Timeline {
    let mut recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(from_ns) = recording.take() else { return Timeline::default() };
    let to_ns = monotonic_ns();
    let vps = || shared::all().into_iter().flat_map(Shared::vps);
    vps().for_each(|vp| vp.trace.turn_off());
    let mut timeline = Timeline {
        process: process::id(),
        from_ns,
        to_ns,
        virtual_processors: vps().count(),
        ..Timeline::default()
    };
    for (number, vp) in vps().enumerate() {
        timeline.dropped += vp.trace.take(number, from_ns, &mut timeline.moments);
    }
    timeline.moments.sort_by_key(|moment| moment.at_ns);
    let surplus = timeline.moments.len().saturating_sub(MOMENTS_MAX);
    timeline.moments.drain(..surplus);
    timeline.dropped += surplus as u64;
    timeline
}

/// The id and the name of `record`, for a ring.
fn identity(record: Option<&'static Record>) -> (u64, crate::processor::record::Name) {
    record.map_or((0, crate::processor::record::Name::NONE), |record| {
        (record.id(), record.name.get())
    })
}

/// The environment variable that names a file for the timeline of the whole run, in Chrome's
/// format.
const FILE_VARIABLE: &str = "KYOCHO_TRACE";

static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();

/// The target of events about runs, for subscribers.
const RUNTIME: &str = "kyocho_microprocess::runtime";

/// A run begins on `virtual_processors` virtual processors. The first run of the process begins a
/// recording if the environment asks for one.
pub(crate) fn begin_run(virtual_processors: usize, detection: Detection) {
    start_if_wanted();
    tracing::debug!(target: RUNTIME, virtual_processors, detected = ?detection, "runtime starts");
}

/// A run has ended, in a deadlock or not. Writes the recording that the environment asked for.
pub(crate) fn end_run(deadlock: bool) {
    tracing::debug!(target: RUNTIME, deadlock, "runtime ends");
    write_file();
}

/// Begins a recording at the first call, if the environment asks for one; [`write_file`] ends it.
fn start_if_wanted() {
    let wanted = || std::env::var_os(FILE_VARIABLE).map(PathBuf::from);
    if FILE.get().is_none() && FILE.get_or_init(wanted).is_some() {
        // If a recording from outside has begun before, it is used. A request from outside, or
        // `write_file`, ends it.
        let _recorded_anyway = start();
        kyocho_sys::at_exit::call(write_file);
    }
}

/// Writes the recording that the environment asked for. Called when a runtime or the process is
/// about to end.
fn write_file() {
    let Some(Some(path)) = FILE.get() else { return };
    let timeline = stop();
    if timeline.virtual_processors != 0 {
        write_to(path, &timeline);
    }
}

fn write_to(path: &Path, timeline: &Timeline) {
    if let Err(error) = fs::write(path, chrome::text(timeline)) {
        tracing::error!(path = %path.display(), %error, "the timeline is lost");
    }
}

#[cfg(test)]
mod tests;
