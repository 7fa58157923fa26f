//! A getty: runs the loop of one session, which reads, evaluates and prints (paper 4, §3.1.5).
//!
//! ```text
//!  connection ──► getty-input ──events──► getty ──begin──► main thread of the evaluation
//!       ▲              │ interrupt, hang-up      ◄──on_end──┘   │
//!       └──────────────┼─────────────── Wire ◄──────────────────┘ output
//! ```
//!
//! There are two microprocesses, because the user may interrupt or disconnect while an evaluation
//! runs. When the user disconnects, the session is ended as a whole.

use crate::comma::{self, Typed};
use crate::dialect::{Decode, Encode, Event, Outcome, Reply, TEXT_BYTES_MAX};
use crate::evaluation::{self, Interrupt};
use crate::wire::{ConnectionWriter, Wire};
use crate::worlds::World;
use kyocho_lisp::account::{Account, Overdrawn, Reserved};
use kyocho_lisp::port::SessionPorts;
use kyocho_lisp::syntax::growing::GrowingText;
use kyocho_lisp::system::{Completeness, Evaluation, Report, Session, SessionHandle, System};
use kyocho_microprocess::Builder;
use kyocho_microprocess::channel::{self, Receiver, Sender};
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Most events that wait for the evaluation before them. Beyond that nothing is read from the
/// connection.
const EVENTS_MAX: usize = 16;
const READ_BYTES: usize = 2048;
/// Most names that a completion lists.
const NAMES_MAX: usize = 500;
const INPUT_STACK_BYTES: usize = 64 * 1024;

/// A user's connection.
pub(crate) struct Connection {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) writer: Box<dyn ConnectionWriter>,
    pub(crate) decode: Box<dyn Decode>,
    pub(crate) encode: Arc<dyn Encode>,
}

impl Connection {
    /// Reports why there is no session.
    pub(crate) fn refuse(self, reason: &str) {
        let client = Client { wire: Wire::new(self.writer), encode: self.encode };
        // The client may have disconnected; then the reason is not needed.
        let _ = client.show(Reply::Refused(reason));
    }
}

/// Writes to the user's client. All clones write to the same client.
#[derive(Clone)]
struct Client {
    wire: Wire,
    encode: Arc<dyn Encode>,
}

impl Client {
    fn show(&self, reply: Reply<'_>) -> io::Result<()> {
        self.wire.send(|out| self.encode.encode(reply, out))
    }
}

/// The session's output port writes here.
impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wire.write(bytes, |text, out| self.encode.encode(Reply::Output(text), out))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wire.flush()
    }
}

/// Serves a session until the user disconnects.
pub(crate) fn serve(
    system: &System,
    account: &Arc<Account>,
    world: &World,
    connection: Connection,
) {
    let Connection { reader, writer, decode, encode } = connection;
    let client = Client { wire: Wire::new(writer), encode };
    let ports = SessionPorts {
        input: None,
        output: Box::new(client.clone()),
        error: Box::new(client.clone()),
    };
    let session = match system.open_session(account, ports) {
        Ok(session) => session,
        Err(error) => {
            // The client may have disconnected; then the reason is not needed.
            let _ = client.show(Reply::Refused(&error.to_string()));
            return;
        }
    };
    let handle = session.handle();
    let shared = Arc::new(Shared::default());
    let (sender, events) = channel::bounded(EVENTS_MAX);
    let input = {
        let input_reader = InputReader {
            client: client.clone(),
            handle: handle.clone(),
            shared: Arc::clone(&shared),
            account: Arc::clone(account),
        };
        move || input_reader.run(reader, decode, &sender)
    };
    let name = format!("getty-input: {}", account.name());
    let builder = Builder::new().name(name).stack_bytes(INPUT_STACK_BYTES);
    let partial = account.reserve(0).map(|held| (GrowingText::default(), held));
    match (partial, builder.spawn(input)) {
        (Ok(partial), Ok(_)) => {
            // If the user has disconnected, the loop ends. The result does not matter.
            let client = client.clone();
            let _ = Loop { session, client, shared, partial }.run(account.name(), world, &events);
        }
        (Err(error), _) => {
            let _ = client.show(Reply::Refused(&error.to_string()));
        }
        (_, Err(error)) => {
            let _ = client.show(Reply::Refused(&format!("no memory for the session: {error}")));
        }
    }
    handle.end();
    client.wire.hang_up();
}

/// State that both microprocesses share. An interrupt concerns all events that arrived before it,
/// also if their evaluation has not begun.
#[derive(Debug, Default)]
struct Shared {
    /// Number of events that have arrived and are not served yet.
    waiting: AtomicUsize,
    interrupt: Interrupt,
}

/// A waiting event. It is charged to its user until it is served.
type Waiting = (Event, Reserved);

/// The body of `getty-input`.
struct InputReader {
    client: Client,
    handle: SessionHandle,
    shared: Arc<Shared>,
    account: Arc<Account>,
}

impl InputReader {
    /// Reads until the user disconnects, and then ends the session.
    fn run(
        &self,
        mut reader: Box<dyn Read + Send>,
        mut decode: Box<dyn Decode>,
        events: &Sender<Waiting>,
    ) {
        let mut buffer = [0; READ_BYTES];
        let mut pending = None;
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            let decoded = decode.feed(&buffer[..count]);
            let decoded = decoded.and_then(|decoded| {
                let bytes = decode.pending_bytes();
                let waiting = self.charge(decoded, &mut pending, bytes);
                waiting.map_err(|overdrawn| overdrawn.to_string())
            });
            let decoded = match decoded {
                Ok(decoded) => decoded,
                Err(reason) => {
                    let _ = self.client.show(Reply::Refused(&reason));
                    break;
                }
            };
            if !decoded.into_iter().all(|waiting| self.pass_on(waiting, events)) {
                return;
            }
        }
        events.close();
        self.handle.end();
    }

    /// Charges to the user what has arrived and waits: events, and bytes of the next event.
    fn charge(
        &self,
        decoded: Vec<Event>,
        pending: &mut Option<Reserved>,
        pending_bytes: usize,
    ) -> Result<Vec<Waiting>, Overdrawn> {
        // The old charge is released first: its bytes are part of the events now.
        *pending = None;
        *pending = Some(self.account.reserve(pending_bytes)?);
        let charge = |event: Event| {
            let held = self.account.reserve(event.bytes())?;
            Ok((event, held))
        };
        decoded.into_iter().map(charge).collect()
    }

    /// Passes an event to the getty. Returns `false` if the getty has ended.
    fn pass_on(&self, (event, held): Waiting, events: &Sender<Waiting>) -> bool {
        match event {
            Event::Interrupt => {
                self.interrupt();
                true
            }
            Event::Answer(answer) => {
                // If the client has disconnected, the next read reports that.
                let _ = self.client.wire.send(|out| out.extend_from_slice(&answer));
                true
            }
            event => {
                self.shared.waiting.fetch_add(1, Ordering::SeqCst);
                events.send((event, held)).is_ok()
            }
        }
    }

    /// Stops the running evaluation, or the one that is about to begin.
    fn interrupt(&self) {
        let is_awaited = || self.shared.waiting.load(Ordering::SeqCst) > 0;
        self.shared.interrupt.raise(&self.handle, is_awaited);
    }
}

/// The state of a getty's loop.
struct Loop {
    session: Session,
    client: Client,
    shared: Arc<Shared>,
    /// Lines that do not form a complete form yet, and the memory charged for them.
    partial: (GrowingText, Reserved),
}

impl Loop {
    fn run(&mut self, user: &str, world: &World, events: &Receiver<Waiting>) -> io::Result<()> {
        let entered = world.enter(&mut self.session);
        self.client.show(Reply::Welcome(user))?;
        if let Err(reason) = entered {
            self.client
                .show(Reply::Output(&format!("your saved world cannot be loaded: {reason}\n")))?;
        }
        for (event, _held) in events.iter() {
            match event {
                Event::Text(text) => self.evaluate(&text, evaluation::evaluate)?,
                Event::Input(text) => self.evaluate(&text, evaluation::evaluate_and_print)?,
                Event::Line(line) => self.line(&line)?,
                Event::Complete(prefix) => {
                    let mut names = self.session.names(&prefix);
                    names.truncate(NAMES_MAX);
                    self.client.show(Reply::Names(&names))?;
                }
                // `getty-input` handles these.
                Event::Interrupt | Event::Answer(_) => {}
            }
            self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
            if self.session.exit_code().is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Adds a line, and evaluates the form if it is complete.
    fn line(&mut self, line: &str) -> io::Result<()> {
        let (partial, held) = &mut self.partial;
        let completeness = partial.push_line(line);
        let is_charged = held.resize(partial.bytes()).is_ok();
        match completeness {
            Completeness::Incomplete if is_charged && partial.bytes() < TEXT_BYTES_MAX => {
                self.client.show(Reply::More)
            }
            _ => {
                let text = partial.take();
                let done = self.evaluate(&text, evaluation::evaluate);
                // Releasing memory always succeeds.
                let _ = self.partial.1.resize(0);
                done
            }
        }
    }

    fn evaluate(&mut self, text: &str, evaluator: Evaluator) -> io::Result<()> {
        match comma::typed(text) {
            Typed::Text(text) => self.evaluate_lisp(&text, evaluator),
            Typed::Notice(notice) => {
                self.client.show(Reply::Output(&notice))?;
                self.client.show(Reply::Done(&Outcome::default()))
            }
        }
    }

    fn evaluate_lisp(&mut self, text: &str, evaluator: Evaluator) -> io::Result<()> {
        let mut outcome = Outcome::default();
        match evaluator(&mut self.session, text, "prompt", &self.shared.interrupt) {
            Ok(evaluation) => outcome.values = evaluation.values,
            Err(report) => outcome.error = Some(report.to_string()),
        }
        outcome.exit = self.session.exit_code();
        self.session.flush_output();
        self.client.show(Reply::Done(&outcome))
    }
}

/// How a text is evaluated.
type Evaluator = fn(&mut Session, &str, &str, &Interrupt) -> Result<Evaluation, Report>;
