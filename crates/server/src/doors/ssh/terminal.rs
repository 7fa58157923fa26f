//! A pseudo-terminal with `kyocho connect` on it: what edits a remote user's lines.

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

/// This very program, also where its file was replaced since.
const OWN_PROGRAM: &str = "/proc/self/exe";
const READ_BYTES: usize = 8192;
/// A terminal's name that is longer is none.
const NAME_BYTES_MAX: usize = 64;

/// How large a terminal is, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    columns: u16,
    rows: u16,
}

impl Size {
    /// What a client says, within bounds.
    pub(super) fn new(columns: u32, rows: u32) -> Self {
        let bounded = |count| u16::try_from(count).unwrap_or(u16::MAX);
        Self { columns: bounded(columns), rows: bounded(rows) }
    }

    fn as_host_has_it(self) -> Winsize {
        Winsize { ws_row: self.rows, ws_col: self.columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// The terminal. The program on it ends when this is dropped.
pub(super) struct Terminal {
    /// Our side.
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
        // Its standard input is the connection; it makes the terminal its own.
        command.arg0("kyocho").args(["connect", "--handed"]).env_clear();
        command.env("TERM", if is_terminal_name(name) { name } else { "dumb" });
        if let Some(file) = history_file(user) {
            command.env("KYOCHO_HISTORY", file);
        }
        command.stdin(OwnedFd::from(connection)).stdout(slave.try_clone()?).stderr(slave);
        let program = command.kill_on_drop(true).spawn()?;
        Ok(Self { master: registered(master)?, program })
    }

    /// What the program shows; none once it has ended.
    pub(super) async fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = vec![0; READ_BYTES];
        let reading = |master: &OwnedFd| Ok(rustix::io::read(master, buffer.as_mut_slice())?);
        match self.master.async_io(Interest::READABLE, reading).await {
            Ok(0) => Ok(None),
            // Nobody has the other side open any more.
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

    /// What the user types.
    pub(super) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let writing = |master: &OwnedFd| Ok(rustix::io::write(master, bytes)?);
            let count = self.master.async_io(Interest::WRITABLE, writing).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// The user's window has another size: the program is told.
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

/// Whether a client's word may be the name of a terminal.
fn is_terminal_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '+');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)
}

/// Where a user's history is kept; none where there is no place for it.
fn history_file(user: &str) -> Option<PathBuf> {
    let folder = state::folder()?.join("history-of");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join(user))
}
