//! The whole screen of a terminal, for commands that show something live.

use crate::terminal;
use core::time::Duration;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Whether there is a terminal to show something on, and to read keys from.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Takes the screen over while `show` runs; the exit code of the command.
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

/// The next key that is pressed. `None` after `timeout`, and earlier when the screen has another
/// size.
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
