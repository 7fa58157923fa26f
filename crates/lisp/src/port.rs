//! Ports: textual and binary, over files, over memory, and the process's own three.
//!
//! A port is a Rust object in Lisp's hands. Its buffer stands under a mutex; whoever waits for the
//! host (or for the mutex) does so outside the collector's world, so a read that blocks stops
//! neither the collector nor other threads. No Lisp value is inside: nothing to trace.
//!
//! Bounds: a file buffer holds `BUFFER_BYTES` and one item; a memory port at most what the heap
//! may hold. A closed or broken pipe is an error of the call that met it: no signal, no panic.

mod decode;
mod input;
mod output;
mod standard;
#[cfg(test)]
mod tests;

pub(crate) use input::{Characters, Input};
pub(crate) use output::{Flush, Output};
pub(crate) use standard::parameter;
pub use standard::{Role, current, flush_all};

use crate::heap::{ForeignObject, Mutator};
use crate::raise::{Cause, Raise};
use core::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

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
    Input(Mutex<Input>),
    Output(Mutex<Output>),
}

impl Port {
    pub(crate) fn of_input(name: impl Into<String>, content: Content, input: Input) -> Self {
        let end = End::Input(Mutex::new(input));
        Self(Arc::new(Body { name: name.into(), content, end }))
    }

    pub(crate) fn of_output(name: impl Into<String>, content: Content, output: Output) -> Self {
        let is_file = output.is_file();
        let end = End::Output(Mutex::new(output));
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

    /// Whether it was not closed yet.
    pub(crate) fn is_open(&self, m: &Mutator) -> bool {
        match &self.0.end {
            End::Input(input) => lock(m, input).is_open(),
            End::Output(output) => lock(m, output).is_open(),
        }
    }

    /// The reading end, locked.
    pub(crate) fn input(&self, m: &Mutator) -> Option<MutexGuard<'_, Input>> {
        match &self.0.end {
            End::Input(input) => Some(lock(m, input)),
            End::Output(_) => None,
        }
    }

    /// The writing end, locked.
    pub(crate) fn output(&self, m: &Mutator) -> Option<MutexGuard<'_, Output>> {
        match &self.0.end {
            End::Input(_) => None,
            End::Output(output) => Some(lock(m, output)),
        }
    }

    /// Writes the buffer out, without a Lisp thread: at the end of the process.
    fn flush_at_exit(&self) -> io::Result<()> {
        match &self.0.end {
            End::Input(_) => Ok(()),
            End::Output(output) => match output.try_lock() {
                Ok(mut output) => output.flush(|| false),
                Err(TryLockError::Poisoned(output)) => output.into_inner().flush(|| false),
                // Someone is writing to a host that does not take it; waiting would hang the exit.
                Err(TryLockError::WouldBlock) => Ok(()),
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

impl ForeignObject for Port {}

/// A file error: what the host said, without the number that only programs read.
#[cold]
pub(crate) fn file_error(who: &'static str, path: &str, error: &io::Error) -> Raise {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
    let closed_output = path == standard::OUTPUT_NAME && error.kind() == io::ErrorKind::BrokenPipe;
    Raise::new(Cause::File { who, path: path.to_owned(), reason, closed_output })
}

/// Locks; where another thread holds the lock, perhaps while it waits for the host, this one waits
/// outside the collector's world.
fn lock<'a, T>(m: &Mutator, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
        Err(TryLockError::WouldBlock) => {
            waiting(m, || mutex.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }
}

/// Runs what may block in the kernel, outside the collector's world.
pub(crate) fn waiting<T>(m: &Mutator, wait: impl FnOnce() -> T) -> T {
    m.context.outside(wait)
}
