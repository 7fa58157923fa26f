//! The heartbeat: evaluates something now and then, as a getty does, and tells the service manager that it came back. A system in which
//! no evaluation ends, whatever of it hangs, is silent, and is started again.

use crate::context::Context;
use crate::evaluation::{Interrupt, evaluate};
use crate::notify;
use core::time::Duration;
use kyocho_lisp::account::{Account, Bounds};
use kyocho_lisp::port::SessionPorts;
use std::io;
use std::sync::Arc;

/// What is evaluated: needs memory, and a thread that others do not hold up.
const QUESTION: &str = "(thread-join! (spawn (lambda () (list #t)) 'heartbeat))";

/// Starts the service, where the manager waits for it.
///
/// # Errors
/// The host has no memory for it.
pub(crate) fn start(context: &Arc<Context>) -> io::Result<()> {
    let Some(patience) = notify::patience() else { return Ok(()) };
    // As `sd_watchdog_enabled` advises.
    let pause = patience / 2;
    let inner = Arc::clone(context);
    // An account of its own: no user's limits hold it up.
    let account =
        Account::new("heartbeat", Bounds { files: false, operator: false, ..Bounds::NONE });
    context.system.spawn_service("heartbeat", move || watch(&inner, &account, pause))?;
    let text = format!("tells every {pause:?} that the system answers");
    context.console.announce_service("heartbeat", &text);
    Ok(())
}

/// The service's body.
fn watch(context: &Context, account: &Arc<Account>, pause: Duration) {
    loop {
        // A report is an answer as well: of a system that works, and is short of something.
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
