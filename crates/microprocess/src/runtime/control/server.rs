//! The control socket of an address space: answers requests of other processes.
//!
//! ```text
//!   $KYOCHO_DIR/PID.sock ◄── connect ── kyocho ps, top, kill …
//!        accepts on a kernel thread that sleeps in the kernel meanwhile; a short-lived one for each connection
//! ```
//!
//! It is a kernel thread, not a microprocess. It must answer even if urgent loops occupy every
//! virtual processor. And it must not count as a possible waker of others, or no deadlock would be
//! found. It reads fields of records and posts orders; neither needs a virtual processor. An idle
//! server costs a sleeping kernel thread.
//!
//! Access is controlled for the address space as a whole (Paper 1, part 5): the directory admits
//! only its user, the kernel reports the identity of each peer, and a [policy](restrict) of the
//! program may refuse more. A peer that sends nothing, or does not read, is disconnected after a
//! time limit.

use core::time::Duration;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::{fs, process};

use kyocho_sys::directory;
use kyocho_sys::peer::Peer;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_sys::prim::thread::JoinHandle;
use kyocho_sys::thread::start;

use super::protocol::{REQUEST_BYTES_MAX, Reply, Request, from_line};
use super::{Gone, find, metrics, snapshot};
use crate::data::priority::Priority;
use crate::processor::trace;
use crate::thread::microprocess::Microprocess;

/// The most connections served at a time; further ones are refused with an error.
const CONNECTIONS_MAX: usize = 16;
/// How long a peer may send nothing, or not read.
const PATIENCE: Duration = Duration::from_secs(10);
const STACK_BYTES: usize = 512 << 10;

/// Decides whether to carry out a request of a peer, whose identity comes from the kernel.
pub type Policy = fn(Peer, &Request) -> bool;

static POLICY: OnceLock<Policy> = OnceLock::new();

/// Restricts which peers may make which requests, in addition to the rule that only its own user
/// and the superuser may. The first policy stays.
///
/// # Errors
/// There is a policy already.
pub fn restrict(policy: Policy) -> Result<(), Policy> {
    POLICY.set(policy)
}

/// The path of the socket of `process`.
pub(super) fn path_of(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.sock"))
}

/// A control socket that is being served. It is closed when its last owner drops it.
#[derive(Debug)]
pub(crate) struct Serving {
    path: PathBuf,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The socket of this process, which its runtimes share.
static SERVING: Mutex<Weak<Serving>> = Mutex::new(Weak::new());

/// Serves the control socket of this process as long as the result is kept.
///
/// # Errors
/// There is no directory for it, or the host refuses.
pub(crate) fn serve() -> io::Result<Arc<Serving>> {
    let mut serving = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(already) = serving.upgrade() {
        return Ok(already);
    }
    let path = path_of(&directory::of_user()?, process::id());
    let listener = listen(&path)?;
    let stopping = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&stopping);
    let thread = start("control", STACK_BYTES, move || accept(&listener, &until));
    let thread = Some(thread.map_err(io::Error::from)?);
    let fresh = Arc::new(Serving { path, stopping, thread });
    *serving = Arc::downgrade(&fresh);
    Ok(fresh)
}

/// Listens at `path`. The socket appears there only once it listens: a process that finds one that
/// does not listen removes it as left over from a dead process.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let unready = path.with_extension("new");
    // Left by an earlier process with this number, if it exists.
    let _none = fs::remove_file(&unready);
    let listener = UnixListener::bind(&unready)?;
    fs::rename(&unready, path)?;
    Ok(listener)
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Ends the accept. If this fails, the thread has ended.
        let reached = UnixStream::connect(&self.path).is_ok();
        let _gone = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take().filter(|_| reached) {
            // It does not panic; if it did, nothing would be lost here.
            let _ended = thread.join();
        }
    }
}

/// Accepts connections until told to stop.
fn accept(listener: &UnixListener, stopping: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        if stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(connection) = connection else {
            // There are no descriptors left. The connection stays in the backlog, and the next
            // attempt is not immediate.
            kyocho_sys::prim::thread::yield_now();
            continue;
        };
        admit(connection, &open);
    }
}

/// Starts a kernel thread for a connection, unless there are too many.
fn admit(connection: UnixStream, open: &Arc<AtomicUsize>) {
    let count = Arc::clone(open);
    if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
        open.fetch_sub(1, Ordering::SeqCst);
        return hang_up(&connection, "too many connections: try again");
    }
    let started = start("control", STACK_BYTES, move || {
        // An error ends only this connection.
        let _broken_off = converse(&connection);
        count.fetch_sub(1, Ordering::SeqCst);
    });
    if started.is_err() {
        open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Refuses a connection, without waiting.
fn hang_up(mut connection: &UnixStream, why: &str) {
    let told = connection.set_nonblocking(true).and_then(|()| {
        let line = line_of(&Reply::Error(why.to_owned()));
        connection.write_all(&line)
    });
    // A peer that does not read notices the end of the connection.
    drop(told);
}

/// Answers the requests of one connection, until its end.
fn converse(connection: &UnixStream) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let peer = Peer::of(connection.as_fd()).map_err(io::Error::from)?;
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = Vec::new();
        let most = REQUEST_BYTES_MAX as u64 + 1;
        if reader.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let is_whole = line.pop_if(|byte| *byte == b'\n').is_some();
        let (reply, goes_on) = match from_line(&line) {
            Ok(request) if is_whole => (answer(peer, &request), true),
            Ok(_) => return Ok(()),
            Err(malformed) => (Reply::Error(malformed.to_string()), false),
        };
        { connection }.write_all(&line_of(&reply))?;
        if !goes_on {
            return Ok(());
        }
    }
}

fn line_of(reply: &Reply) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(reply).unwrap_or_else(|_| br#"{"error":"internal"}"#.to_vec());
    line.push(b'\n');
    line
}

/// Carries out the request, if the peer is permitted to make it.
pub(super) fn answer(peer: Peer, request: &Request) -> Reply {
    let allowed = peer.is_trusted() && POLICY.get().is_none_or(|policy| policy(peer, request));
    if !allowed {
        tracing::warn!(user = peer.user, process = peer.process, ?request, "refused");
        return Reply::Error("this address space does not permit that request".to_owned());
    }
    if !request.is_harmless() {
        tracing::info!(process = peer.process, ?request, "ordered from outside");
    }
    match *request {
        Request::Snapshot { entries_max } => Reply::Snapshot(snapshot(entries_max)),
        Request::Metrics {} => Reply::Metrics(metrics::text(&snapshot(0))),
        Request::Kill { id } => order(id, |target| target.kill()),
        Request::Suspend { id } => order(id, |target| target.suspend()),
        Request::Resume { id } => order(id, |target| target.resume()),
        Request::Priority { id, level } => order(id, |target| {
            let priority = Priority::new(level).ok_or(Gone)?;
            target.order_priority(priority)
        }),
        Request::TraceStart {} => match trace::start() {
            Ok(()) => Reply::Done(true),
            Err(busy) => Reply::Error(busy.to_string()),
        },
        Request::TraceStop {} => Reply::Timeline(trace::stop()),
    }
}

fn order(id: u64, order: impl FnOnce(Microprocess) -> Result<(), Gone>) -> Reply {
    match find(id).ok_or(Gone).and_then(order) {
        Ok(()) => Reply::Done(true),
        Err(gone) => Reply::Error(gone.to_string()),
    }
}

#[cfg(test)]
mod tests;
