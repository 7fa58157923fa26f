//! The warden: a process between the server and its clients, so that nobody outlives the instance, however the server ends.
//!
//! ```text
//!   server ◄── channel ──► warden ── first client ── ...          all orphans of clients come to the warden
//!
//!   the first client ends  → the warden tells the server how, ends the others, and itself
//!   the server ends        → its end of the channel is closed: the warden says so, ends all, and itself
//!   the warden ends        → its end of the channel is closed, orphans come to the server: that one ends all
//! ```
//!
//! It blocks every signal and leads a process group of its own, so what a terminal or `kill` sends to the command's group does not reach it.
//!
//! **Invariant:** where tasks have a limit, ending all comes to an end: making one is a served call then, and with the server gone the host answers served
//! calls with an error. Where they have none, the warden races with programs that fork faster than they can be ended, as any killer does.

use crate::processes::end_descendants;
use crate::server::host;
use kyocho_microprocess::io::descriptor;
use kyocho_sys::confined::{self, Confined};
use kyocho_sys::error::Errno;
use kyocho_sys::passing;
use kyocho_sys::poll::{self, Interest};
use kyocho_sys::process;
use kyocho_sys::seccomp::Listener;
use kyocho_sys::signal::AllBlocked;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, WaitOptions, WaitStatus};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// How the first program of an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, with this status.
    Exited(u8),
    /// By this signal.
    Signalled(i32),
}

/// What the warden tells of the first client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It has this number, and the message brings its listener.
    Started(u32),
    /// It could not be started.
    Failed(i32),
    /// It stopped, as by a key of its terminal.
    Stopped,
    /// It ended.
    Ended(Outcome),
}

const NEWS_BYTES: usize = 8;

impl News {
    fn to_bytes(self) -> [u8; NEWS_BYTES] {
        let (kind, value) = match self {
            Self::Started(process) => (0_u32, process),
            Self::Failed(errno) => (1, errno as u32),
            Self::Stopped => (2, 0),
            Self::Ended(Outcome::Exited(status)) => (3, u32::from(status)),
            Self::Ended(Outcome::Signalled(signal)) => (4, signal as u32),
        };
        (u64::from(kind) << 32 | u64::from(value)).to_ne_bytes()
    }

    fn from_bytes(bytes: [u8; NEWS_BYTES]) -> Option<Self> {
        let word = u64::from_ne_bytes(bytes);
        let value = word as u32;
        Some(match word >> 32 {
            0 => Self::Started(value),
            1 => Self::Failed(value as i32),
            2 => Self::Stopped,
            3 => Self::Ended(Outcome::Exited(value as u8)),
            4 => Self::Ended(Outcome::Signalled(value as i32)),
            _ => return None,
        })
    }
}

/// The server's side.
#[derive(Debug)]
pub(crate) struct Warden {
    process: u32,
    channel: OwnedFd,
}

/// A first client that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) warden: Warden,
    /// The first client's number.
    pub(crate) process: u32,
    pub(crate) listener: Listener,
}

/// Starts a warden, and under it the first client. When the server is killed, the warden also removes the folder `left_behind`. Call it while there is one
/// kernel thread. Blocks.
///
/// # Errors
/// What [`confined::start`] and [`process::fork`] say.
pub(crate) fn start(what: &Confined<'_>, left_behind: &Path) -> Result<Started, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let ends = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(host)?;
    let (warden, (channel, theirs)) = process::fork(ends, |(ours, channel)| {
        drop(ours);
        watch(what, &channel, left_behind)
    })?;
    drop(theirs);
    let warden = Warden { process: warden, channel };
    let mut bytes = [0; NEWS_BYTES];
    let (_, mut descriptors) = passing::receive(warden.channel.as_fd(), &mut bytes)?;
    match (News::from_bytes(bytes), descriptors.pop()) {
        (Some(News::Started(process)), Some(listener)) => {
            Ok(Started { warden, process, listener: Listener::new(listener) })
        }
        (Some(News::Failed(errno)), _) => Err(Errno::new(errno)),
        _ => Err(Errno::SRCH),
    }
}

impl Warden {
    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// What comes next of the first client; nothing once the warden has ended. The microprocess sleeps.
    pub(crate) fn hear(&self) -> Option<News> {
        let mut bytes = [0; NEWS_BYTES];
        while descriptor::ready(self.channel.as_fd(), Interest::Read, None).is_err() {}
        match kyocho_sys::descriptor::read(self.channel.as_fd(), &mut bytes) {
            Ok(NEWS_BYTES) => News::from_bytes(bytes),
            _ => None,
        }
    }

    /// Takes its status, so that nothing of it is left.
    pub(crate) fn bury(self) {
        let process = Pid::from_raw(self.process as i32);
        // It has ended; whoever else took its status did what was wanted.
        let _ = rustix::process::waitpid(process, WaitOptions::empty());
    }
}

/// The warden's whole life.
fn watch(what: &Confined<'_>, channel: &OwnedFd, left_behind: &Path) -> i32 {
    match begin(what, channel) {
        Ok((first, children)) => {
            let served = follow(first, channel.as_fd(), children.as_fd());
            end_descendants();
            if !served {
                let _ = std::fs::remove_dir_all(left_behind);
            }
            0
        }
        Err(errno) => {
            tell(channel.as_fd(), News::Failed(errno.number()));
            1
        }
    }
}

/// Starts the first client and steps aside: its number, and where news of children come.
fn begin(what: &Confined<'_>, channel: &OwnedFd) -> Result<(Pid, OwnedFd), Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(host)?;
    let confined::Started { process, listener } = confined::start(what)?;
    // For good: nothing but its two descriptors tells the warden what to do.
    core::mem::forget(AllBlocked::new());
    let children = process::news_of_children()?;
    // A group of its own. The first client stays in that of the server, which the terminal's foreground is.
    rustix::process::setpgid(None, None).map_err(host)?;
    let first = Pid::from_raw(process as i32).ok_or(Errno::SRCH)?;
    passing::send(channel.as_fd(), &News::Started(process).to_bytes(), &[listener.as_fd()])?;
    Ok((first, children))
}

/// Takes the statuses of all that end, until it is `first`, or the server: whether there is a server still.
fn follow(first: Pid, channel: BorrowedFd<'_>, children: BorrowedFd<'_>) -> bool {
    loop {
        while let Ok(Some((process, status))) = wait_for_any() {
            if process != first {
                continue;
            }
            let Some(outcome) = outcome_of(status) else {
                tell(channel, News::Stopped);
                continue;
            };
            tell(channel, News::Ended(outcome));
            return true;
        }
        // Nothing blocks between here and the next look, so no news is lost.
        let _ = poll::wait([(channel, Interest::Read), (children, Interest::Read)], None);
        let _ = kyocho_sys::descriptor::read(children, &mut [0; 128]);
        // The server never sends: what can be read is the end.
        if kyocho_sys::descriptor::is_readable(channel) != Ok(false) {
            let line = "kyocho unix: the server was killed; what ran under it is ended\n";
            // Standard error that is closed leaves nobody to tell.
            let _ = std::io::stderr().write_all(line.as_bytes());
            return false;
        }
    }
}

fn wait_for_any() -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED)
}

/// How a process ended; nothing for one that stopped.
fn outcome_of(status: WaitStatus) -> Option<Outcome> {
    let exited = status.exit_status().map(|status| Outcome::Exited(status as u8));
    exited.or_else(|| status.terminating_signal().map(Outcome::Signalled))
}

/// A server that is gone hears nothing, which the next look finds out.
fn tell(channel: BorrowedFd<'_>, news: News) {
    let _ = passing::send(channel, &news.to_bytes(), &[]);
}

#[cfg(test)]
mod tests {
    use super::{News, Outcome};

    #[test]
    fn news_arrive_as_they_were_sent() {
        for news in [
            News::Started(7),
            News::Failed(38),
            News::Stopped,
            News::Ended(Outcome::Exited(255)),
            News::Ended(Outcome::Signalled(9)),
        ] {
            assert_eq!(News::from_bytes(news.to_bytes()), Some(news));
        }
        assert_eq!(News::from_bytes([0xff; 8]), None);
    }
}
