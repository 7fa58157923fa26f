//! The front: the process that was asked for an instance, and that a shell outside knows as its
//! job. It runs no program; the server is its child.
//!
//! ```text
//!   front ◄── channel ──► server ◄── channel ──► warden ── first client ── ...
//!
//!   first client stops  the front stops; continued, it continues the first client.
//!                       The server never stops, and serves clients that run on
//!   first client ends   the warden ends the others; the server tells the front how; all exit
//!   server ends         orphans become children of the front, which ends all
//!   front ends          its channel is closed: the server ends the first client, thus all
//! ```
//!
//! Front and first client share the process group of the job, which a terminal sends signals to.
//! The server and the warden each have a group of their own.
//!
//! **Invariant:** if any two of front, server and warden are killed, the third ends everything that
//! ran.

use crate::clients::tree;
use crate::errors::host;
use crate::life::report::{self, Report};
use crate::options::{Outcome, StartError};
use kyocho_sys::arrivals::Arrivals;
use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use kyocho_sys::process;
use kyocho_sys::signal::{AllBlocked, Signal};
use kyocho_sys::task::ThreadId;
use rustix::process::{Pid, WaitOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The signals that the front handles. What a terminal sends goes to its whole foreground group, so
/// the program has received it already, and the front only survives it.
const HEARD: [Signal; 9] = [
    Signal::INT,
    Signal::QUIT,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
    Signal::TERM,
    Signal::HUP,
    Signal::USR1,
    Signal::USR2,
];
/// The signals that are passed to the program.
const PASSED_ON: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2];

/// Runs `serve` in a child, with the channel on which it reports about the first program. Returns
/// when all of the instance has ended. Blocks. Call it while there is one kernel thread.
///
/// # Errors
/// What the host does not permit, or which process was lost.
pub(crate) fn stand(serve: impl FnOnce(OwnedFd)) -> Result<Outcome, StartError> {
    let failed = |errno| StartError::Host("a process for the server", errno);
    adopt_orphans().map_err(failed)?;
    let ends = report::channel().map_err(failed)?;
    let (server, (ours, theirs)) = process::fork(ends, |(ours, theirs)| {
        drop(ours);
        serve(theirs);
        0
    })
    .map_err(failed)?;
    drop(theirs);
    let blocked = AllBlocked::new();
    let outcome = Arrivals::of(&HEARD)
        .and_then(|arrivals| Ok((arrivals, process::open(server)?)))
        .map_err(failed)
        .and_then(|(arrivals, end)| {
            let outcome = follow(ours.as_fd(), end.as_fd(), &arrivals);
            // If they were delivered, they would end or stop this process.
            while arrivals.next().is_some() {}
            outcome
        });
    // If the server still runs, it sees the end of the channel.
    drop(ours);
    if matches!(outcome, Err(StartError::Lost(_))) {
        tree::end_descendants();
    } else {
        // It has reported everything. If its status has been taken already, there is nothing to do.
        let _ = rustix::process::waitpid(Pid::from_raw(server as i32), WaitOptions::empty());
    }
    drop(blocked);
    outcome
}

/// From now on, orphans among the descendants of this process become its children.
///
/// # Errors
/// The host's.
pub(crate) fn adopt_orphans() -> Result<(), Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(host)
}

/// Shows outside what the first program does, until it or the server has ended. The server's end
/// makes `end` readable.
fn follow(
    channel: BorrowedFd<'_>,
    end: BorrowedFd<'_>,
    arrivals: &Arrivals,
) -> Result<Outcome, StartError> {
    let is_readable = |descriptor| kyocho_sys::descriptor::is_readable(descriptor) != Ok(false);
    let mut first = None;
    loop {
        let (report, last) = ((channel, Interest::Read), (end, Interest::Read));
        let _ = match first {
            // Signals wait until there is a program to pass them to.
            None => poll::wait([report, last], None),
            Some(_) => poll::wait([report, last, (arrivals.as_fd(), Interest::Read)], None),
        };
        if let Some(first) = first {
            while let Some(signal) = arrivals.next() {
                pass_on(signal, first);
            }
        }
        // This precedes the check of the channel, which may hold its last report.
        let has_ended = is_readable(end);
        if !is_readable(channel) {
            if has_ended {
                return Err(StartError::Lost("server"));
            }
            continue;
        }
        match Report::receive(channel).map(|(report, _)| report) {
            Some(Report::Started(process)) => first = Some(process),
            Some(Report::Failed(errno)) => {
                let what = "system-call filters with a listener (Linux 5.19)";
                return Err(StartError::Host(what, Errno::new(errno)));
            }
            Some(Report::Stopped) => first.into_iter().for_each(stop_with),
            Some(Report::Ended(outcome)) => return Ok(outcome),
            Some(Report::Lost) => return Err(StartError::Lost("warden")),
            None => return Err(StartError::Lost("server")),
        }
    }
}

fn pass_on(signal: Signal, first: u32) {
    if PASSED_ON.contains(&signal) {
        // A process that has ended needs no signal.
        let _ = tree::send(first, signal.number());
    }
}

/// Stops this process because the first program has stopped, as a shell outside expects of a job.
/// When this process is continued, it continues the program.
fn stop_with(first: u32) {
    if !tree::is_stopped(first) {
        return;
    }
    // The signal goes to this kernel thread, so it stops before the next line. An error is not
    // possible; it would mean that nothing has stopped.
    let _ = kyocho_sys::signal::send(ThreadId::current(), Signal::STOP);
    if tree::is_stopped(first) {
        let _ = tree::send(first, libc::SIGCONT);
    }
}
