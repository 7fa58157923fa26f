//! A pseudo-terminal with `kyocho connect` on it, which edits the lines of a remote user.

use crate::state;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};

/// The running program, even if its file was replaced since it started.
const OWN_PROGRAM: &str = "/proc/self/exe";
const READ_BYTES: usize = 8192;
/// Longest accepted name of a terminal type.
const NAME_BYTES_MAX: usize = 64;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    columns: u16,
    rows: u16,
}

impl Size {
    /// The size that a client requests, within bounds.
    pub(super) fn new(columns: u32, rows: u32) -> Self {
        let bounded = |count| u16::try_from(count).unwrap_or(u16::MAX);
        Self { columns: bounded(columns), rows: bounded(rows) }
    }

    fn as_host_has_it(self) -> Winsize {
        Winsize { ws_row: self.rows, ws_col: self.columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// The terminal. Its program is ended when this is dropped.
pub(super) struct Terminal {
    /// The server's side of the terminal.
    master: AsyncFd<OwnedFd>,
    program: Child,
}

impl Terminal {
    /// Starts the program, with `connection` to a getty of `user`.
    pub(super) fn start(
        connection: UnixStream,
        user: &str,
        name: &str,
        size: Size,
    ) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        tcsetwinsize(&master, size.as_host_has_it())?;
        rustix::io::ioctl_fionbio(&master, true)?;
        let mut command = Command::new(OWN_PROGRAM);
        // The program's standard input is the connection. It makes the terminal its controlling
        // terminal.
        command.arg0("kyocho").args(["connect", "--handed"]).env_clear();
        command.env("TERM", if is_terminal_name(name) { name } else { "dumb" });
        if let Some(file) = history_file(user) {
            command.env("KYOCHO_HISTORY", file);
        }
        command.stdin(OwnedFd::from(connection)).stdout(slave.try_clone()?).stderr(slave);
        let program = command.kill_on_drop(true).spawn()?;
        Ok(Self { master: registered(master)?, program })
    }

    /// Reads output of the program. `None` once it has ended.
    pub(super) async fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = vec![0; READ_BYTES];
        let reading = |master: &OwnedFd| Ok(rustix::io::read(master, buffer.as_mut_slice())?);
        match self.master.async_io(Interest::READABLE, reading).await {
            Ok(0) => Ok(None),
            // No process has the other side open any more.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                Ok(None)
            }
            Ok(count) => {
                buffer.truncate(count);
                Ok(Some(buffer))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what the user types.
    pub(super) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let writing = |master: &OwnedFd| Ok(rustix::io::write(master, bytes)?);
            let count = self.master.async_io(Interest::WRITABLE, writing).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Sets a new size of the window, which notifies the program.
    pub(super) fn resize(&self, size: Size) -> io::Result<()> {
        Ok(tcsetwinsize(&self.master, size.as_host_has_it())?)
    }

    /// Hangs up, and waits for the program's exit code.
    pub(super) async fn end(self) -> io::Result<u32> {
        let Self { master, mut program } = self;
        drop(master);
        let status = program.wait().await?;
        Ok(status.code().and_then(|code| u32::try_from(code).ok()).unwrap_or(1))
    }
}

#[expect(
    deprecated,
    reason = "unsound for types whose descriptor may change: an `OwnedFd` keeps its own, open, until it is dropped"
)]
fn registered(master: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(master, Interest::READABLE | Interest::WRITABLE)
}

/// Whether a text from a client is acceptable as the name of a terminal type.
fn is_terminal_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '+');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)
}

/// The file for a user's history. `None` if there is no folder for it.
fn history_file(user: &str) -> Option<PathBuf> {
    let folder = state::folder()?.join("history-of");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join(user))
}
