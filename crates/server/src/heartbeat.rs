//! The heartbeat: evaluates a form at intervals, as a getty does, and notifies the service manager
//! after each. If evaluations no longer end, whatever the cause, no notice is sent, and the service
//! manager restarts the server.

use crate::context::Context;
use crate::evaluation::{Interrupt, evaluate};
use crate::notify;
use core::time::Duration;
use kyocho_lisp::account::{Account, Bounds};
use kyocho_lisp::port::SessionPorts;
use std::io;
use std::sync::Arc;

/// The form. It needs memory, and a thread that no other thread delays.
const QUESTION: &str = "(thread-join! (spawn (lambda () (list #t)) 'heartbeat))";

/// Starts the service, if the service manager waits for notices.
///
/// # Errors
/// The host has no memory for it.
pub(crate) fn start(context: &Arc<Context>) -> io::Result<()> {
    let Some(interval) = notify::watchdog_interval() else { return Ok(()) };
    // As `sd_watchdog_enabled` advises.
    let pause = interval / 2;
    let inner = Arc::clone(context);
    // A separate account, so that no user's limits delay the evaluation.
    let account =
        Account::new("heartbeat", Bounds { files: false, operator: false, ..Bounds::NONE });
    context.system.spawn_service("heartbeat", move || watch(&inner, &account, pause))?;
    let text = format!("notifies the service manager every {pause:?}");
    context.console.announce_service("heartbeat", &text);
    Ok(())
}

/// The service's body.
fn watch(context: &Context, account: &Arc<Account>, pause: Duration) {
    loop {
        // An error report is an answer as well: the system works, and lacks some resource.
        if let Ok(mut session) = context.system.open_session(account, silent()) {
            let _ = evaluate(&mut session, QUESTION, "heartbeat", &Interrupt::default());
        }
        notify::alive(context.console);
        kyocho_microprocess::sleep(pause);
    }
}

fn silent() -> SessionPorts {
    SessionPorts { input: None, output: Box::new(io::sink()), error: Box::new(io::sink()) }
}
