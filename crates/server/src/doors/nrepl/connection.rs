//! nREPL, the protocol of editors: bencode messages; the operations of nREPL 1.0 and cider's
//! `complete`, `info`, `stacktrace`.
//!
//! ```text
//!  connection ──► nrepl (a microprocess) ── answers clone, close, interrupt, stdin, describe,
//!                    │                         ls-sessions itself
//!                    │  requests                                    ▲ Wire
//!                    └──► nrepl-session (one for each session): eval, load-file, completions,
//!                             │                                 lookup, stacktrace, in order
//!                             │  a copy of its world, if the request `clone` names the session
//!                             └──► nrepl-session: begins with that copy, then answers `clone`
//! ```
//!
//! Each nREPL session is a session of the server, with its own environment, threads and limits, and
//! ends with its connection.

use super::answers::{Answers, Heading};
use super::bencode::{Bencode, Decoder};
use super::request::Request;
use super::session::{InitialWorld, NAMESPACE, Order, Output, State};
use super::worker::Worker;
use crate::wire::Wire;
use crate::worlds::World;
use kyocho_lisp::account::Account;
use kyocho_lisp::port::{Feed, SessionPorts};
use kyocho_lisp::system::{SessionHandle, System};
use kyocho_microprocess::Builder;
use kyocho_microprocess::channel::{self, Sender};
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

/// Most requests that wait for the evaluation before them. Beyond that nothing is read from the
/// connection.
const REQUESTS_MAX: usize = 16;
const READ_BYTES: usize = 16 * 1024;
/// Only touched pages of a stack are memory.
const STACK_BYTES: usize = 1 << 20;

/// The supported operations, as `describe` lists them.
const OPERATIONS: &[&str] = &[
    "clone",
    "close",
    "complete",
    "completions",
    "describe",
    "eval",
    "info",
    "interrupt",
    "load-file",
    "lookup",
    "ls-middleware",
    "ls-sessions",
    "stacktrace",
    "stdin",
];

/// What the connection's reader keeps for each session.
struct OpenSession {
    handle: SessionHandle,
    requests: Sender<Order>,
    state: Arc<State>,
    /// The standard input of the session's programs.
    input: Arc<Feed>,
}

impl OpenSession {
    /// Ends the session. Its programs read an end of file.
    fn end(&self) {
        self.requests.close();
        self.input.close();
        self.handle.end();
    }
}

/// A client's connection.
struct Connection<'a> {
    system: &'a Arc<System>,
    account: &'a Arc<Account>,
    world: World,
    answers: Answers,
    sessions: BTreeMap<String, OpenSession>,
    /// The session of requests that name none. Made by the first of them.
    default: Option<String>,
}

/// The number of the next session, over all connections.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A connection of an editor whose user is known.
pub(super) struct Editor {
    pub(super) reader: Box<dyn Read + Send>,
    pub(super) wire: Wire,
    /// Received bytes after the first request, if any.
    pub(super) decoder: Decoder,
    pub(super) first: Option<Request>,
}

impl Editor {
    /// A connection from which nothing was read yet.
    pub(super) fn new(reader: Box<dyn Read + Send>, wire: Wire) -> Self {
        Self { reader, wire, decoder: Decoder::unidentified(0), first: None }
    }
}

/// Serves the client until it disconnects, then ends its sessions.
pub(super) fn serve(system: &Arc<System>, account: &Arc<Account>, world: World, editor: Editor) {
    let Editor { mut reader, wire, mut decoder, first } = editor;
    let answers = Answers::new(wire);
    let mut connection =
        Connection { system, account, world, answers, sessions: BTreeMap::new(), default: None };
    // The client has got the reason, or has disconnected.
    let _ = connection.serve_stream(reader.as_mut(), &mut decoder, first);
    connection.sessions.values().for_each(OpenSession::end);
    connection.answers.hang_up();
}

impl Connection<'_> {
    fn serve_stream(
        &mut self,
        reader: &mut dyn Read,
        decoder: &mut Decoder,
        first: Option<Request>,
    ) -> io::Result<()> {
        decoder.charge(self.account).or_else(|reason| self.fail(reason))?;
        if let Some(first) = first {
            self.serve(first)?;
        }
        self.serve_all(decoder)?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = reader.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            decoder.feed(&buffer[..count]).or_else(|reason| self.fail(reason))?;
            self.serve_all(decoder)?;
        }
    }

    fn serve_all(&mut self, decoder: &mut Decoder) -> io::Result<()> {
        loop {
            let message = decoder.next().or_else(|reason| self.fail(reason))?;
            let Some(message) = message else { return Ok(()) };
            let request = Request::of(message).or_else(|reason| self.fail(reason))?;
            self.serve(request)?;
        }
    }

    /// Reports why the connection ends. The rest of the stream cannot be decoded.
    fn fail<T>(&self, reason: String) -> io::Result<T> {
        self.answers.done(&Heading::default(), [("err", reason.into())], &["error"])?;
        Err(io::ErrorKind::InvalidData.into())
    }

    fn serve(&mut self, request: Request) -> io::Result<()> {
        let heading = request.heading();
        match request.text("op") {
            Some("clone") => self.answer_clone(heading),
            Some("close") => self.close(&heading),
            Some("interrupt") => self.interrupt(&heading, request.text("interrupt-id")),
            Some("stdin") => self.feed(&heading, request.text("stdin")),
            Some("ls-sessions") => {
                self.forget_ended();
                let names = Bencode::texts(self.sessions.keys().map(String::as_str));
                self.answers.done(&heading, [("sessions", names)], &[])
            }
            // The operations are fixed: there is no middleware.
            Some("ls-middleware") => {
                self.answers.done(&heading, [("middleware", Bencode::List(Vec::new()))], &[])
            }
            Some("describe") => self.describe(&heading),
            Some(operation) if OPERATIONS.contains(&operation) => self.pass_on(heading, request),
            operation => {
                let operation = operation.map(|name| ("op", name.into()));
                self.answers.done(&heading, operation, &["error", "unknown-op"])
            }
        }
    }

    /// Opens a session. If the request names a session, the new one begins with a copy of its
    /// world.
    fn answer_clone(&mut self, heading: Heading) -> io::Result<()> {
        self.forget_ended();
        let (copy, receiver) = channel::bounded(1);
        let initial = match &heading.session {
            None => InitialWorld::Own,
            Some(name) => {
                let opened = self.sessions.get(name);
                if opened.is_none_or(|opened| opened.requests.send(Order::Copy(copy)).is_err()) {
                    return self.answers.done(&heading, [], &["error", "unknown-session"]);
                }
                InitialWorld::CopyOf(receiver, heading.clone())
            }
        };
        match (self.open(initial), &heading.session) {
            (Ok(name), None) => self.answers.done(&heading, [("new-session", name.into())], &[]),
            // The new session answers once it has begun.
            (Ok(_), Some(_)) => Ok(()),
            (Err(reason), _) => self.answers.done(&heading, [("err", reason.into())], &["error"]),
        }
    }

    fn forget_ended(&mut self) {
        self.sessions.retain(|_, opened| !opened.state.is_over.load(Ordering::Acquire));
    }

    /// Opens a session. Returns its name, or why it could not be opened.
    fn open(&mut self, initial: InitialWorld) -> Result<String, String> {
        let name = format!("kyocho-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let state = Arc::new(State::default());
        let output = |key| {
            let (answers, state, session) =
                (self.answers.clone(), Arc::clone(&state), name.clone());
            Box::new(Output { answers, state, session, key })
        };
        let input = {
            let (answers, state, session) =
                (self.answers.clone(), Arc::clone(&state), name.clone());
            Feed::new(move || {
                let status = [("status", Bencode::texts(["need-input"]))];
                // If the client has disconnected, its session ends.
                let _ = answers.send(&state.heading(&session), status);
            })
        };
        let ports = SessionPorts {
            input: Some(Arc::clone(&input)),
            output: output("out"),
            error: output("err"),
        };
        let mut session =
            self.system.open_session(self.account, ports).map_err(|error| error.to_string())?;
        match initial {
            InitialWorld::Own => self.world.enter(&mut session)?,
            InitialWorld::CopyOf(..) => self.world.set_image_of(&session),
        }
        let handle = session.handle();
        let (requests, inbox) = channel::bounded(REQUESTS_MAX);
        let (answers, served, own_name) = (self.answers.clone(), Arc::clone(&state), name.clone());
        let body = move || {
            let mut worker = Worker::new(session, answers, served);
            // If the client has disconnected, no answer is needed.
            let _ = worker.begin(initial, &own_name).and_then(|()| worker.run(&inbox));
        };
        let thread_name = format!("nrepl-session: {}", self.account.name());
        let builder = Builder::new().name(thread_name).stack_bytes(STACK_BYTES);
        builder.spawn(body).map_err(|error| error.to_string())?;
        self.sessions.insert(name.clone(), OpenSession { handle, requests, state, input });
        Ok(name)
    }

    fn close(&mut self, heading: &Heading) -> io::Result<()> {
        match heading.session.as_ref().and_then(|name| self.sessions.remove(name)) {
            Some(opened) => {
                opened.end();
                self.answers.done(heading, [], &["session-closed"])
            }
            None => self.answers.done(heading, [], &["error", "unknown-session"]),
        }
    }

    /// Appends text to a session's standard input.
    fn feed(&self, heading: &Heading, text: Option<&str>) -> io::Result<()> {
        let name = heading.session.as_ref().or(self.default.as_ref());
        let opened = name.and_then(|name| self.sessions.get(name));
        let status: &[&str] = match (opened, text) {
            (None, _) => &["error", "unknown-session"],
            (_, None) => &["error", "no-stdin"],
            (Some(opened), Some(text)) if opened.input.send(text.as_bytes()) => &[],
            // Earlier text must be read first.
            _ => &["error", "stdin-full"],
        };
        self.answers.done(heading, [], status)
    }

    /// Stops the evaluation of a session. With an `id`, stops only the request with this id.
    fn interrupt(&self, heading: &Heading, id: Option<&str>) -> io::Result<()> {
        let name = heading.session.as_ref().or(self.default.as_ref());
        let Some(opened) = name.and_then(|name| self.sessions.get(name)) else {
            return self.answers.done(heading, [], &["error", "unknown-session"]);
        };
        let current = opened.state.lock().clone();
        let status: &[&str] = match current {
            None => &["session-idle"],
            Some(current) if id.is_some() && current.id.as_deref() != id => {
                &["error", "interrupt-id-mismatch"]
            }
            Some(_) => {
                opened.state.interrupt.raise(&opened.handle, || opened.state.lock().is_some());
                &[]
            }
        };
        self.answers.done(heading, [], status)
    }

    fn describe(&self, heading: &Heading) -> io::Result<()> {
        let none = || Bencode::Dictionary(BTreeMap::new());
        let operations = Bencode::dictionary(OPERATIONS.iter().map(|&name| (name, none())));
        let versions =
            [("kyocho", version(env!("CARGO_PKG_VERSION"))), ("nrepl", version("1.0.0"))];
        let entries = [
            ("aux", Bencode::dictionary([("current-ns", NAMESPACE.into())])),
            ("ops", operations),
            ("versions", Bencode::dictionary(versions)),
        ];
        self.answers.done(heading, entries, &[])
    }

    /// Passes a request to its session, or to the connection's default session if it names none.
    fn pass_on(&mut self, mut heading: Heading, request: Request) -> io::Result<()> {
        if heading.session.is_none() && self.default.is_none() {
            match self.open(InitialWorld::Own) {
                Ok(name) => self.default = Some(name),
                Err(reason) => {
                    return self.answers.done(&heading, [("err", reason.into())], &["error"]);
                }
            }
        }
        heading.session = heading.session.or_else(|| self.default.clone());
        let opened = heading.session.as_ref().and_then(|name| self.sessions.get(name));
        // A session that has ended by `exit` accepts no more requests.
        if opened.is_some_and(|opened| opened.requests.send(Order::Serve(request)).is_ok()) {
            return Ok(());
        }
        self.answers.done(&heading, [], &["error", "unknown-session"])
    }
}

/// A version `1.2.3` as a dictionary of its parts.
fn version(text: &str) -> Bencode {
    let parts = ["major", "minor", "incremental"].into_iter().zip(text.split('.'));
    let part =
        |(name, number): (&'static str, &str)| Some((name, Bencode::Integer(number.parse().ok()?)));
    Bencode::dictionary(parts.filter_map(part).chain([("version-string", text.into())]))
}
