//! Line editing: history kept between runs, completion of bound names, forms over several lines.
//! The caller supplies the names, and decides whether a form is complete.

use crate::{highlight, terminal};
use core::cell::Cell;
use kyocho_server::names::is_delimiter;
use kyocho_server::state;
use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, Context, Editor, Helper};
use std::borrow::Cow;
use std::path::PathBuf;

const HISTORY_LINES_MAX: usize = 10_000;

/// A prompt at a terminal.
pub(crate) struct Prompt {
    editor: Editor<PromptHelper, DefaultHistory>,
    history: Option<PathBuf>,
}

impl Prompt {
    /// A prompt with the history of earlier runs.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub(crate) fn new(helper: PromptHelper) -> rustyline::Result<Self> {
        let has_colours = terminal::has_colours(&std::io::stdout());
        let config = rustyline::Config::builder()
            .max_history_size(HISTORY_LINES_MAX)?
            .completion_type(rustyline::CompletionType::List)
            .auto_add_history(true)
            .color_mode(if has_colours { ColorMode::Enabled } else { ColorMode::Disabled })
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(helper));
        let history = history_path();
        if let Some(path) = &history {
            // A first run has no history yet.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    /// Reads one or more complete forms.
    ///
    /// # Errors
    /// The user leaves, or the terminal fails.
    pub(crate) fn line(&mut self) -> rustyline::Result<String> {
        let line = self.editor.readline("> ")?;
        self.keep_history();
        Ok(line)
    }

    /// Appends to the file after each line: a terminal may disappear at any time, and other prompts
    /// write to the same file.
    fn keep_history(&mut self) {
        if let Some(path) = &self.history
            && let Err(error) = self.editor.append_history(path)
        {
            terminal::complain(&format!(
                "kyocho: cannot save the history in {}: {error}",
                path.display()
            ));
            // Reported only once.
            self.history = None;
        }
    }
}

/// `$KYOCHO_HISTORY`, or the file `history` in the state folder.
fn history_path() -> Option<PathBuf> {
    let named = std::env::var_os("KYOCHO_HISTORY").map(PathBuf::from);
    named.or_else(|| Some(state::folder()?.join("history")))
}

/// Returns the names that begin with a text.
type Names = dyn Fn(&str) -> Vec<String>;

/// What the line editor calls.
pub(crate) struct PromptHelper {
    names: Box<Names>,
    is_incomplete: Box<dyn Fn(&str) -> bool>,
    /// The line has been entered, so no parenthesis is at a cursor any more.
    is_entered: Cell<bool>,
}

impl PromptHelper {
    /// `names` returns the bound names that begin with a text. `is_incomplete` returns whether more
    /// text may complete the form.
    pub(crate) fn new(
        names: impl Fn(&str) -> Vec<String> + 'static,
        is_incomplete: impl Fn(&str) -> bool + 'static,
    ) -> Self {
        let (names, is_incomplete) = (Box::new(names), Box::new(is_incomplete));
        Self { names, is_incomplete, is_entered: Cell::new(false) }
    }
}

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
            .find(|&(_, c)| is_delimiter(c))
            .map_or(0, |(at, c)| at + c.len_utf8());
        let prefix = &before[start..];
        if prefix.is_empty() {
            return Ok((start, Vec::new()));
        }
        Ok((start, (self.names)(prefix)))
    }
}

impl Validator for PromptHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if (self.is_incomplete)(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Hinter for PromptHelper {
    type Hint = String;
}

/// Called at each key. Where it answers yes, the whole line is drawn again.
impl Highlighter for PromptHelper {
    fn highlight<'l>(&self, line: &'l str, cursor: usize) -> Cow<'l, str> {
        highlight::scheme(line, (!self.is_entered.get()).then_some(cursor)).into()
    }

    fn highlight_char(&self, line: &str, cursor: usize, kind: CmdKind) -> bool {
        self.is_entered.set(kind == CmdKind::ForcedRefresh);
        match kind {
            // The editor itself redraws a line whose highlighted pair has to be removed.
            CmdKind::MoveCursor => highlight::has_pair_at(line, cursor),
            CmdKind::ForcedRefresh | CmdKind::Other => highlight::is_short(line),
        }
    }
}

impl Helper for PromptHelper {}
