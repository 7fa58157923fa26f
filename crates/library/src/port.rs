//! Ports: textual and binary; over files, over memory, and the three of the process.
//!
//! A port is a Rust object that Lisp refers to. A mutex protects its buffer. A thread waits for the
//! host, or for the mutex, outside Lisp, so a blocking read stops neither the collector nor other
//! threads. A port contains no Lisp values, so nothing is traced.
//!
//! Bounds: a file buffer holds `BUFFER_BYTES` and one item; a memory port holds at most what the
//! heap may hold. A closed or broken pipe is an error of the call that finds it, without a signal
//! and without a panic.

mod both;
mod decode;
mod feed;
mod input;
mod interruptible_lock;
mod output;
mod standard;
#[cfg(test)]
mod tests;
mod tls;

pub(crate) use both::twice;
pub use feed::{FEED_BYTES_MAX, Feed};
pub(crate) use input::{Characters, Input};
pub(crate) use interruptible_lock::Locked;
pub(crate) use output::{Flush, Output};
pub(crate) use standard::parameter;
pub use standard::{Role, current, end_line, flush_all, flush_of, port as of_process};
pub(crate) use tls::Tls;

use crate::session;
use both::Both;
use core::fmt;
use interruptible_lock::InterruptibleLock;
use kyocho_heap::account::{Countable, Held};
use kyocho_heap::heap::{ForeignObject, Mutator};
use kyocho_heap::raise::{Cause, Raise};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Bytes of a file port's buffer.
pub(crate) const BUFFER_BYTES: usize = 16 * 1024;

/// What is read from and written to a port.
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
    Input(InterruptibleLock<Input>),
    Output(InterruptibleLock<Output>),
    Both(Both),
}

/// A direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl Port {
    /// Whether both are the same port.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn of_input(name: impl Into<String>, content: Content, input: Input) -> Self {
        let end = End::Input(InterruptibleLock::new(input));
        Self(Arc::new(Body { name: name.into(), content, end }))
    }

    pub(crate) fn of_output(name: impl Into<String>, content: Content, output: Output) -> Self {
        let is_file = output.is_file();
        let end = End::Output(InterruptibleLock::new(output));
        let port = Self(Arc::new(Body { name: name.into(), content, end }));
        if is_file {
            standard::register(&port);
        }
        port
    }

    /// A port for reading and writing, with both ends over one open file.
    pub(crate) fn of_both(name: String, content: Content, input: Input, output: Output) -> Self {
        let port = Self(Arc::new(Body { name, content, end: End::Both(Both::new(input, output)) }));
        standard::register(&port);
        port
    }

    /// The file's path, or another description.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether it is textual or binary.
    #[must_use]
    pub fn content(&self) -> Content {
        self.0.content
    }

    /// Whether it can be read from.
    #[must_use]
    pub fn is_input(&self) -> bool {
        self.input_end().is_some()
    }

    /// Whether it can be written to.
    #[must_use]
    pub fn is_output(&self) -> bool {
        self.output_end().is_some()
    }

    /// Whether it has an end of this direction.
    pub(crate) fn has(&self, direction: Direction) -> bool {
        match direction {
            Direction::Input => self.is_input(),
            Direction::Output => self.is_output(),
        }
    }

    fn input_end(&self) -> Option<&InterruptibleLock<Input>> {
        match &self.0.end {
            End::Input(input) | End::Both(Both { input, .. }) => Some(input),
            End::Output(_) => None,
        }
    }

    fn output_end(&self) -> Option<&InterruptibleLock<Output>> {
        match &self.0.end {
            End::Output(output) | End::Both(Both { output, .. }) => Some(output),
            End::Input(_) => None,
        }
    }

    /// Writes a line for the user and flushes, without a Lisp thread. First waits until the port is
    /// not locked. Errors are ignored, because there is no thread to report them to.
    pub fn write_line_outside(&self, line: &str) {
        let _ = self.output_end().map(|output| output.lock().write_line_outside(line));
    }

    /// Flushes the buffer, without a Lisp thread. Errors are ignored.
    pub fn flush_outside(&self) {
        let _ = self.output_end().map(|output| output.lock().flush(|| false));
    }

    /// Closes both ends without an error, because the session has ended. Buffered output is lost.
    pub fn abandon(&self) {
        if let Some(output) = self.output_end() {
            output.lock().close_silently();
        }
        if let Some(input) = self.input_end() {
            input.lock().close();
        }
    }

    /// A new descriptor of the file that it reads or writes; `None` if it is closed, or not over a
    /// file.
    ///
    /// # Errors
    /// The process has no descriptors left; or as [`is_open`](Self::is_open).
    pub(crate) fn file(&self, m: &mut Mutator) -> Result<Option<OwnedFd>, Raise> {
        let mut own = None;
        if let Some(input) = self.input_end() {
            own = lock(m, input)?.file().map(|file| file.try_clone_to_owned());
        }
        if own.is_none()
            && let Some(output) = self.output_end()
        {
            own = lock(m, output)?.file().map(|file| file.try_clone_to_owned());
        }
        own.transpose().map_err(|error| self.refused("file", &error))
    }

    /// Whether it has this end and the end is open.
    ///
    /// # Errors
    /// The thread waits for another one to release the port, and must stop: the caller must try
    /// again.
    pub(crate) fn is_open(&self, m: &mut Mutator, direction: Direction) -> Result<bool, Raise> {
        let open = match direction {
            Direction::Input => {
                self.input_end().map(|input| lock(m, input).map(|input| input.is_open()))
            }
            Direction::Output => {
                self.output_end().map(|output| lock(m, output).map(|output| output.is_open()))
            }
        };
        open.unwrap_or(Ok(false))
    }

    /// The input end, locked; `None` if it has none. If both ends have one file position, output is
    /// flushed first.
    ///
    /// # Errors
    /// As [`is_open`](Self::is_open); or the host refuses the output.
    pub(crate) fn input(&self, m: &mut Mutator) -> Result<Option<Locked<'_, Input>>, Raise> {
        match &self.0.end {
            End::Input(input) => lock(m, input).map(Some),
            End::Output(_) => Ok(None),
            End::Both(both) => both.input(m, self).map(Some),
        }
    }

    /// The output end, locked; `None` if it has none. If both ends have one file position,
    /// characters read ahead are returned first.
    ///
    /// # Errors
    /// As [`is_open`](Self::is_open); or the host refuses.
    pub(crate) fn output(&self, m: &mut Mutator) -> Result<Option<Locked<'_, Output>>, Raise> {
        match &self.0.end {
            End::Input(_) => Ok(None),
            End::Output(output) => lock(m, output).map(Some),
            End::Both(both) => both.output(m, self).map(Some),
        }
    }

    /// Closes the input end, if it has one.
    ///
    /// # Errors
    /// As [`is_open`](Self::is_open).
    pub(crate) fn close_input(&self, m: &mut Mutator) -> Result<(), Raise> {
        match &self.0.end {
            End::Input(input) => lock(m, input)?.close(),
            End::Output(_) => {}
            End::Both(both) => both.close_input(m, self)?,
        }
        Ok(())
    }

    /// Flushes and closes the output end, if it has one.
    ///
    /// # Errors
    /// As [`is_open`](Self::is_open). The inner result has the host's errors. The end is closed
    /// after one of these, unless the thread must stop.
    pub(crate) fn close_output(&self, m: &mut Mutator) -> Result<io::Result<()>, Raise> {
        match self.output_end() {
            Some(output) => Ok(lock(m, output)?.close(m)),
            None => Ok(Ok(())),
        }
    }

    /// Flushes the output end if `is_meant`, without a Lisp thread. Called when an evaluation or
    /// the process ends.
    fn flush_at_exit(&self, is_meant: impl FnOnce(&Output) -> bool) -> io::Result<()> {
        // Another thread may be blocked in a write; waiting for it could hang the exit.
        let output = self
            .output_end()
            .and_then(InterruptibleLock::try_lock)
            .filter(|output| is_meant(output));
        output.map_or(Ok(()), |mut output| output.flush(|| false))
    }

    /// The error for an operation on this port that the host refused.
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
        let direction = match self.0.end {
            End::Input(_) => "input",
            End::Output(_) => "output",
            End::Both(_) => "input/output",
        };
        let content = match self.0.content {
            Content::Textual => "textual",
            Content::Binary => "binary",
        };
        write!(f, "{content}-{direction}-port {}", self.0.name)
    }
}

impl ForeignObject for Port {
    fn held_bytes(&self) -> usize {
        // A thread that holds the lock may be waiting for the host; the buffer is then at most as
        // large as a file's.
        let input = self.input_end().map(|input| input.try_lock().map(|input| input.held_bytes()));
        let output =
            self.output_end().map(|output| output.try_lock().map(|output| output.held_bytes()));
        let buffers = [input, output].into_iter().flatten();
        size_of::<Body>() + buffers.map(|bytes| bytes.unwrap_or(BUFFER_BYTES)).sum::<usize>()
    }
}

/// The input and output of a session. A write may block in the kernel. A write interrupted by a
/// signal must return the error and must not have written anything.
pub struct SessionPorts {
    /// The input; empty if `None`.
    pub input: Option<Arc<Feed>>,
    /// The standard output.
    pub output: Box<dyn Write + Send>,
    /// Errors of threads that no other thread joins.
    pub error: Box<dyn Write + Send>,
}

impl fmt::Debug for SessionPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPorts").finish_non_exhaustive()
    }
}

impl SessionPorts {
    /// The ports: input, output, errors.
    #[must_use]
    pub fn into_ports(self) -> [Port; 3] {
        let input = self.input.map_or_else(|| Input::of_memory(Vec::new()), Input::of_feed);
        let output = |name, user| Port::of_output(name, Content::Textual, Output::of_user(user));
        [
            Port::of_input("session input", Content::Textual, input),
            output("session output", self.output),
            output("session errors", self.error),
        ]
    }
}

/// A file error with the host's message. The error number is not shown.
#[cold]
pub(crate) fn file_error(who: &'static str, path: &str, error: &io::Error) -> Raise {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
    let closed_output = path == standard::OUTPUT_NAME && error.kind() == io::ErrorKind::BrokenPipe;
    let errno = error.raw_os_error().or_else(|| errno_of(error.kind()));
    Raise::new(Cause::File { who, path: path.to_owned(), reason, errno, closed_output })
}

/// The host's error number for a condition found without a system call.
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

/// Checks that the running thread's user may use the host's files.
///
/// # Errors
/// The user may not. The host is not asked.
pub fn permit(m: &Mutator, who: &'static str, path: &str) -> Result<(), Raise> {
    let allowed = m.context.account().is_none_or(|account| account.bounds().files);
    let refusal = || io::Error::new(io::ErrorKind::PermissionDenied, "this user may not use files");
    if allowed { Ok(()) } else { Err(file_error(who, path, &refusal())) }
}

/// Checks that the running thread may change state that all users of the process share: its folder,
/// its file mode mask, its niceness.
///
/// # Errors
/// The process is a server, and the session belongs to one of its users.
pub(crate) fn permit_process(m: &Mutator, who: &'static str, what: &str) -> Result<(), Raise> {
    permit(m, who, what)?;
    let own = session::with(&m.context, |own| own.is_none_or(|own| own.is_of_process));
    let refusal = || {
        let reason =
            "all users of this server share it; only the user that runs the process may change it";
        io::Error::new(io::ErrorKind::PermissionDenied, reason)
    };
    if own { Ok(()) } else { Err(file_error(who, what, &refusal())) }
}

/// Counts an open port for the running thread's account.
///
/// # Errors
/// It has as many as it may.
pub fn count(m: &Mutator, who: &'static str) -> Result<Option<Held>, Raise> {
    let Some(account) = m.context.account() else { return Ok(None) };
    let exceeded = |error| Raise::error(format!("{who}: {error}; close some"), Vec::new());
    account.hold(Countable::Ports).map(Some).map_err(exceeded)
}

/// Locks. If another thread holds the lock, perhaps while it waits for the host, this thread waits
/// outside Lisp until it gets the lock or must stop.
fn lock<'a, T>(m: &mut Mutator, end: &'a InterruptibleLock<T>) -> Result<Locked<'a, T>, Raise> {
    let locked = end.try_lock().or_else(|| waiting(m, |is_cut| end.lock_unless(is_cut)));
    locked.ok_or_else(|| Raise::new(Cause::Interrupted))
}

/// Runs `wait`, which may block in the kernel, outside Lisp. Its argument tells whether it should
/// give up.
pub(crate) fn waiting<T>(m: &mut Mutator, wait: impl FnOnce(&dyn Fn() -> bool) -> T) -> T {
    let is_cut = session::request_check(&m.context);
    m.outside(|| wait(&is_cut))
}
