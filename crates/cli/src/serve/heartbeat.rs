//! The heartbeat: evaluates something now and then, as a getty does, and tells the service manager that it came back. A system in which
//! no evaluation ends, whatever of it hangs, is silent, and is started again.

use super::evaluation::{Interrupt, evaluate};
use super::notify;
use crate::terminal;
use core::time::Duration;
use kyocho_lisp::account::{Account, Bounds};
use kyocho_lisp::port::SessionPorts;
use kyocho_lisp::system::System;
use std::io;
use std::sync::Arc;

/// What is evaluated: needs memory, and a thread that others do not hold up.
const QUESTION: &str = "(thread-join! (spawn (lambda () (list #t)) 'heartbeat))";

/// Starts the service, where the manager waits for it.
///
/// # Errors
/// The host has no memory for it.
pub(crate) fn start(system: &Arc<System>) -> io::Result<()> {
    let Some(patience) = notify::patience() else { return Ok(()) };
    // As `sd_watchdog_enabled` advises.
    let pause = patience / 2;
    let inner = Arc::clone(system);
    // An account of its own: no user's limits hold it up.
    let account =
        Account::new("heartbeat", Bounds { files: false, operator: false, ..Bounds::NONE });
    system.spawn_service("heartbeat", move || watch(&inner, &account, pause))?;
    terminal::line(&format!("{:<20} tells every {pause:?} that the system answers", "heartbeat"));
    Ok(())
}

/// The service's body.
fn watch(system: &System, account: &Arc<Account>, pause: Duration) {
    loop {
        // A report is an answer as well: of a system that works, and is short of something.
        if let Ok(mut session) = system.open_session(account, silent()) {
            let _ = evaluate(&mut session, QUESTION, "heartbeat", &Interrupt::default());
        }
        notify::alive();
        kyocho_microprocess::sleep(pause);
    }
}

fn silent() -> SessionPorts {
    SessionPorts { input: None, output: Box::new(io::sink()), error: Box::new(io::sink()) }
}
