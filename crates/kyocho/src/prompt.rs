//! The prompt: line editing, history kept between runs, completion of bound names, input over
//! several lines. Where standard input is no terminal, the forms on it are evaluated in silence.

use crate::boot::{Voice, boot};
use crate::{signals, terminal};
use core::cell::RefCell;
use kyocho_lisp::syntax::datum::Span;
use kyocho_lisp::syntax::source;
use kyocho_lisp::system::{CLOSED_OUTPUT_EXIT, Completeness, Options, Session, System};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

const HISTORY_LINES_MAX: usize = 10_000;

/// `kyocho` without a command.
pub(crate) fn command(options: Options) -> ExitCode {
    if std::io::stdin().is_terminal() {
        let Some(system) = boot(options, Voice::Services) else { return ExitCode::FAILURE };
        let session = system.session();
        interact(&system, session)
    } else {
        let Some(system) = boot(options, Voice::Quiet) else { return ExitCode::FAILURE };
        evaluate_standard_input(&system)
    }
}

fn evaluate_standard_input(system: &System) -> ExitCode {
    let text = match source::read_stream(std::io::stdin(), "standard input", Span::default()) {
        Ok(text) => text,
        Err(error) => {
            terminal::complain(&format!("kyocho: {error}"));
            return ExitCode::FAILURE;
        }
    };
    signals::end_on_signals(system);
    let mut session = system.session();
    match session.eval(&text, "standard input") {
        Ok(_) => ExitCode::from(session.exit_code().unwrap_or(0)),
        Err(report) if report.is_closed_output() => ExitCode::from(CLOSED_OUTPUT_EXIT),
        Err(report) => {
            terminal::complain(&report.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Reads, evaluates and prints until the user leaves.
pub(crate) fn interact(system: &System, session: Session) -> ExitCode {
    signals::interrupt_on_sigint(&session);
    signals::end_on_sigterm(system);
    let session = Rc::new(RefCell::new(session));
    let mut editor = match new_editor(Rc::clone(&session)) {
        Ok(editor) => editor,
        Err(error) => {
            terminal::complain(&format!("kyocho: cannot use this terminal: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let history = history_path();
    if let Some(path) = &history {
        // A first run has no history yet.
        let _ = editor.load_history(path);
    }
    let code = read_evaluate_print(&mut editor, &session);
    if let Some(path) = &history
        && let Err(error) = editor.save_history(path)
    {
        terminal::complain(&format!("kyocho: history not kept in {}: {error}", path.display()));
    }
    code
}

type PromptEditor = Editor<PromptHelper, DefaultHistory>;

fn new_editor(session: Rc<RefCell<Session>>) -> rustyline::Result<PromptEditor> {
    let config = rustyline::Config::builder()
        .max_history_size(HISTORY_LINES_MAX)?
        .completion_type(rustyline::CompletionType::List)
        .auto_add_history(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(PromptHelper { session }));
    Ok(editor)
}

fn read_evaluate_print(editor: &mut PromptEditor, session: &Rc<RefCell<Session>>) -> ExitCode {
    loop {
        match editor.readline("> ") {
            Ok(line) => {
                if let Some(code) = evaluate(&mut session.borrow_mut(), &line) {
                    return code;
                }
            }
            Err(ReadlineError::Interrupted) => terminal::line("; Ctrl-D leaves"),
            Err(ReadlineError::Eof) => return ExitCode::SUCCESS,
            Err(error) => {
                terminal::complain(&format!("kyocho: the terminal: {error}"));
                return ExitCode::FAILURE;
            }
        }
    }
}

/// Evaluates a line and prints what came of it; the exit code, if it left the session.
fn evaluate(session: &mut Session, line: &str) -> Option<ExitCode> {
    match session.eval(line, "prompt") {
        Ok(evaluation) => evaluation.values.iter().for_each(|value| terminal::line(value)),
        Err(report) => terminal::complain(&report.to_string()),
    }
    session.exit_code().map(ExitCode::from)
}

/// `$XDG_STATE_HOME/kyocho/history`, or `~/.local/state/kyocho/history`.
fn history_path() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))?;
    let folder = state.join("kyocho");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// What the line editor asks the session.
struct PromptHelper {
    session: Rc<RefCell<Session>>,
}

/// Characters that end a Scheme identifier.
const DELIMITERS: [char; 8] = ['(', ')', '\'', '`', ',', '"', ';', '['];

impl Completer for PromptHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let start = before
            .char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace() || DELIMITERS.contains(c))
            .map_or(0, |(at, c)| at + c.len_utf8());
        let prefix = &before[start..];
        if prefix.is_empty() {
            return Ok((start, Vec::new()));
        }
        Ok((start, self.session.borrow().names(prefix)))
    }
}

impl Validator for PromptHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match self.session.borrow().completeness(context.input()) {
            Completeness::Incomplete => ValidationResult::Incomplete,
            Completeness::Complete | Completeness::Wrong(_) => ValidationResult::Valid(None),
        })
    }
}

impl Hinter for PromptHelper {
    type Hint = String;
}

impl Highlighter for PromptHelper {}

impl Helper for PromptHelper {}
