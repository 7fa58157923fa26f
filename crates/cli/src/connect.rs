//! `kyocho connect`: a session in a server. This process edits the lines.
//!
//! ```text
//!   main thread: edits a line ──eval──► server          listener: shows output at once; passes the
//!        ▲                                              result of an evaluation to the main thread
//!        └───────────────answers──────────── listener ◄─ server
//! ```

use crate::{editor, signals, terminal};
use kyocho_lisp::system::{Completeness, completeness};
use kyocho_server::frames::{ClientMessage, ServerMessage, line_of};
use rustyline::error::ReadlineError;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest message of a server: the values of an evaluation.
const LINE_BYTES_MAX: u64 = 1 << 30;
const STACK_BYTES: usize = 1 << 20;

/// How to reach the server.
pub(crate) enum Server {
    /// By this socket, or by default the user's own.
    At(Option<PathBuf>),
    /// The server has started this process with the connection and a terminal.
    Handed,
}

/// `kyocho connect`.
pub(crate) fn command(server: Server) -> ExitCode {
    match connect(server) {
        Ok(code) => code,
        Err(message) => {
            terminal::complain(&format!("kyocho: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn connect(server: Server) -> Result<ExitCode, String> {
    let stream = match server {
        Server::At(socket) => knock(socket)?,
        Server::Handed => {
            take_over().map_err(|error| format!("cannot use the terminal: {error}"))?
        }
    };
    let lost = |error: io::Error| format!("the connection was lost: {error}");
    let client = Client::new(stream).map_err(lost)?;
    let Answer::Welcome(user) = client.answer().map_err(lost)? else {
        return Err("the program at this socket is not a Kyocho server of this version".to_owned());
    };
    if io::stdin().is_terminal() { interact(&client, &user) } else { evaluate_input(&client) }
        .map_err(lost)
}

fn knock(socket: Option<PathBuf>) -> Result<UnixStream, String> {
    let path = match socket {
        Some(path) => path,
        None => kyocho_server::own_socket().map_err(|error| error.to_string())?,
    };
    UnixStream::connect(&path)
        .map_err(|error| format!("{}: {error} (is `kyocho serve` running there?)", path.display()))
}

/// Takes the connection from standard input. The terminal on standard output becomes this process's
/// controlling terminal and its standard input.
fn take_over() -> io::Result<UnixStream> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(io::stdout())?;
    rustix::stdio::dup2_stdin(io::stdout())?;
    Ok(stream)
}

/// The server's answers, except output.
enum Answer {
    Welcome(String),
    Done { values: Vec<String>, error: Option<String>, exit: Option<u8> },
    Names(Vec<String>),
}

/// The connection. All clones use the same one.
#[derive(Clone)]
struct Client {
    writer: Arc<Mutex<UnixStream>>,
    answers: Arc<Mutex<Receiver<io::Result<Answer>>>>,
}

impl Client {
    fn new(stream: UnixStream) -> io::Result<Self> {
        let (sender, answers) = mpsc::channel();
        let reader = stream.try_clone()?;
        kyocho_sys::thread::start("listener", STACK_BYTES, move || listen(reader, &sender))?;
        let writer = Arc::new(Mutex::new(stream));
        Ok(Self { writer, answers: Arc::new(Mutex::new(answers)) })
    }

    fn ask(&self, ask: &ClientMessage) -> io::Result<()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line_of(ask))
    }

    fn answer(&self) -> io::Result<Answer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.recv().unwrap_or_else(|_| Err(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Evaluates a text in the session and shows the values or the error. Returns the exit code, if
    /// the text ended the session, and whether it failed.
    fn evaluate(&self, text: &str) -> io::Result<(Option<u8>, bool)> {
        self.ask(&ClientMessage::Eval { text: text.to_owned() })?;
        self.ended()
    }

    /// The same, but the server sends the values as part of the output.
    fn run(&self, text: &str) -> io::Result<(Option<u8>, bool)> {
        self.ask(&ClientMessage::Run { text: text.to_owned() })?;
        self.ended()
    }

    /// Waits for the end of the evaluation. Returns the same as [`evaluate`](Self::evaluate).
    fn ended(&self) -> io::Result<(Option<u8>, bool)> {
        loop {
            if let Answer::Done { values, error, exit } = self.answer()? {
                values.iter().for_each(|value| terminal::value(value));
                error.iter().for_each(|error| terminal::report(error));
                return Ok((exit, error.is_some()));
            }
        }
    }

    fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
        self.ask(&ClientMessage::Complete { prefix: prefix.to_owned() })?;
        loop {
            if let Answer::Names(names) = self.answer()? {
                return Ok(names);
            }
        }
    }
}

/// Shows output as it arrives, and passes on all other messages, until the connection ends.
fn listen(stream: UnixStream, answers: &Sender<io::Result<Answer>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let answer = match next(&mut reader) {
            Ok(ServerMessage::Output { text }) => {
                terminal::text(&text);
                continue;
            }
            Ok(ServerMessage::Welcome { user }) => Ok(Answer::Welcome(user)),
            Ok(ServerMessage::Done { values, error, exit }) => {
                Ok(Answer::Done { values, error, exit })
            }
            Ok(ServerMessage::Names { names }) => Ok(Answer::Names(names)),
            Ok(ServerMessage::Refused { reason }) => Err(io::Error::other(reason)),
            Err(error) => Err(error),
        };
        let is_over = answer.is_err();
        if answers.send(answer).is_err() || is_over {
            return;
        }
    }
}

fn next(reader: &mut impl BufRead) -> io::Result<ServerMessage> {
    let mut line = Vec::new();
    reader.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the server has ended the session",
        ));
    }
    serde_json::from_slice(&line).map_err(io::Error::other)
}

fn evaluate_input(client: &Client) -> io::Result<ExitCode> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let (exit, failed) = client.run(&text)?;
    Ok(ExitCode::from(exit.unwrap_or(u8::from(failed))))
}

fn interact(client: &Client, user: &str) -> io::Result<ExitCode> {
    let interrupter = client.clone();
    signals::on_sigint(move || {
        // If the interrupt cannot be sent, the connection has failed, which the main thread
        // notices.
        let _ = interrupter.ask(&ClientMessage::Interrupt {});
    });
    terminal::line(&format!("Kyocho: {user}'s session; ,help lists commands, Ctrl-D leaves"));
    let asker = client.clone();
    let helper = editor::PromptHelper::new(
        move |prefix| asker.names(prefix).unwrap_or_default(),
        |text| matches!(completeness(text), Completeness::Incomplete),
    );
    let mut editor = editor::Prompt::new(helper).map_err(io::Error::other)?;
    loop {
        terminal::fresh_line();
        match editor.line() {
            Ok(line) => {
                if let (Some(code), _) = client.evaluate(&line)? {
                    return Ok(ExitCode::from(code));
                }
            }
            Err(ReadlineError::Interrupted) => terminal::line("; Ctrl-D leaves"),
            Err(ReadlineError::Eof) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}
