//! The whole screen of a terminal, for commands with a live view.

use crate::terminal;
use core::time::Duration;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Whether there is a terminal both for output and for keys.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Takes over the screen while `show` runs. Returns the exit code of the command.
pub(crate) fn take_over(show: impl FnOnce(&mut DefaultTerminal) -> io::Result<()>) -> ExitCode {
    let mut screen = match ratatui::try_init() {
        Ok(screen) => screen,
        Err(error) => {
            terminal::complain(&format!("kyocho: cannot use this terminal: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let ended = show(&mut screen);
    ratatui::restore();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&format!("kyocho: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The next key that is pressed. `None` after `timeout`, or earlier if the size of the screen
/// changes.
///
/// # Errors
/// The terminal cannot be read.
pub(crate) fn next_key(timeout: Duration) -> io::Result<Option<KeyEvent>> {
    if !event::poll(timeout)? {
        return Ok(None);
    }
    match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Ok(Some(key)),
        _ => Ok(None),
    }
}
