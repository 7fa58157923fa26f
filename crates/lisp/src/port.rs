//! Ports: textual and binary, over files, over memory, and the process's own three.
//!
//! A port is a Rust object in Lisp's hands. Its buffer stands under a mutex; whoever waits for the
//! host (or for the mutex) does so outside the collector's world, so a read that blocks stops
//! neither the collector nor other threads. No Lisp value is inside: nothing to trace.
//!
//! Bounds: a file buffer holds `BUFFER_BYTES` and one item; a memory port at most what the heap
//! may hold. A closed or broken pipe is an error of the call that met it: no signal, no panic.

mod decode;
mod feed;
mod input;
mod output;
mod standard;
#[cfg(test)]
mod tests;
mod tls;
mod turn;

pub use feed::{FEED_BYTES_MAX, Feed};
pub(crate) use input::{Characters, Input};
pub(crate) use output::{Flush, Output};
pub use standard::{Role, current, end_line, flush_all};
pub(crate) use standard::{parameter, port as of_process};
pub(crate) use tls::Tls;
pub(crate) use turn::Held as Locked;

use crate::account::{Countable, Held};
use crate::heap::{ForeignObject, Mutator};
use crate::raise::{Cause, Raise};
use core::fmt;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use turn::Turn;

/// Bytes of a file port's buffer.
pub(crate) const BUFFER_BYTES: usize = 16 * 1024;

/// What a port carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Characters, as UTF-8.
    Textual,
    /// Bytes.
    Binary,
}

/// A port. Clones are the same port.
#[derive(Clone, Debug)]
pub struct Port(Arc<Body>);

#[derive(Debug)]
struct Body {
    name: String,
    content: Content,
    end: End,
}

#[derive(Debug)]
enum End {
    Input(Turn<Input>),
    Output(Turn<Output>),
}

impl Port {
    /// Whether both are the same port.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn of_input(name: impl Into<String>, content: Content, input: Input) -> Self {
        let end = End::Input(Turn::new(input));
        Self(Arc::new(Body { name: name.into(), content, end }))
    }

    pub(crate) fn of_output(name: impl Into<String>, content: Content, output: Output) -> Self {
        let is_file = output.is_file();
        let end = End::Output(Turn::new(output));
        let port = Self(Arc::new(Body { name: name.into(), content, end }));
        if is_file {
            standard::register(&port);
        }
        port
    }

    /// The file's path, or what else it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it carries.
    #[must_use]
    pub fn content(&self) -> Content {
        self.0.content
    }

    /// Whether it can be read from.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self.0.end, End::Input(_))
    }

    /// Writes a line for the user, without a Lisp thread; what somebody else is writing goes first. Nobody can be told
    /// where it does not arrive.
    pub(crate) fn tell(&self, line: &str) {
        if let End::Output(output) = &self.0.end {
            let _ = output.lock().tell(line);
        }
    }

    /// Passes on what is buffered, without a Lisp thread; the user who does not take it has himself to blame.
    pub(crate) fn flush_outside(&self) {
        if let End::Output(output) = &self.0.end {
            let _ = output.lock().flush(|| false);
        }
    }

    /// Closes without a word: the session is over. Who waits for its user to read is told that there is none.
    pub(crate) fn abandon(&self) {
        match &self.0.end {
            End::Input(input) => input.lock().close(),
            End::Output(output) => output.lock().let_go(),
        }
    }

    /// The file that it reads from or writes to, as a descriptor of its own; none where it is over something else, or closed.
    ///
    /// # Errors
    /// The process has no more descriptors; as [`is_open`](Self::is_open).
    pub(crate) fn file(&self, m: &Mutator) -> Result<Option<OwnedFd>, Raise> {
        let own = match &self.0.end {
            End::Input(input) => lock(m, input)?.file().map(|file| file.try_clone_to_owned()),
            End::Output(output) => lock(m, output)?.file().map(|file| file.try_clone_to_owned()),
        };
        own.transpose().map_err(|error| self.refused("file", &error))
    }

    /// Whether it was not closed yet.
    ///
    /// # Errors
    /// The thread, which waits for who has the port, is wanted for something else: to be asked again.
    pub(crate) fn is_open(&self, m: &Mutator) -> Result<bool, Raise> {
        match &self.0.end {
            End::Input(input) => lock(m, input).map(|input| input.is_open()),
            End::Output(output) => lock(m, output).map(|output| output.is_open()),
        }
    }

    /// The reading end, locked; none where it has none.
    ///
    /// # Errors
    /// As [`is_open`](Self::is_open).
    pub(crate) fn input(&self, m: &Mutator) -> Result<Option<Locked<'_, Input>>, Raise> {
        match &self.0.end {
            End::Input(input) => lock(m, input).map(Some),
            End::Output(_) => Ok(None),
        }
    }

    /// The writing end, locked; none where it has none.
    ///
    /// # Errors
    /// As [`is_open`](Self::is_open).
    pub(crate) fn output(&self, m: &Mutator) -> Result<Option<Locked<'_, Output>>, Raise> {
        match &self.0.end {
            End::Input(_) => Ok(None),
            End::Output(output) => lock(m, output).map(Some),
        }
    }

    /// Writes the buffer out, without a Lisp thread: at the end of the process.
    fn flush_at_exit(&self) -> io::Result<()> {
        match &self.0.end {
            End::Input(_) => Ok(()),
            End::Output(output) => match output.try_lock() {
                Some(mut output) => output.flush(|| false),
                // Someone is writing to a host that does not take it; waiting would hang the exit.
                None => Ok(()),
            },
        }
    }

    /// The complaint that the host refused something on this port.
    #[cold]
    pub(crate) fn refused(&self, who: &'static str, error: &io::Error) -> Raise {
        if error.kind() == io::ErrorKind::Interrupted {
            return Raise::new(Cause::Interrupted);
        }
        file_error(who, self.name(), error)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.is_input() { "input" } else { "output" };
        let content = match self.0.content {
            Content::Textual => "textual",
            Content::Binary => "binary",
        };
        write!(f, "{content}-{direction}-port {}", self.0.name)
    }
}

impl ForeignObject for Port {
    fn held_bytes(&self) -> usize {
        // Who holds the lock may wait for the host, and its buffer is then no larger than a file's.
        let buffer = match &self.0.end {
            End::Input(input) => input.try_lock().map(|input| input.held_bytes()),
            End::Output(output) => output.try_lock().map(|output| output.held_bytes()),
        };
        size_of::<Body>() + buffer.unwrap_or(BUFFER_BYTES)
    }
}

/// Where a session's input comes from, and its output goes. A write may wait in the kernel; one that a signal interrupts must say so, and have taken
/// nothing.
pub struct SessionPorts {
    /// What it reads; where there is none, its input is empty.
    pub input: Option<Arc<Feed>>,
    /// What is displayed.
    pub output: Box<dyn Write + Send>,
    /// Errors of threads that nobody waits for.
    pub error: Box<dyn Write + Send>,
}

impl fmt::Debug for SessionPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPorts").finish_non_exhaustive()
    }
}

impl SessionPorts {
    pub(crate) fn into_ports(self) -> [Port; 3] {
        let input = self.input.map_or_else(|| Input::of_memory(Vec::new()), Input::of_feed);
        let output = |name, user| Port::of_output(name, Content::Textual, Output::of_user(user));
        [
            Port::of_input("session input", Content::Textual, input),
            output("session output", self.output),
            output("session errors", self.error),
        ]
    }
}

/// A file error: what the host said, without the number that only programs read.
#[cold]
pub(crate) fn file_error(who: &'static str, path: &str, error: &io::Error) -> Raise {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
    let closed_output = path == standard::OUTPUT_NAME && error.kind() == io::ErrorKind::BrokenPipe;
    let errno = error.raw_os_error().or_else(|| errno_of(error.kind()));
    Raise::new(Cause::File { who, path: path.to_owned(), reason, errno, closed_output })
}

/// The host's number for what was found out without asking it.
fn errno_of(kind: io::ErrorKind) -> Option<i32> {
    let errno = match kind {
        io::ErrorKind::PermissionDenied => nix::errno::Errno::EACCES,
        io::ErrorKind::IsADirectory => nix::errno::Errno::EISDIR,
        io::ErrorKind::AlreadyExists => nix::errno::Errno::EEXIST,
        io::ErrorKind::InvalidInput => nix::errno::Errno::EINVAL,
        io::ErrorKind::NotFound => nix::errno::Errno::ENOENT,
        io::ErrorKind::BrokenPipe => nix::errno::Errno::EPIPE,
        _ => return None,
    };
    Some(errno as i32)
}

/// Whether the running thread's user may touch the host's files.
///
/// # Errors
/// He may not: the host is not asked.
pub(crate) fn permit(m: &Mutator, who: &'static str, path: &str) -> Result<(), Raise> {
    let allowed = m.context.session().is_none_or(|session| session.account.bounds().files);
    let refusal = || io::Error::new(io::ErrorKind::PermissionDenied, "this user may not use files");
    if allowed { Ok(()) } else { Err(file_error(who, path, &refusal())) }
}

/// Whether the running thread may change what all users of the process share: its folder, its mask of modes, its niceness.
///
/// # Errors
/// It is a server's, and its session that of a user.
pub(crate) fn permit_process(m: &Mutator, who: &'static str, what: &str) -> Result<(), Raise> {
    permit(m, who, what)?;
    let own = m.context.session().is_none_or(|session| session.id == 0);
    let refusal = || {
        let reason = "all users of this server share it; only who runs the process may change it";
        io::Error::new(io::ErrorKind::PermissionDenied, reason)
    };
    if own { Ok(()) } else { Err(file_error(who, what, &refusal())) }
}

/// A place among the open ports of the running thread's account.
///
/// # Errors
/// It has as many as it may.
pub(crate) fn count(m: &Mutator, who: &'static str) -> Result<Option<Held>, Raise> {
    let Some(account) = m.context.account() else { return Ok(None) };
    let exceeded = |error| Raise::error(format!("{who}: {error}; close some"), Vec::new());
    account.hold(Countable::Ports).map(Some).map_err(exceeded)
}

/// Locks; where another thread holds the lock, perhaps while it waits for the host, this one waits
/// outside the collector's world, until it is wanted for something else.
fn lock<'a, T>(m: &Mutator, turn: &'a Turn<T>) -> Result<Locked<'a, T>, Raise> {
    let locked =
        turn.try_lock().or_else(|| waiting(m, || turn.lock_unless(|| m.context.has_request())));
    locked.ok_or_else(|| Raise::new(Cause::Interrupted))
}

/// Runs what may block in the kernel, outside the collector's world.
pub(crate) fn waiting<T>(m: &Mutator, wait: impl FnOnce() -> T) -> T {
    m.context.outside(wait)
}
