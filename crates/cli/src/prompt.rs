//! The prompt. If standard input is not a terminal, its forms are evaluated and their values
//! printed, without a prompt.

use crate::boot::{BootOutput, boot_world};
use crate::editor::{Prompt, PromptHelper};
use crate::{signals, terminal};
use core::cell::RefCell;
use kyocho_lisp::syntax::datum::Span;
use kyocho_lisp::syntax::source;
use kyocho_lisp::system::{
    CLOSED_OUTPUT_EXIT, Completeness, Options, Session, System, completeness,
};
use kyocho_server::comma::{self, Typed};
use rustyline::error::ReadlineError;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::rc::Rc;

/// `kyocho` without a command.
pub(crate) fn command(options: Options) -> ExitCode {
    if std::io::stdin().is_terminal() {
        let Some(system) = boot_world(options, BootOutput::Services) else {
            return ExitCode::FAILURE;
        };
        let session = system.session();
        interact(&system, session)
    } else {
        let Some(system) = boot_world(options, BootOutput::Quiet) else { return ExitCode::FAILURE };
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
    let text = match comma::typed(&text) {
        Typed::Text(text) => text,
        Typed::Notice(notice) => {
            terminal::text(&notice);
            return ExitCode::SUCCESS;
        }
    };
    signals::end_on_signals(system);
    let mut session = system.session();
    match session.eval_and_print(&text, "standard input") {
        Ok(()) => ExitCode::from(session.exit_code().unwrap_or(0)),
        Err(report) if report.is_closed_output() => ExitCode::from(CLOSED_OUTPUT_EXIT),
        Err(report) => {
            terminal::complain(&report.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Reads, evaluates and prints until the user leaves.
pub(crate) fn interact(system: &System, session: Session) -> ExitCode {
    let handle = session.handle();
    signals::on_sigint(move || {
        handle.interrupt();
    });
    signals::end_on_sigterm(system);
    let session = Rc::new(RefCell::new(session));
    let asked = Rc::clone(&session);
    let helper = PromptHelper::new(
        move |prefix| asked.borrow().names(prefix),
        |text| matches!(completeness(text), Completeness::Incomplete),
    );
    match Prompt::new(helper) {
        Ok(mut prompt) => read_evaluate_print(&mut prompt, &session),
        Err(error) => {
            terminal::complain(&format!("kyocho: cannot use this terminal: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn read_evaluate_print(prompt: &mut Prompt, session: &Rc<RefCell<Session>>) -> ExitCode {
    loop {
        match prompt.line() {
            Ok(line) => {
                if let Some(code) = evaluate(&mut session.borrow_mut(), &line) {
                    return code;
                }
            }
            Err(ReadlineError::Interrupted) => terminal::line("; Ctrl-D leaves"),
            Err(ReadlineError::Eof) => return ExitCode::SUCCESS,
            Err(error) => {
                terminal::complain(&format!("kyocho: cannot read the terminal: {error}"));
                return ExitCode::FAILURE;
            }
        }
    }
}

/// Evaluates a line and prints its values or its error. Returns the exit code if the line ended the
/// session.
fn evaluate(session: &mut Session, line: &str) -> Option<ExitCode> {
    let text = match comma::typed(line) {
        Typed::Text(text) => text,
        Typed::Notice(notice) => {
            terminal::text(&notice);
            return None;
        }
    };
    let ended = session.eval(&text, "prompt");
    // If the terminal accepts nothing, it shows no prompt either.
    let _ = kyocho_lisp::port::end_line();
    match ended {
        Ok(evaluation) => evaluation.values.iter().for_each(|value| terminal::value(value)),
        Err(report) => terminal::report(&report.to_string()),
    }
    session.exit_code().map(ExitCode::from)
}
