//! The front: the process that was asked for an instance, which a shell outside knows as its job. It runs nothing itself; the server is its child.
//!
//! ```text
//!   front ◄── channel ──► server ◄── channel ──► warden ── first client ── ...
//!
//!   the first client stops → the front stops; continued, it continues the first client. The server never stops, and answers whoever runs on
//!   the first client ends  → the warden ends the others; the server tells the front how; all go
//!   the server ends        → orphans come to the front: that one ends all
//!   the front ends         → its end of the channel is closed: the server ends the first client, and thus all
//! ```
//!
//! Front and first client share the process group of the job, which a terminal sends signals to. The server and the warden have groups of their own.
//!
//! **Invariant:** whichever two of front, server and warden are killed, the third ends all that ran.

use crate::clients::tree;
use crate::errors::host;
use crate::life::news::{self, News};
use crate::options::{Outcome, StartError};
use kyocho_sys::arrivals::Arrivals;
use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use kyocho_sys::process;
use kyocho_sys::signal::{AllBlocked, Signal};
use kyocho_sys::task::ThreadId;
use rustix::process::{Pid, WaitOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What may be sent to the front. What a terminal sends goes to its whole foreground group: the program has it already, and the front outlives it.
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
/// What is meant for the program.
const PASSED_ON: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2];

/// Has `serve` run in a child, which tells of the first program on the channel that it gets; stands for the instance until all of it has ended.
/// Blocks. Call it while there is one kernel thread.
///
/// # Errors
/// What the host does not permit; what was lost.
pub(crate) fn stand(serve: impl FnOnce(OwnedFd)) -> Result<Outcome, StartError> {
    let failed = |errno| StartError::Host("a process for the server", errno);
    adopt_orphans().map_err(failed)?;
    let ends = news::channel().map_err(failed)?;
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
            // Delivered, they would end this process, or stop it.
            while arrivals.next().is_some() {}
            outcome
        });
    // A server that is there still hears it.
    drop(ours);
    if matches!(outcome, Err(StartError::Lost(_))) {
        tree::end_descendants();
    } else {
        // It has told all. Whoever else took its status did what was wanted.
        let _ = rustix::process::waitpid(Pid::from_raw(server as i32), WaitOptions::empty());
    }
    drop(blocked);
    outcome
}

/// Orphans among the descendants of this process are its children from now on.
///
/// # Errors
/// The host's.
pub(crate) fn adopt_orphans() -> Result<(), Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(host)
}

/// Shows outside what the first program does, until it has ended, or the server has, which makes `end` readable.
fn follow(
    channel: BorrowedFd<'_>,
    end: BorrowedFd<'_>,
    arrivals: &Arrivals,
) -> Result<Outcome, StartError> {
    let is_readable = |descriptor| kyocho_sys::descriptor::is_readable(descriptor) != Ok(false);
    let mut first = None;
    loop {
        let (news, last) = ((channel, Interest::Read), (end, Interest::Read));
        let _ = match first {
            // Signals wait until there is somebody to pass them on to.
            None => poll::wait([news, last], None),
            Some(_) => poll::wait([news, last, (arrivals.as_fd(), Interest::Read)], None),
        };
        if let Some(first) = first {
            while let Some(signal) = arrivals.next() {
                pass_on(signal, first);
            }
        }
        // Before the look at what it said last.
        let has_ended = is_readable(end);
        if !is_readable(channel) {
            if has_ended {
                return Err(StartError::Lost("server"));
            }
            continue;
        }
        match News::hear(channel).map(|(news, _)| news) {
            Some(News::Started(process)) => first = Some(process),
            Some(News::Failed(errno)) => {
                let what = "system-call filters with a listener (Linux 5.19)";
                return Err(StartError::Host(what, Errno::new(errno)));
            }
            Some(News::Stopped) => first.into_iter().for_each(stop_with),
            Some(News::Ended(outcome)) => return Ok(outcome),
            Some(News::Lost) => return Err(StartError::Lost("warden")),
            None => return Err(StartError::Lost("server")),
        }
    }
}

fn pass_on(signal: Signal, first: u32) {
    if PASSED_ON.contains(&signal) {
        // One that ended meanwhile needs no signal.
        let _ = tree::send(first, signal.number());
    }
}

/// Stops this process where the first program has stopped, as a shell outside expects of a job; and lets that one go on when this one does.
fn stop_with(first: u32) {
    if !tree::is_stopped(first) {
        return;
    }
    // To this kernel thread, which therefore stands still before the next line. It cannot fail, and if it did, nothing would have stopped.
    let _ = kyocho_sys::signal::send(ThreadId::current(), Signal::STOP);
    if tree::is_stopped(first) {
        let _ = tree::send(first, libc::SIGCONT);
    }
}
