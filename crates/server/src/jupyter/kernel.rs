//! Answers the requests of a notebook, one after the other, in a session whose output goes to the
//! front ends.

use super::message::Request;
use super::sockets::Answers;
use crate::comma::{self, Typed};
use crate::names::is_delimiter;
use kyocho_lisp::account::{Account, Bounds};
use kyocho_lisp::port::SessionPorts;
use kyocho_lisp::system::{Completeness, Report, Session, SessionHandle, System, completeness};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::Receiver;

/// Most names that a completion lists.
const NAMES_MAX: usize = 500;
/// Most bytes of a program's output in one message.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// The destination of output, and the request that causes it.
#[derive(Default)]
struct OutputTarget {
    answers: Option<Answers>,
    /// The header of the current request, or of the last one.
    parent: Value,
}

type SharedTarget = Arc<Mutex<OutputTarget>>;

fn lock(target: &SharedTarget) -> MutexGuard<'_, OutputTarget> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An output port of the session.
struct Output {
    target: SharedTarget,
    /// `stdout` or `stderr`.
    name: &'static str,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(OUTPUT_BYTES_MAX);
        self.partial.extend_from_slice(&bytes[..count]);
        let whole = whole_characters(&self.partial);
        let text: Vec<u8> = self.partial.drain(..whole).collect();
        let (answers, parent) = {
            let target = lock(&self.target);
            (target.answers.clone(), target.parent.clone())
        };
        if let (Some(answers), false) = (answers, text.is_empty()) {
            let text = String::from_utf8_lossy(&text);
            answers.show(&parent, "stream", json!({"name": self.name, "text": text}));
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Number of bytes that are complete characters. Invalid UTF-8 counts as complete.
fn whole_characters(bytes: &[u8]) -> usize {
    match core::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// The kernel.
pub(super) struct Kernel {
    session: Session,
    target: SharedTarget,
    /// Number of evaluated texts, as notebooks number them.
    count: u64,
}

impl Kernel {
    /// # Errors
    /// There is no memory for a session.
    pub(super) fn new(system: &System) -> Result<(Self, SessionHandle), String> {
        let target = SharedTarget::default();
        let output =
            |name| Box::new(Output { target: Arc::clone(&target), name, partial: Vec::new() });
        let ports = SessionPorts { input: None, output: output("stdout"), error: output("stderr") };
        let account = Account::new("notebook", Bounds::NONE);
        let session = system.open_session(&account, ports).map_err(|error| error.to_string())?;
        let handle = session.handle();
        Ok((Self { session, target, count: 0 }, handle))
    }

    /// Answers requests until there are no more, or until the session ends.
    pub(super) fn serve(&mut self, mut requests: Receiver<Request>, answers: &Answers) {
        lock(&self.target).answers = Some(answers.clone());
        while let Some(request) = requests.blocking_recv() {
            if !self.attend(&request, answers) {
                self.abort_waiting(&mut requests, answers);
            }
            if self.session.exit_code().is_some() {
                break;
            }
        }
        answers.flush();
    }

    /// Like [`answer`](Self::answer), and shows that the kernel is busy meanwhile.
    fn attend(&mut self, request: &Request, answers: &Answers) -> bool {
        lock(&self.target).parent = request.header.clone();
        answers.show(&request.header, "status", json!({"execution_state": "busy"}));
        let goes_on = self.answer(request, answers);
        answers.show(&request.header, "status", json!({"execution_state": "idle"}));
        goes_on
    }

    /// Answers all waiting requests after one that failed. Texts among them are not evaluated.
    fn abort_waiting(&mut self, requests: &mut Receiver<Request>, answers: &Answers) {
        // Takes all waiting requests before the first is answered. A front end that gets an answer
        // may send another text, which must be evaluated.
        let waiting: Vec<Request> = core::iter::from_fn(|| requests.try_recv().ok()).collect();
        for request in waiting {
            if request.kind() == "execute_request" {
                answers.show(&request.header, "status", json!({"execution_state": "busy"}));
                answers.reply(&request, "execute_reply", json!({"status": "aborted"}));
                answers.show(&request.header, "status", json!({"execution_state": "idle"}));
            } else {
                self.attend(&request, answers);
            }
        }
    }

    /// Answers one request. Returns `false` if the texts sent after it are not to be evaluated.
    fn answer(&mut self, request: &Request, answers: &Answers) -> bool {
        let (kind, content) = match request.kind() {
            "execute_request" => return self.execute(request, answers),
            "kernel_info_request" => ("kernel_info_reply", info()),
            "complete_request" => ("complete_reply", self.complete(request)),
            "inspect_request" => ("inspect_reply", self.inspect(request)),
            "is_complete_request" => ("is_complete_reply", is_complete(request.text("code"))),
            "history_request" => ("history_reply", json!({"status": "ok", "history": []})),
            "comm_info_request" => ("comm_info_reply", json!({"status": "ok", "comms": {}})),
            // The protocol says that unknown requests get no answer.
            _ => return true,
        };
        answers.reply(request, kind, content);
        true
    }

    fn execute(&mut self, request: &Request, answers: &Answers) -> bool {
        let (code, silent) = (request.text("code"), request.is("silent", false));
        if !silent && request.is("store_history", true) {
            self.count += 1;
        }
        let count = self.count;
        if !silent {
            let input = json!({"code": code, "execution_count": count});
            answers.show(&request.header, "execute_input", input);
        }
        let result = self.evaluate(code);
        self.session.flush_output();
        match result {
            Ok(values) => {
                if !silent && !values.is_empty() {
                    let data = json!({"text/plain": values.join("\n")});
                    let result = json!({"execution_count": count, "data": data, "metadata": {}});
                    answers.show(&request.header, "execute_result", result);
                }
                // `(exit)` ends the kernel. This is how the protocol reports that to the front end.
                let payload = match self.session.exit_code() {
                    Some(_) => json!([{"source": "ask_exit", "keepkernel": false}]),
                    None => json!([]),
                };
                let reply = json!({
                    "status": "ok", "execution_count": count, "payload": payload, "user_expressions": {},
                });
                answers.reply(request, "execute_reply", reply);
                true
            }
            Err(report) => {
                let content = error_content(&report);
                if !silent {
                    answers.show(&request.header, "error", content.clone());
                }
                let mut reply = content;
                reply["status"] = json!("error");
                reply["execution_count"] = json!(count);
                answers.reply(request, "execute_reply", reply);
                !request.is("stop_on_error", true)
            }
        }
    }

    /// Evaluates a text, and returns its values, printed.
    fn evaluate(&mut self, code: &str) -> Result<Vec<String>, Report> {
        match comma::typed(code) {
            Typed::Text(text) => self.session.eval(&text, "notebook").map(|done| done.values),
            Typed::Notice(notice) => Ok(vec![notice.trim_end().to_owned()]),
        }
    }

    fn complete(&self, request: &Request) -> Value {
        let (code, cursor) = (request.text("code"), cursor(request));
        let start = name_start(code, cursor);
        let prefix: String = code.chars().take(cursor).skip(start).collect();
        let mut names = if prefix.is_empty() { Vec::new() } else { self.session.names(&prefix) };
        names.truncate(NAMES_MAX);
        json!({
            "status": "ok", "matches": names, "cursor_start": start, "cursor_end": cursor, "metadata": {},
        })
    }

    /// The value of the name at the cursor, printed. Only the name is evaluated.
    fn inspect(&mut self, request: &Request) -> Value {
        let (code, cursor) = (request.text("code"), cursor(request));
        let name: String =
            code.chars().skip(name_start(code, cursor)).take_while(|&c| !is_delimiter(c)).collect();
        let is_known = !name.is_empty() && self.session.names(&name).contains(&name);
        let meaning = is_known.then(|| match self.session.eval(&name, "notebook") {
            Ok(evaluation) => evaluation.values.join(" "),
            // The name is a keyword of the syntax.
            Err(report) => report.message().to_owned(),
        });
        let data =
            meaning.map_or(json!({}), |text| json!({"text/plain": format!("{name}: {text}")}));
        json!({"status": "ok", "found": is_known, "data": data, "metadata": {}})
    }
}

/// An error in the notebooks' format.
fn error_content(report: &Report) -> Value {
    let text = report.to_string();
    let traceback: Vec<&str> = text.lines().collect();
    let name = if report.message() == "interrupted" { "interrupted" } else { "error" };
    json!({"ename": name, "evalue": report.message(), "traceback": traceback})
}

/// The position of the cursor, in characters.
fn cursor(request: &Request) -> usize {
    let end = request.text("code").chars().count();
    let cursor = request.content["cursor_pos"].as_u64();
    cursor.and_then(|at| usize::try_from(at).ok()).unwrap_or(end).min(end)
}

/// Where the name at the cursor begins, in characters.
fn name_start(code: &str, cursor: usize) -> usize {
    let before: Vec<char> = code.chars().take(cursor).collect();
    before.iter().rposition(|&c| is_delimiter(c)).map_or(0, |at| at + 1)
}

fn is_complete(code: &str) -> Value {
    match completeness(code) {
        _ if code.trim_start().starts_with(',') => json!({"status": "complete"}),
        Completeness::Complete => json!({"status": "complete"}),
        Completeness::Incomplete => json!({"status": "incomplete", "indent": "  "}),
        Completeness::Wrong(_) => json!({"status": "invalid"}),
    }
}

/// What the kernel reports about itself.
pub(super) fn info() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "status": "ok",
        "protocol_version": "5.3",
        "implementation": "kyocho",
        "implementation_version": version,
        "banner": format!("Kyocho {version}: R7RS Scheme; ,help lists commands"),
        "help_links": [],
        "language_info": {
            "name": "scheme",
            "version": "R7RS",
            "mimetype": "text/x-scheme",
            "file_extension": ".scm",
            "pygments_lexer": "scheme",
            "codemirror_mode": "scheme",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{name_start, whole_characters};

    #[test]
    fn names_begin_after_a_delimiter() {
        for (code, cursor, start) in
            [("", 0, 0), ("car", 3, 0), ("(car", 4, 1), ("'é (str", 7, 4), ("(f \"x\" y", 8, 7)]
        {
            assert_eq!(name_start(code, cursor), start, "{code}");
        }
    }

    #[test]
    fn incomplete_characters_wait_for_their_last_byte() {
        assert_eq!(whole_characters("aé".as_bytes()), 3);
        assert_eq!(whole_characters(&"aé".as_bytes()[..2]), 1);
        assert_eq!(whole_characters(b"a\xff"), 2);
    }
}
