//! `kyocho top`: a live view of the microprocesses of the user's Kyocho processes.
//!
//! ```text
//!   keys ──► Model::press ──► Command ──► orders       snapshots ──► Model::observe ──► view::draw
//! ```
//!
//! The model is pure. This file asks the processes once a second, and after each order.

mod model;
mod view;

use crate::{order, ps, screen, terminal};
use core::time::Duration;
use kyocho_microprocess::Deadline;
use kyocho_microprocess::control::Snapshot;
use kyocho_microprocess::control::client;
use model::{Command, Model};
use ratatui::DefaultTerminal;
use std::io;
use std::process::ExitCode;

/// Time between two snapshots.
const REFRESH: Duration = Duration::from_secs(1);

pub(crate) fn command() -> ExitCode {
    if !screen::is_there() {
        terminal::complain("kyocho: top needs a terminal; `kyocho ps --json` does not");
        return ExitCode::from(2);
    }
    screen::take_over(watch)
}

/// Shows snapshots and executes commands until the user leaves.
fn watch(screen: &mut DefaultTerminal) -> io::Result<()> {
    let mut model = Model::default();
    let mut due_ns = 0;
    loop {
        let now_ns = Deadline::now().ns();
        if now_ns >= due_ns {
            model.observe(look()?, now_ns);
            due_ns = now_ns + REFRESH.as_nanos() as u64;
        }
        screen.draw(|frame| view::draw(frame, &mut model))?;
        let timeout = Duration::from_nanos(due_ns.saturating_sub(Deadline::now().ns()));
        let Some(key) = screen::next_key(timeout)? else { continue };
        match model.press(key.code, key.modifiers) {
            Command::Nothing => {}
            Command::Leave => return Ok(()),
            Command::Order(target, request) => {
                model.show_message(match order::give(target, &request) {
                    Ok(()) => format!("{target}: done"),
                    Err(error) => format!("{target}: {error}"),
                });
                due_ns = 0;
            }
        }
    }
}

/// Snapshots of all Kyocho processes of the user.
fn look() -> io::Result<Vec<Snapshot>> {
    let mut found = Vec::new();
    for process in client::processes()? {
        // A process that cannot be reached is left out.
        if let Ok(Some(snapshot)) = ps::snapshot_of(process) {
            found.push(snapshot);
        }
    }
    Ok(found)
}
