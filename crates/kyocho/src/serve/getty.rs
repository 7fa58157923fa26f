//! A getty: gives one user the loop that reads, evaluates and shows (paper 4, §3.1.5).
//!
//! ```text
//!  connection ──► getty-input ──events──► getty ──begin──► main thread of the evaluation
//!       ▲              │ interrupt, hang-up      ◄──on_end──┘   │
//!       └──────────────┼─────────────── Wire ◄──────────────────┘ output
//! ```
//!
//! Two microprocesses, because the user may interrupt, or be gone, while his evaluation runs. When he is gone his session
//! is ended as a whole.

use super::dialect::{Decode, Encode, Event, Outcome, Shown, TEXT_BYTES_MAX};
use crate::comma::{self, Typed};
use kyocho_lisp::account::Account;
use kyocho_lisp::port::SessionPorts;
use kyocho_lisp::system::{Completeness, Session, SessionHandle, System, Unread, completeness};
use kyocho_microprocess::channel::{self, Receiver, Sender};
use kyocho_microprocess::{Builder, Microprocess, park};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Events that wait for the evaluation before them; then the user's connection does.
const EVENTS_MAX: usize = 16;
const READ_BYTES: usize = 2048;
/// What is sent at a time.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// Names that a completion lists.
const NAMES_MAX: usize = 500;
const INPUT_STACK_BYTES: usize = 64 * 1024;

/// The sending half of a connection. A write that a signal interrupts has sent nothing.
pub(crate) trait Outlet: Write + Send {
    /// Ends the connection in both directions.
    fn hang_up(&self);
}

impl Outlet for std::os::unix::net::UnixStream {
    fn hang_up(&self) {
        // The user was quicker.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Outlet for std::net::TcpStream {
    fn hang_up(&self) {
        // The user was quicker.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// A user's connection.
pub(crate) struct Connection {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) writer: Box<dyn Outlet>,
    pub(crate) decode: Box<dyn Decode>,
    pub(crate) encode: Box<dyn Encode>,
}

impl Connection {
    /// Says why there is no session.
    pub(crate) fn refuse(self, reason: &str) {
        let wire = Wire::new(self.writer, self.encode);
        // Who has gone does not want to know.
        let _ = wire.show(Shown::Refused(reason));
    }
}

/// The way to the user, for all who write to him. Clones are the same.
#[derive(Clone)]
struct Wire(Arc<Mutex<Line>>);

struct Line {
    writer: Box<dyn Outlet>,
    encode: Box<dyn Encode>,
    /// Encoded and not sent yet: less than what one message is.
    pending: Vec<u8>,
}

impl Line {
    /// Sends what is pending. A user who does not take it is gone: the session's other half is told.
    fn flush(&mut self) -> io::Result<()> {
        let sent = self.send();
        if sent.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
            self.writer.hang_up();
        }
        sent
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.writer.write(&self.pending)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => drop(self.pending.drain(..count)),
            }
        }
        Ok(())
    }

    fn show(&mut self, shown: Shown<'_>) -> io::Result<()> {
        self.encode.encode(shown, &mut self.pending);
        loop {
            match self.flush() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Wire {
    fn new(writer: Box<dyn Outlet>, encode: Box<dyn Encode>) -> Self {
        Self(Arc::new(Mutex::new(Line { writer, encode, pending: Vec::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, shown: Shown<'_>) -> io::Result<()> {
        self.lock().show(shown)
    }

    /// Ends the connection: its other half reads no more.
    fn hang_up(&self) {
        self.lock().writer.hang_up();
    }
}

/// The session's output port writes here, from Lisp threads: an interrupted write has taken nothing, or all.
impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut line = self.lock();
        line.flush()?;
        let count = whole_characters(bytes, OUTPUT_BYTES_MAX);
        let text = String::from_utf8_lossy(&bytes[..count]);
        let Line { encode, pending, .. } = &mut *line;
        encode.encode(Shown::Output(&text), pending);
        match line.flush() {
            // The rest goes before whatever is written next.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(count),
            result => result.map(|()| count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

/// How many bytes to take so that no character is cut.
fn whole_characters(bytes: &[u8], most: usize) -> usize {
    if bytes.len() <= most {
        return bytes.len();
    }
    let is_boundary = |&at: &usize| bytes[at] & 0xc0 != 0x80;
    (most - 3..=most).rev().find(is_boundary).unwrap_or(most)
}

/// The body: serves until the user has gone.
pub(crate) fn serve(system: &System, account: &Arc<Account>, connection: Connection) {
    let Connection { reader, writer, decode, encode } = connection;
    let wire = Wire::new(writer, encode);
    let ports = SessionPorts { output: Box::new(wire.clone()), error: Box::new(wire.clone()) };
    let session = match system.open_session(account, ports) {
        Ok(session) => session,
        Err(error) => {
            // Who has gone does not want to know.
            let _ = wire.show(Shown::Refused(&error.to_string()));
            return;
        }
    };
    let handle = session.handle();
    let calls = Arc::new(Calls::default());
    let (sender, events) = channel::bounded(EVENTS_MAX);
    let input = {
        let ear = Ear { wire: wire.clone(), handle: handle.clone(), calls: Arc::clone(&calls) };
        move || ear.listen(reader, decode, &sender)
    };
    let builder = Builder::new().name("getty-input").stack_bytes(INPUT_STACK_BYTES);
    match builder.spawn(input) {
        Ok(_) => {
            // Where the user has gone, so has the loop's reason: it ends.
            let wire = wire.clone();
            let _ =
                Loop { session, wire, calls, partial: String::new() }.run(account.name(), &events);
        }
        Err(error) => {
            let _ = wire.show(Shown::Refused(&format!("no memory: {error}")));
        }
    }
    handle.end();
    wire.hang_up();
}

/// What the two know of each other: an interrupt is for what came before it, also where that has not begun.
#[derive(Debug, Default)]
struct Calls {
    /// Events that came and are not served yet.
    waiting: AtomicUsize,
    /// The next evaluation to begin is to stop.
    interrupt: AtomicBool,
}

/// What listens to the user.
struct Ear {
    wire: Wire,
    handle: SessionHandle,
    calls: Arc<Calls>,
}

impl Ear {
    /// Reads until the user has gone, and ends his session then.
    fn listen(
        &self,
        mut reader: Box<dyn Read + Send>,
        mut decode: Box<dyn Decode>,
        events: &Sender<Event>,
    ) {
        let mut buffer = [0; READ_BYTES];
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            let decoded = match decode.feed(&buffer[..count]) {
                Ok(decoded) => decoded,
                Err(reason) => {
                    let _ = self.wire.show(Shown::Refused(&reason));
                    break;
                }
            };
            if !decoded.into_iter().all(|event| self.pass_on(event, events)) {
                return;
            }
        }
        events.close();
        self.handle.end();
    }

    /// Gives an event to the getty; `false` where that has ended.
    fn pass_on(&self, event: Event, events: &Sender<Event>) -> bool {
        if event == Event::Interrupt {
            self.interrupt();
            return true;
        }
        self.calls.waiting.fetch_add(1, Ordering::SeqCst);
        events.send(event).is_ok()
    }

    /// Stops the evaluation, or the one that is about to begin.
    fn interrupt(&self) {
        self.calls.interrupt.store(true, Ordering::SeqCst);
        if self.calls.waiting.load(Ordering::SeqCst) == 0 || self.handle.interrupt() {
            self.calls.interrupt.store(false, Ordering::SeqCst);
        }
    }
}

/// What a getty goes round in.
struct Loop {
    session: Session,
    wire: Wire,
    calls: Arc<Calls>,
    /// Lines that are no whole form yet.
    partial: String,
}

impl Loop {
    fn run(&mut self, user: &str, events: &Receiver<Event>) -> io::Result<()> {
        self.wire.show(Shown::Welcome(user))?;
        for event in events.iter() {
            match event {
                Event::Text(text) => self.evaluate(&text)?,
                Event::Line(line) => self.line(&line)?,
                Event::Complete(prefix) => {
                    let mut names = self.session.names(&prefix);
                    names.truncate(NAMES_MAX);
                    self.wire.show(Shown::Names(&names))?;
                }
                // It is served where it arrives.
                Event::Interrupt => {}
            }
            self.calls.waiting.fetch_sub(1, Ordering::SeqCst);
            if self.session.exit_code().is_some() {
                break;
            }
        }
        Ok(())
    }

    /// One more line; evaluates what is complete.
    fn line(&mut self, line: &str) -> io::Result<()> {
        self.partial.push_str(line);
        self.partial.push('\n');
        match completeness(&self.partial) {
            Completeness::Incomplete if self.partial.len() < TEXT_BYTES_MAX => {
                self.wire.show(Shown::More)
            }
            _ => {
                let text = core::mem::take(&mut self.partial);
                self.evaluate(&text)
            }
        }
    }

    fn evaluate(&mut self, text: &str) -> io::Result<()> {
        match comma::typed(text) {
            Typed::Text(text) => self.evaluate_lisp(&text),
            Typed::Notice(notice) => {
                self.wire.show(Shown::Output(&notice))?;
                self.wire.show(Shown::Done(&Outcome::default()))
            }
        }
    }

    fn evaluate_lisp(&mut self, text: &str) -> io::Result<()> {
        let ended = self.await_end(text);
        let mut outcome = Outcome::default();
        match self.session.finish(ended) {
            Ok(evaluation) => outcome.values = evaluation.values,
            Err(report) => outcome.error = Some(report.to_string()),
        }
        outcome.exit = self.session.exit_code();
        self.session.flush_output();
        self.wire.show(Shown::Done(&outcome))
    }

    fn await_end(&self, text: &str) -> Unread {
        let me = Microprocess::current();
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        self.session.begin(text, "prompt", move |ended| {
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            me.unpark();
        });
        if self.calls.interrupt.swap(false, Ordering::SeqCst) {
            self.session.handle().interrupt();
        }
        loop {
            if let Some(ended) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return ended;
            }
            park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn no_character_is_cut() {
        let text = "aé€𝄞".repeat(20);
        for most in 4..text.len() + 2 {
            let count = whole_characters(text.as_bytes(), most);
            assert!(text.is_char_boundary(count) && count <= most && count > 0, "{most}: {count}");
        }
    }
}
