//! The warden: a process between the server and its clients. No client outlives the instance,
//! however the server ends.
//!
//! ```text
//!   server ◄── channel ──► warden ── first client ── ...
//!
//!   (orphans of clients become children of the warden)
//!   first client ends  the warden reports how, ends the others, and exits
//!   server ends        its end of the channel is closed: the warden ends all, and exits
//!   warden ends        its end of the channel is closed, orphans become children of the server,
//!                      which ends all
//! ```
//!
//! It blocks every signal and leads a process group of its own, so it does not receive what a
//! terminal or `kill` sends to the command's group.
//!
//! **Invariant:** if tasks have a limit, ending all of them terminates. Making a task is a served
//! call then, and the host fails served calls once the server is gone. Without a limit, the warden
//! races with programs that fork faster than they can be killed, as any killer does.

use crate::clients::tree::end_descendants;
use crate::errors::host;
use crate::life::front::adopt_orphans;
use crate::life::host_resources::HostResources;
use crate::life::report::{self, Report, complain};
use crate::options::Outcome;
use core::time::Duration;
use kyocho_microprocess::io::descriptor;
use kyocho_sys::arrivals::Arrivals;
use kyocho_sys::confined::{self, Confined};
use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use kyocho_sys::process;
use kyocho_sys::seccomp::Listener;
use kyocho_sys::signal::{AllBlocked, Signal};
use rustix::process::{Pid, WaitOptions, WaitStatus};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The server's side.
#[derive(Debug)]
pub(crate) struct Warden {
    process: u32,
    channel: OwnedFd,
}

/// A first client that was started, and its warden.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) warden: Warden,
    /// The first client's number.
    pub(crate) process: u32,
    pub(crate) listener: Listener,
}

/// Starts a warden, and the first client under it. If the server is killed, the warden also removes
/// `left_behind`. Call it while there is one kernel thread. Blocks.
///
/// # Errors
/// What [`confined::start`] and [`process::fork`] say.
pub(crate) fn start(what: &Confined<'_>, left_behind: &HostResources) -> Result<Started, Errno> {
    let front = rustix::process::getppid();
    let (warden, (channel, theirs)) = process::fork(report::channel()?, |(ours, channel)| {
        drop(ours);
        watch(what, &channel, &LastProcess { left_behind, front })
    })?;
    drop(theirs);
    let warden = Warden { process: warden, channel };
    let (report, mut descriptors) = Report::receive(warden.channel.as_fd()).ok_or(Errno::SRCH)?;
    match (report, descriptors.pop()) {
        (Report::Started(process), Some(listener)) => {
            Ok(Started { warden, process, listener: Listener::new(listener) })
        }
        (Report::Failed(errno), _) => Err(Errno::new(errno)),
        _ => Err(Errno::SRCH),
    }
}

impl Warden {
    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// The next report about the first client; `None` once the warden has ended. The microprocess
    /// sleeps.
    pub(crate) fn receive(&self) -> Option<Report> {
        while descriptor::ready(self.channel.as_fd(), Interest::Read, None).is_err() {}
        Report::receive(self.channel.as_fd()).map(|(report, _)| report)
    }

    /// Takes its status, so that no zombie is left.
    pub(crate) fn reap(self) {
        let process = Pid::from_raw(self.process as i32);
        // It has ended. If its status has been taken already, there is nothing to do.
        let _ = rustix::process::waitpid(process, WaitOptions::empty());
    }
}

/// The duties of the last process of an instance.
struct LastProcess<'a> {
    /// The resources to remove.
    left_behind: &'a HostResources,
    /// The process that tells the user; `None` if it is gone, too.
    front: Option<Pid>,
}

/// The body of the warden's process.
fn watch(what: &Confined<'_>, channel: &OwnedFd, last: &LastProcess<'_>) -> i32 {
    let server = rustix::process::getppid();
    match begin(what, channel) {
        Ok((first, children)) => {
            follow(first, channel.as_fd(), &children);
            end_descendants();
            if has_ended(channel.as_fd()) {
                last.clear_up(server);
            }
            0
        }
        Err(errno) => {
            send_report(channel.as_fd(), Report::Failed(errno.number()));
            1
        }
    }
}

impl LastProcess<'_> {
    /// Removes the resources. If the front is gone, also tells the user. `server` has ended, or is
    /// about to.
    #[expect(clippy::disallowed_methods, reason = "no notice exists of a change of parents")]
    fn clear_up(&self, server: Option<Pid>) {
        const LOOK_AGAIN: Duration = Duration::from_millis(1);
        self.left_behind.remove();
        // A front that lives becomes the parent, tells the user, and ends this process.
        while [server, self.front].contains(&rustix::process::getppid()) {
            std::thread::sleep(LOOK_AGAIN);
        }
        complain("kyocho unix: command and server were killed; their programs were ended\n");
    }
}

/// Starts the first client and leaves the job's process group. Returns the client's number, and the
/// source of events about children.
fn begin(what: &Confined<'_>, channel: &OwnedFd) -> Result<(Pid, Arrivals), Errno> {
    adopt_orphans()?;
    let confined::Started { process, listener } = confined::start(what)?;
    // For good: nothing but its two descriptors controls the warden.
    core::mem::forget(AllBlocked::new());
    let children = Arrivals::of(&[Signal::CHLD])?;
    // The first client stays in the front's group, which is the terminal's foreground group.
    rustix::process::setpgid(None, None).map_err(host)?;
    let first = Pid::from_raw(process as i32).ok_or(Errno::SRCH)?;
    Report::Started(process).send(channel.as_fd(), &[listener.as_fd()])?;
    Ok((first, children))
}

/// Takes the statuses of all children that end, until `first` or the server has ended.
fn follow(first: Pid, channel: BorrowedFd<'_>, children: &Arrivals) {
    loop {
        while let Ok(Some((process, status))) = wait_for_any() {
            if process != first {
                continue;
            }
            let Some(outcome) = outcome_of(status) else {
                send_report(channel, Report::Stopped);
                continue;
            };
            send_report(channel, Report::Ended(outcome));
            return;
        }
        // Nothing is consumed between here and the next check, so no event is lost.
        let _ = poll::wait([(channel, Interest::Read), (children.as_fd(), Interest::Read)], None);
        while children.next().is_some() {}
        if has_ended(channel) {
            return;
        }
    }
}

/// Whether the server, at the other end of `channel`, has ended. It never sends, so a channel that is
/// readable is at its end.
fn has_ended(channel: BorrowedFd<'_>) -> bool {
    kyocho_sys::descriptor::is_readable(channel) != Ok(false)
}

fn wait_for_any() -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED)
}

/// How a process ended; `None` if it only stopped.
fn outcome_of(status: WaitStatus) -> Option<Outcome> {
    let exited = status.exit_status().map(|status| Outcome::Exited(status as u8));
    exited.or_else(|| status.terminating_signal().map(Outcome::Signalled))
}

/// If the server is gone, this fails, and the next check finds it out.
fn send_report(channel: BorrowedFd<'_>, report: Report) {
    let _ = report.send(channel, &[]);
}
