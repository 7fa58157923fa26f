//! nREPL: what editors speak (bencode over TCP; the operations of nREPL 1.0 and cider's `complete`, `info`, `stacktrace`).
//!
//! ```text
//!  connection ──► nrepl (a microprocess) ── clone, close, interrupt, stdin, describe, ls-sessions: answered where they arrive
//!                    │  requests                ▲ Wire
//!                    └──► nrepl-session (one a session): eval, load-file, completions, lookup, stacktrace, in order
//!                             │  a copy of its world, where the request `clone` names it
//!                             └──► nrepl-session: begins with that copy, then answers `clone`
//! ```
//!
//! Each nREPL session is a session of the server, with its own environment, threads and limits, and ends with its connection.

mod login;
mod request;
mod token;
mod worker;

use super::bencode::{Bencode, Decoder};
use super::evaluation::Interrupt;
use super::wire::Wire;
use super::worlds::World;
use kyocho_lisp::account::Account;
use kyocho_lisp::port::{Feed, SessionPorts};
use kyocho_lisp::system::{SessionHandle, System, WorldCopy};
use kyocho_microprocess::Builder;
use kyocho_microprocess::channel::{self, Receiver, Sender};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use request::Request;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use worker::Worker;

pub(crate) use login::{Strangers, wait as wait_for_token};
pub(crate) use token::{Token, TokenFile};

/// Requests that wait for the evaluation before them; then the connection does.
const REQUESTS_MAX: usize = 16;
const READ_BYTES: usize = 16 * 1024;
/// Only touched pages of a stack are memory.
const STACK_BYTES: usize = 1 << 20;
/// What names are in: there are no namespaces.
const NAMESPACE: &str = "kyocho";

/// The operations, for `describe`.
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

/// A request, as far as its answers repeat it.
#[derive(Clone, Debug, Default)]
struct Heading {
    id: Option<String>,
    session: Option<String>,
}

impl Heading {
    /// A message under it.
    fn message<'a>(&self, entries: impl IntoIterator<Item = (&'a str, Bencode)>) -> Bencode {
        let own = [("id", &self.id), ("session", &self.session)];
        let own = own.into_iter().filter_map(|(key, text)| Some((key, text.clone()?.into())));
        Bencode::dictionary(own.chain(entries))
    }
}

/// The way to the client.
#[derive(Clone)]
struct Voice(Wire);

impl Voice {
    fn say<'a>(
        &self,
        heading: &Heading,
        entries: impl IntoIterator<Item = (&'a str, Bencode)>,
    ) -> io::Result<()> {
        self.0.send(|out| heading.message(entries).write(out))
    }

    /// The last answer to a request.
    fn done<'a>(
        &self,
        heading: &Heading,
        entries: impl IntoIterator<Item = (&'a str, Bencode)>,
        status: &[&str],
    ) -> io::Result<()> {
        let status = Bencode::texts(status.iter().copied().chain(["done"]));
        self.say(heading, entries.into_iter().chain([("status", status)]))
    }
}

/// What a session's microprocess is to do.
enum Order {
    Serve(Request),
    /// Another session is to begin with a copy of its world.
    Copy(Sender<Result<WorldCopy, String>>),
}

/// What a session begins with.
enum Beginning {
    /// Its user's world.
    Own,
    /// The copy of another's that comes; then the request that asked for it is answered.
    CopyOf(Receiver<Result<WorldCopy, String>>, Heading),
}

/// What the connection's reader and a session's microprocess know of each other.
struct Desk {
    handle: SessionHandle,
    requests: Sender<Order>,
    state: Arc<State>,
    /// What the session's programs read.
    input: Arc<Feed>,
}

impl Desk {
    /// The session is over; who reads there finds the end.
    fn end(&self) {
        self.requests.close();
        self.input.close();
        self.handle.end();
    }
}

/// The request that is served in a session.
#[derive(Debug, Default)]
struct State {
    current: Mutex<Option<Heading>>,
    interrupt: Interrupt,
    /// `exit` has ended it; or there was no copy to begin with, it never was, and nobody knows its name.
    is_over: AtomicBool,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Option<Heading>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What something in this session is said under: the request that is served, if any.
    fn heading(&self, session: &str) -> Heading {
        let idle = || Heading { id: None, session: Some(session.to_owned()) };
        self.lock().clone().unwrap_or_else(idle)
    }
}

/// What a session writes, under the request that it is about.
struct Output {
    voice: Voice,
    state: Arc<State>,
    session: String,
    /// `out` or `err`.
    key: &'static str,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let heading = self.state.heading(&self.session);
        self.voice.0.write(bytes, |text, out| heading.message([(self.key, text.into())]).write(out))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.voice.0.flush()
    }
}

/// A client's connection.
struct Connection<'a> {
    system: &'a Arc<System>,
    account: &'a Arc<Account>,
    world: World,
    voice: Voice,
    desks: BTreeMap<String, Desk>,
    /// The session of requests that name none, once there was one.
    default: Option<String>,
}

/// The number of the next session, on any connection.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Says why there is no connection.
pub(crate) fn refuse(wire: Wire, reason: &str) {
    let voice = Voice(wire);
    // Who has gone does not want to know.
    let _ = voice.done(&Heading::default(), [("err", reason.into())], &["error"]);
    voice.0.hang_up();
}

/// An editor whose user is known.
pub(crate) struct Editor {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) wire: Wire,
    /// What has come already: whole messages, if any, behind the first request, if there is one.
    pub(crate) decoder: Decoder,
    pub(crate) first: Option<Request>,
}

impl Editor {
    /// One who has said nothing yet.
    pub(crate) fn new(reader: Box<dyn Read + Send>, wire: Wire) -> Self {
        Self { reader, wire, decoder: Decoder::of_stranger(0), first: None }
    }
}

/// The body: serves until the client has gone, then ends his sessions.
pub(crate) fn serve(system: &Arc<System>, account: &Arc<Account>, world: World, editor: Editor) {
    let Editor { mut reader, wire, mut decoder, first } = editor;
    let voice = Voice(wire);
    let mut connection =
        Connection { system, account, world, voice, desks: BTreeMap::new(), default: None };
    // Who is told why he is hung up on, or has gone, needs no more.
    let _ = connection.serve_stream(reader.as_mut(), &mut decoder, first);
    connection.desks.values().for_each(Desk::end);
    connection.voice.0.hang_up();
}

impl Connection<'_> {
    fn serve_stream(
        &mut self,
        reader: &mut dyn Read,
        decoder: &mut Decoder,
        first: Option<Request>,
    ) -> io::Result<()> {
        decoder.charge(self.account).or_else(|reason| self.give_up(reason))?;
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
            decoder.feed(&buffer[..count]).or_else(|reason| self.give_up(reason))?;
            self.serve_all(decoder)?;
        }
    }

    fn serve_all(&mut self, decoder: &mut Decoder) -> io::Result<()> {
        loop {
            let message = decoder.next().or_else(|reason| self.give_up(reason))?;
            let Some(message) = message else { return Ok(()) };
            let request = Request::of(message).or_else(|reason| self.give_up(reason))?;
            self.serve(request)?;
        }
    }

    /// Says why the connection ends: nothing that comes behind can be understood.
    fn give_up<T>(&self, reason: String) -> io::Result<T> {
        self.voice.done(&Heading::default(), [("err", reason.into())], &["error"])?;
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
                let names = Bencode::texts(self.desks.keys().map(String::as_str));
                self.voice.done(&heading, [("sessions", names)], &[])
            }
            // Operations are what there is, and cannot be added to.
            Some("ls-middleware") => {
                self.voice.done(&heading, [("middleware", Bencode::List(Vec::new()))], &[])
            }
            Some("describe") => self.describe(&heading),
            Some(operation) if OPERATIONS.contains(&operation) => self.pass_on(heading, request),
            operation => {
                let operation = operation.map(|name| ("op", name.into()));
                self.voice.done(&heading, operation, &["error", "unknown-op"])
            }
        }
    }

    /// Opens a session, with a copy of the world of the one that is named.
    fn answer_clone(&mut self, heading: Heading) -> io::Result<()> {
        self.forget_ended();
        let (copy, to_come) = channel::bounded(1);
        let beginning = match &heading.session {
            None => Beginning::Own,
            Some(name) => {
                let desk = self.desks.get(name);
                if desk.is_none_or(|desk| desk.requests.send(Order::Copy(copy)).is_err()) {
                    return self.voice.done(&heading, [], &["error", "unknown-session"]);
                }
                Beginning::CopyOf(to_come, heading.clone())
            }
        };
        match (self.open(beginning), &heading.session) {
            (Ok(name), None) => self.voice.done(&heading, [("new-session", name.into())], &[]),
            // It answers itself, once it has begun.
            (Ok(_), Some(_)) => Ok(()),
            (Err(reason), _) => self.voice.done(&heading, [("err", reason.into())], &["error"]),
        }
    }

    fn forget_ended(&mut self) {
        self.desks.retain(|_, desk| !desk.state.is_over.load(Ordering::Acquire));
    }

    /// Opens a session; its name, or why there is none.
    fn open(&mut self, beginning: Beginning) -> Result<String, String> {
        let name = format!("kyocho-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let state = Arc::new(State::default());
        let output = |key| {
            let (voice, state, session) = (self.voice.clone(), Arc::clone(&state), name.clone());
            Box::new(Output { voice, state, session, key })
        };
        let input = {
            let (voice, state, session) = (self.voice.clone(), Arc::clone(&state), name.clone());
            Feed::new(move || {
                let status = [("status", Bencode::texts(["need-input"]))];
                // Who has gone sends nothing, and his session ends.
                let _ = voice.say(&state.heading(&session), status);
            })
        };
        let ports = SessionPorts {
            input: Some(Arc::clone(&input)),
            output: output("out"),
            error: output("err"),
        };
        let mut session =
            self.system.open_session(self.account, ports).map_err(|error| error.to_string())?;
        match beginning {
            Beginning::Own => self.world.enter(&mut session)?,
            Beginning::CopyOf(..) => self.world.is_saved_by(&session),
        }
        let handle = session.handle();
        let (requests, inbox) = channel::bounded(REQUESTS_MAX);
        let (voice, served, own_name) = (self.voice.clone(), Arc::clone(&state), name.clone());
        let body = move || {
            let mut worker = Worker::new(session, voice, served);
            // Who has gone needs no answer.
            let _ = worker.begin(beginning, &own_name).and_then(|()| worker.run(&inbox));
        };
        let name_outside = format!("nrepl-session: {}", self.account.name());
        let builder = Builder::new().name(name_outside).stack_bytes(STACK_BYTES);
        builder.spawn(body).map_err(|error| error.to_string())?;
        self.desks.insert(name.clone(), Desk { handle, requests, state, input });
        Ok(name)
    }

    fn close(&mut self, heading: &Heading) -> io::Result<()> {
        match heading.session.as_ref().and_then(|name| self.desks.remove(name)) {
            Some(desk) => {
                desk.end();
                self.voice.done(heading, [], &["session-closed"])
            }
            None => self.voice.done(heading, [], &["error", "unknown-session"]),
        }
    }

    /// Gives text to what a session's programs read, now or later.
    fn feed(&self, heading: &Heading, text: Option<&str>) -> io::Result<()> {
        let name = heading.session.as_ref().or(self.default.as_ref());
        let desk = name.and_then(|name| self.desks.get(name));
        let status: &[&str] = match (desk, text) {
            (None, _) => &["error", "unknown-session"],
            (_, None) => &["error", "no-stdin"],
            (Some(desk), Some(text)) if desk.input.send(text.as_bytes()) => &[],
            // It has to be read first.
            _ => &["error", "stdin-full"],
        };
        self.voice.done(heading, [], status)
    }

    /// Stops what a session evaluates; only the request with this id, where one is said.
    fn interrupt(&self, heading: &Heading, id: Option<&str>) -> io::Result<()> {
        let name = heading.session.as_ref().or(self.default.as_ref());
        let Some(desk) = name.and_then(|name| self.desks.get(name)) else {
            return self.voice.done(heading, [], &["error", "unknown-session"]);
        };
        let current = desk.state.lock().clone();
        let status: &[&str] = match current {
            None => &["session-idle"],
            Some(current) if id.is_some() && current.id.as_deref() != id => {
                &["error", "interrupt-id-mismatch"]
            }
            Some(_) => {
                desk.state.interrupt.raise(&desk.handle, || desk.state.lock().is_some());
                &[]
            }
        };
        self.voice.done(heading, [], status)
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
        self.voice.done(heading, entries, &[])
    }

    /// Gives a request to its session; to the connection's own where it names none.
    fn pass_on(&mut self, mut heading: Heading, request: Request) -> io::Result<()> {
        if heading.session.is_none() && self.default.is_none() {
            match self.open(Beginning::Own) {
                Ok(name) => self.default = Some(name),
                Err(reason) => {
                    return self.voice.done(&heading, [("err", reason.into())], &["error"]);
                }
            }
        }
        heading.session = heading.session.or_else(|| self.default.clone());
        let desk = heading.session.as_ref().and_then(|name| self.desks.get(name));
        // One that `exit` has ended takes no more.
        if desk.is_some_and(|desk| desk.requests.send(Order::Serve(request)).is_ok()) {
            return Ok(());
        }
        self.voice.done(&heading, [], &["error", "unknown-session"])
    }
}

/// A version `1.2.3`, in parts.
fn version(text: &str) -> Bencode {
    let parts = ["major", "minor", "incremental"].into_iter().zip(text.split('.'));
    let part =
        |(name, number): (&'static str, &str)| Some((name, Bencode::Integer(number.parse().ok()?)));
    Bencode::dictionary(parts.filter_map(part).chain([("version-string", text.into())]))
}
