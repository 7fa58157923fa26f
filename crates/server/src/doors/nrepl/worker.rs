//! Serves the requests of one nREPL session, on a microprocess of its own.

use super::answers::{Answers, Heading};
use super::bencode::Bencode;
use super::request::Request;
use super::session::{InitialWorld, NAMESPACE, Order, State};
use crate::evaluation::{Interrupt, await_end, evaluate};
use kyocho_lisp::system::{Report, Session, WorldCopy};
use kyocho_microprocess::channel::Receiver;
use kyocho_sys::prim::atomic::Ordering;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Most names that a completion lists.
const NAMES_MAX: usize = 500;

/// Serves the requests of one session, one after the other.
pub(super) struct Worker {
    session: Session,
    answers: Answers,
    state: Arc<State>,
    failed: Option<Report>,
}

impl Worker {
    pub(super) fn new(session: Session, answers: Answers, state: Arc<State>) -> Self {
        Self { session, answers, state, failed: None }
    }

    /// Receives the world to begin with, and answers the request `clone`.
    ///
    /// # Errors
    /// There is no world, which the answer has reported, or the client has disconnected.
    pub(super) fn begin(&mut self, initial: InitialWorld, name: &str) -> io::Result<()> {
        let InitialWorld::CopyOf(copy, heading) = initial else { return Ok(()) };
        let copy = copy.recv().unwrap_or_else(|_| Err("the session has ended".to_owned()));
        let begun = copy.and_then(|copy| {
            let begin = |on_end| self.session.begin_world(copy, on_end);
            let ended = await_end(begin, &self.session.handle(), &Interrupt::default());
            self.session.finish(ended).map_err(|report| report.message().to_owned())
        });
        match begun {
            Ok(_) => self.answers.done(&heading, [("new-session", name.into())], &[]),
            Err(reason) => {
                self.state.is_over.store(true, Ordering::Release);
                self.answers.done(&heading, [("err", reason.into())], &["error"])?;
                Err(io::ErrorKind::NotFound.into())
            }
        }
    }

    /// A copy of the session's world, or why it cannot be copied.
    fn copy(&mut self) -> Result<WorldCopy, String> {
        let begin = |on_end| self.session.begin_copy(on_end);
        let ended = await_end(begin, &self.session.handle(), &Interrupt::default());
        self.session.finish_copy(ended).map_err(|report| report.message().to_owned())
    }

    pub(super) fn run(&mut self, orders: &Receiver<Order>) -> io::Result<()> {
        for order in orders.iter() {
            let request = match order {
                Order::Serve(request) => request,
                Order::Copy(to) => {
                    // The receiver's connection may have ended.
                    let _ = to.send(self.copy());
                    continue;
                }
            };
            let heading = request.heading();
            self.state.interrupt.clear();
            *self.state.lock() = Some(heading.clone());
            let served = self.serve(&heading, &request);
            *self.state.lock() = None;
            served?;
            if self.session.exit_code().is_some() {
                break;
            }
        }
        Ok(())
    }

    fn serve(&mut self, heading: &Heading, request: &Request) -> io::Result<()> {
        let text = |key| request.text(key);
        match text("op") {
            Some("eval") => match text("code") {
                Some(code) => self.evaluate(heading, code, text("file").unwrap_or("nrepl")),
                None => self.answers.done(heading, [], &["error", "no-code"]),
            },
            Some("load-file") => match text("file") {
                Some(code) => {
                    let name = text("file-path").or(text("file-name")).unwrap_or("nrepl");
                    self.evaluate(heading, code, name)
                }
                None => self.answers.done(heading, [], &["error", "no-file"]),
            },
            Some("completions" | "complete") => {
                self.complete(heading, text("prefix").or(text("symbol")).unwrap_or(""))
            }
            Some("lookup" | "info") => self.look_up(heading, text("sym").or(text("symbol"))),
            _ => self.send_failure(heading),
        }
    }

    fn evaluate(&mut self, heading: &Heading, code: &str, source: &str) -> io::Result<()> {
        let result = evaluate(&mut self.session, code, source, &self.state.interrupt);
        self.session.flush_output();
        if self.session.exit_code().is_some() {
            // Set before the answer is sent, so a client that has the answer no longer finds the
            // session.
            self.state.is_over.store(true, Ordering::Release);
        }
        match result {
            Ok(evaluation) => {
                for value in evaluation.values {
                    self.answers
                        .send(heading, [("value", value.into()), ("ns", NAMESPACE.into())])?;
                }
                self.answers.done(heading, [], &[])
            }
            Err(report) => {
                let text = format!("{report}\n");
                self.answers.send(heading, [("err", text.into())])?;
                let class = || Bencode::from(report.message());
                let status = match report.message() {
                    "interrupted" => "interrupted",
                    _ => "eval-error",
                };
                let entries = [("ex", class()), ("root-ex", class())];
                self.failed = Some(report);
                self.answers.done(heading, entries, &[status])
            }
        }
    }

    fn complete(&self, heading: &Heading, prefix: &str) -> io::Result<()> {
        let names = self.session.names(prefix).into_iter().take(NAMES_MAX);
        let candidate = |name: String| {
            let kind = ("type", "var".into());
            Bencode::dictionary([("candidate", name.into()), ("ns", NAMESPACE.into()), kind])
        };
        let candidates = Bencode::List(names.map(candidate).collect());
        self.answers.done(heading, [("completions", candidates)], &[])
    }

    /// Sends the value of a name, printed. Only the name is evaluated.
    fn look_up(&mut self, heading: &Heading, name: Option<&str>) -> io::Result<()> {
        let known = name.filter(|name| self.session.names(name).iter().any(|known| known == name));
        let Some(name) = known else {
            let none = Bencode::Dictionary(BTreeMap::new());
            return self.answers.done(heading, [("info", none)], &["no-info"]);
        };
        let value = evaluate(&mut self.session, name, "nrepl", &self.state.interrupt);
        let meaning = match value {
            Ok(evaluation) => evaluation.values.join(" "),
            // The name is a keyword of the syntax.
            Err(report) => report.message().to_owned(),
        };
        let parameters = self.session.parameters_of(name).map(|lists| {
            [
                ("arglists", format!("({})", lists.join(" ")).into()),
                ("arglists-str", lists.join("\n").into()),
            ]
        });
        let info = [("name", name.into()), ("ns", NAMESPACE.into()), ("doc", meaning.into())];
        let info = Bencode::dictionary(info.into_iter().chain(parameters.into_iter().flatten()));
        self.answers.done(heading, [("info", info)], &[])
    }

    /// Sends the stack of the evaluation that failed last.
    fn send_failure(&self, heading: &Heading) -> io::Result<()> {
        let Some(report) = &self.failed else {
            return self.answers.done(heading, [], &["no-error"]);
        };
        let frames = report.callers().iter().map(|caller| frame(caller));
        let message = Bencode::from(report.message());
        let entries = [
            ("class", "error".into()),
            ("message", message),
            ("stacktrace", Bencode::List(frames.collect())),
        ];
        self.answers.done(heading, entries, &[])
    }
}

/// Splits a line of a report, `in NAME at FILE:LINE:COLUMN`, into its parts.
fn frame(caller: &str) -> Bencode {
    let caller = caller.strip_prefix("in ").unwrap_or(caller);
    let (name, place) = caller.split_once(" at ").unwrap_or((caller, ""));
    let mut parts = place.rsplitn(3, ':');
    let (_column, line) = (parts.next(), parts.next().and_then(|line| line.parse().ok()));
    let file = parts.next().unwrap_or(place);
    Bencode::dictionary([
        ("name", name.into()),
        ("file", file.into()),
        ("line", Bencode::Integer(line.unwrap_or(0))),
    ])
}
