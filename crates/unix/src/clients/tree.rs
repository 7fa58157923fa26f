//! The tree of the host's processes: which of them belong to the instance, and how to signal and
//! end them.

use crate::errors::NOT_FOUND;
use core::time::Duration;
use kyocho_sys::error::Errno;
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use std::os::fd::AsFd;

/// Longest chain of parents that is followed.
const ANCESTORS_MAX: usize = 4096;

/// Whether process `id` belongs to the instance of this server: whether it descends from the
/// warden, which is a child of the server.
pub(crate) fn is_client(id: u32) -> bool {
    generation(id).is_some_and(|generation| generation >= 2)
}

/// How many generations process `id` is below this one; `None` if it does not descend from it.
pub(crate) fn generation(id: u32) -> Option<usize> {
    let own = std::process::id();
    let mut at = id;
    for generation in 1..=ANCESTORS_MAX {
        match status_field(at, "PPid:", 10) {
            Ok(parent) if parent == own => return Some(generation),
            Ok(parent) if parent > 1 => at = parent,
            _ => return None,
        }
    }
    None
}

/// A number in `/proc/ID/status`. Most calls need one, so the file is read in one piece.
pub(crate) fn status_field(id: u32, field: &str, radix: u32) -> Result<u32, Errno> {
    /// More than what precedes any of the fields that are asked for.
    const START_BYTES: usize = 2048;
    let gone = |_| Errno::SRCH;
    let path = format!("/proc/{id}/status");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path.as_str(), flags, Mode::empty()).map_err(gone)?;
    let mut start = [0; START_BYTES];
    let read = rustix::io::read(&file, start.as_mut_slice()).map_err(gone)?;
    start[..read]
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(field.as_bytes()))
        .and_then(|rest| u32::from_str_radix(str::from_utf8(rest).ok()?.trim(), radix).ok())
        .ok_or(NOT_FOUND)
}

/// Sends `signal` to a process of the instance.
pub(crate) fn send(process: u32, signal: i32) -> Result<(), Errno> {
    // The descriptor first: what is learned after it is about the process that it names.
    let handle = kyocho_sys::process::open(process)?;
    if !is_client(process) {
        return Err(Errno::SRCH);
    }
    kyocho_sys::process::signal(handle.as_fd(), signal)
}

/// The process group of `process`.
pub(crate) fn group_of(process: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may contain anything: state, parent, group.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// All processes of the host that this user can see.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// How many threads all processes of the instance have together.
pub(crate) fn tasks() -> usize {
    let threads = |process| status_field(process, "Threads:", 10).unwrap_or(0) as usize;
    processes().filter(|process| is_client(*process)).map(threads).sum()
}

/// Whether `process` is stopped by a signal.
pub(crate) fn is_stopped(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

/// Kills all descendants of this process and takes their statuses, until there are none left.
/// Orphans become its children as their parents end, and are killed in turn. Blocks the kernel
/// thread.
#[expect(clippy::disallowed_methods, reason = "no notice exists of an orphan's arrival")]
pub(crate) fn end_descendants() {
    /// How long killed processes have to end before the next look.
    const LOOK_AGAIN: Duration = Duration::from_micros(200);
    loop {
        for child in children() {
            // A child's number stays its own until this process takes its status.
            let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        }
        let ended = loop {
            match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                other => break other,
            }
        };
        if ended.is_err() {
            return;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let numbers: Vec<u32> =
        match std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")) {
            Ok(list) => {
                list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
            }
            // The host was built without that file.
            Err(_) => processes().filter(|process| generation(*process) == Some(1)).collect(),
        };
    numbers.iter().filter_map(|child| Pid::from_raw(*child as i32)).collect()
}
