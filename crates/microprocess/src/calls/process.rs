//! Child processes: started as std does, and waited for without occupying a kernel thread.
//!
//! ```text
//!   Command::spawn ──► std starts it ──► pidfd of the child ──► wait: a poll on it through the ring, then std's reaping
//! ```
//!
//! There is no handler for `SIGCHLD` and no waiting thread: a child has a descriptor that is ready
//! when the child has ended. If the host has no such descriptors, a wait is a plain system call,
//! which is a Blocked event.
//!
//! A child inherits the CPUs and the timer slack of the kernel thread that starts it, and holders
//! are pinned to one CPU. So during the start the thread takes over the CPUs and slack of the
//! process's first thread, and the normal nice value (see [`Reflection`](crate::Reflection)).
//!
//! ```
//! use std::io::{Read, Write};
//! use kyocho_microprocess::{process::{Command, Stdio}, run};
//!
//! # fn main() -> std::io::Result<()> {
//! run(|| {
//!     let mut child =
//!         Command::new("tr").args(["a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
//!     child.stdin.take().unwrap().write_all(b"kyocho")?;
//!     let mut text = String::new();
//!     child.stdout.take().unwrap().read_to_string(&mut text)?;
//!     assert!(child.wait()?.success());
//!     assert_eq!(text, "KYOCHO");
//!     Ok(())
//! })
//! .unwrap()
//! # }
//! ```

use core::time::Duration;
use std::ffi::OsStr;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process;

pub use std::process::{ExitStatus, Output, Stdio};

use kyocho_sys::poll::Interest;
use kyocho_sys::scheduling::{CpuSet, affinity};
use kyocho_sys::task::ThreadId;

use crate::calls::io::{File, descriptor::ready};
use crate::processor::kernel_thread::KernelThread;
use crate::processor::reflection;
use crate::schedule::bound::bound;
use crate::schedule::mask;
use crate::thread::microprocess::Microprocess;
use crate::thread::scope::scope;

/// What happens when a [`Child`] is dropped before its process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDrop {
    /// The process continues, and becomes a zombie when it ends, as in std.
    Leave,
    /// The process is killed, and its end awaited.
    Kill,
}

/// How a process is started, as [`std::process::Command`].
#[derive(Debug)]
pub struct Command {
    inner: process::Command,
    on_drop: OnDrop,
    /// Whether standard output and standard error were set.
    chosen: [bool; 2],
}

impl Command {
    /// Runs `program`, found through `PATH`, with the environment, folder and standard streams of
    /// this process.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        process::Command::new(program).into()
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.inner.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.inner.args(arguments);
        self
    }

    /// Sets an environment variable.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.inner.env(name, value);
        self
    }

    /// Removes an environment variable.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.inner.env_remove(name);
        self
    }

    /// Removes all environment variables.
    pub fn env_clear(&mut self) -> &mut Self {
        self.inner.env_clear();
        self
    }

    /// Sets the folder it starts in.
    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.inner.current_dir(folder);
        self
    }

    /// Sets its standard input.
    pub fn stdin(&mut self, stream: impl Into<Stdio>) -> &mut Self {
        self.inner.stdin(stream);
        self
    }

    /// Sets its standard output.
    pub fn stdout(&mut self, stream: impl Into<Stdio>) -> &mut Self {
        self.chosen[0] = true;
        self.inner.stdout(stream);
        self
    }

    /// Sets its standard error.
    pub fn stderr(&mut self, stream: impl Into<Stdio>) -> &mut Self {
        self.chosen[1] = true;
        self.inner.stderr(stream);
        self
    }

    /// Makes dropping the [`Child`] kill the process, and wait for its end.
    pub fn kill_on_drop(&mut self) -> &mut Self {
        self.on_drop = OnDrop::Kill;
        self
    }

    /// Starts the process. The start itself blocks the kernel thread, as opening a file does.
    ///
    /// # Errors
    /// As [`std::process::Command::spawn`].
    pub fn spawn(&mut self) -> Result<Child> {
        let mut spawn =
            || with_the_process_s_cpus(|| reflection::at_normal_level(|| self.inner.spawn()));
        // What a child inherits is a property of the kernel thread that starts it, so the thread
        // must not change.
        let mut inner = if Microprocess::try_current().is_some() { bound(spawn) } else { spawn() }?;
        // If refused, waits are plain system calls.
        let end = kyocho_sys::process::open(inner.id()).ok();
        Ok(Child {
            stdin: inner.stdin.take().map(|pipe| OwnedFd::from(pipe).into()),
            stdout: inner.stdout.take().map(|pipe| OwnedFd::from(pipe).into()),
            stderr: inner.stderr.take().map(|pipe| OwnedFd::from(pipe).into()),
            inner,
            end,
            on_drop: self.on_drop,
        })
    }

    /// Runs the process to its end.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn status(&mut self) -> Result<ExitStatus> {
        self.spawn()?.wait()
    }

    /// Runs the process to its end, and collects the output of those output streams that were not
    /// set.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn), and errors of reading.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn output(&mut self) -> Result<Output> {
        let [stdout, stderr] = self.chosen;
        if !stdout {
            self.inner.stdout(Stdio::piped());
        }
        if !stderr {
            self.inner.stderr(Stdio::piped());
        }
        let child = self.spawn();
        if !stdout {
            self.inner.stdout(Stdio::inherit());
        }
        if !stderr {
            self.inner.stderr(Stdio::inherit());
        }
        child?.wait_with_output()
    }
}

impl From<process::Command> for Command {
    /// Takes over std's command; its output streams count as not set.
    fn from(inner: process::Command) -> Self {
        Self { inner, on_drop: OnDrop::Leave, chosen: [false; 2] }
    }
}

/// A process that was started, as [`std::process::Child`].
#[derive(Debug)]
pub struct Child {
    /// The other end of its standard input, if that is a pipe.
    pub stdin: Option<File>,
    /// The other end of its standard output, if that is a pipe.
    pub stdout: Option<File>,
    /// The other end of its standard error, if that is a pipe.
    pub stderr: Option<File>,
    inner: process::Child,
    /// Readable once it has ended; `None` if the host has no such descriptors.
    end: Option<OwnedFd>,
    on_drop: OnDrop,
}

impl Child {
    /// Its process number, which is not reused before its end was awaited.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Waits for its end. First closes its standard input, so that it does not wait for more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        drop(self.stdin.take());
        self.await_end(None)?;
        self.inner.wait()
    }

    /// As [`wait`](Self::wait), but at most for `limit`; `None` if it has not ended by then.
    ///
    /// # Errors
    /// The kernel's. [`ErrorKind::Unsupported`]: the host has no process descriptors (before Linux
    /// 5.3).
    pub fn wait_timeout(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        drop(self.stdin.take());
        if self.end.is_none() {
            return Err(Error::new(ErrorKind::Unsupported, "this host has no pidfd_open"));
        }
        match self.await_end(Some(limit)) {
            Ok(()) => self.inner.wait().map(Some),
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        self.inner.try_wait()
    }

    /// Waits for its end, and collects the output of those output streams that are pipes.
    ///
    /// # Errors
    /// The kernel's.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn wait_with_output(mut self) -> Result<Output> {
        drop(self.stdin.take());
        let (out, err) = (self.stdout.take(), self.stderr.take());
        // Both at once: it may fill one pipe while only the other one is read.
        let (stdout, stderr) = scope(|scope| {
            let other = scope.spawn(move || all_of(err));
            let stdout = all_of(out);
            (stdout, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        Ok(Output { status: self.wait()?, stdout: stdout?, stderr: stderr? })
    }

    /// Kills it (`SIGKILL`); does nothing if it has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn kill(&mut self) -> Result<()> {
        self.inner.kill()
    }

    /// Waits until std can collect its end, if the host permits that.
    fn await_end(&self, limit: Option<Duration>) -> Result<()> {
        match &self.end {
            Some(end) => ready(end.as_fd(), Interest::Read, limit),
            None => Ok(()),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::Kill && matches!(self.try_wait(), Ok(None)) {
            // It has ended, or ends now.
            let _ended = self.kill();
            let _collected = self.wait();
        }
    }
}

fn all_of(stream: Option<File>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Runs `body`, which starts a process, with the CPUs and timer slack of the process's first
/// thread, which belongs to no runtime.
fn with_the_process_s_cpus<T>(body: impl FnOnce() -> T) -> T {
    let (me, first) = (ThreadId::current(), ThreadId::new(process::id()));
    let (Ok(ours), Ok(theirs)) = (affinity(me), affinity(first)) else { return body() };
    if ours == theirs {
        return body();
    }
    let thread = KernelThread::current();
    thread.be_as_exact_as_others();
    with_cpus(thread, &theirs, &ours, body)
}

/// Lets `thread`, the calling one, run on `cpus` during `body`, whatever the pin of its virtual
/// processor. Afterwards it is pinned as its virtual processor is by then, or to `before` if that
/// has no pin. The caller stays on the thread.
fn with_cpus<T>(
    thread: &KernelThread,
    cpus: &CpuSet,
    before: &CpuSet,
    body: impl FnOnce() -> T,
) -> T {
    thread.roam(cpus);
    let value = body();
    let section = mask();
    thread.settle(before);
    section.leave();
    value
}

#[cfg(test)]
mod tests {
    use kyocho_sys::scheduling::{CpuSet, affinity};
    use kyocho_sys::skip::skip;

    use super::{KernelThread, ThreadId, with_cpus};
    use crate::bound;
    use crate::wait::sync::tests::on_processors;

    /// The virtual processor moves while a process is started. The child must get all CPUs all the
    /// same, and the thread must follow afterwards.
    #[test]
    fn a_thread_that_roams_is_pinned_afterwards() {
        let here = || affinity(ThreadId::current()).unwrap();
        let all = here();
        let cpus: Vec<usize> = all.iter().collect();
        let [first, .., last] = cpus[..] else {
            return skip("a_thread_that_roams_is_pinned_afterwards", "there is one CPU");
        };
        let roam_and_return = |cpu| {
            let thread = KernelThread::current();
            with_cpus(thread, &all, &here(), || {
                thread.pin(cpu);
                assert_eq!(here(), all);
            });
            here() == CpuSet::single(cpu)
        };
        // If the host suspends the thread at that moment, it returns to the present CPU of its
        // virtual processor.
        let in_the_end = |cpu| {
            assert!((0..100).any(|_| roam_and_return(cpu)), "the thread never returned to {cpu}");
        };
        on_processors(1, || bound(|| [first, last].into_iter().for_each(in_the_end)));
    }
}
