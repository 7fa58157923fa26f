//! The server's process: serving calls, enforcing the processor-time limit, and ending with the
//! first process.
//!
//! ```text
//!   receive   a microprocess for each call: `Server::serve`
//!   end_with  when the front has ended, ends the first process
//!   limit     when the processor time is used up, ends the first process
//!   follow    passes the warden's reports (stopped, ended, all gone) to the front
//! ```

use crate::clients::cpu::{Account, LOOK_EVERY};
use crate::clients::tree;
use crate::errors::host;
use crate::life::report::{Report, complain};
use crate::life::warden::{Started, Warden};
use crate::options::{Options, Outcome};
use crate::server::Server;
use crate::state::trace::Trace;
use core::convert::Infallible;
use core::time::Duration;
use kyocho_microprocess::io::descriptor;
use kyocho_microprocess::{Builder, Reflection, Runtime};
use kyocho_sys::error::Errno;
use kyocho_sys::poll::Interest;
use kyocho_sys::seccomp::Listener;
use kyocho_sys::signal::{Delivery, Signal, set_delivery};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Leaves the process group that a terminal signals, and blocks signals that are meant for the
/// front and the first process.
///
/// # Errors
/// The host's.
pub(crate) fn step_aside() -> Result<(), Errno> {
    // The runtime's threads inherit the mask. `TTOU`: the server writes to the terminal from a
    // background group, and must not be stopped. The others are sent to every process of a service
    // that is to end, and the program must get time to handle them.
    for signal in [
        Signal::TTOU,
        Signal::TERM,
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
    ] {
        set_delivery(signal, Delivery::Block)?;
    }
    rustix::process::setpgid(None, None).map_err(host)
}

/// Serves until the first process ends, and the others with it. Then calls `last` with the report
/// for the front, and exits. The runtime is not stopped, because the host ends its kernel threads
/// at once.
pub(crate) fn serve(
    server: Arc<Server>,
    started: Started,
    options: &Options,
    front: &Arc<OwnedFd>,
    last: impl FnOnce(Report) + Send,
) -> ! {
    let Started { warden, process, listener } = started;
    let listener = Arc::new(listener);
    let front = Arc::clone(front);
    let (cpu_max, names_missing) = (options.cpu_max, options.name_missing || options.trace);
    // No microprocess here is more urgent than the others.
    let runtime = Runtime::builder().reflection(Reflection::Off).build();
    let never = runtime.run(move || -> Infallible {
        let (receiving, hearing) = (Arc::clone(&server), Arc::clone(&server));
        drop(kyocho_microprocess::spawn(move || receive(&receiving, &listener)));
        let channel = Arc::clone(&front);
        drop(kyocho_microprocess::spawn(move || end_with(&hearing, channel.as_fd(), process)));
        if let Some(cpu_max) = cpu_max {
            let (server, warden) = (Arc::clone(&server), warden.process());
            drop(kyocho_microprocess::spawn(move || limit(&server, warden, process, cpu_max)));
        }
        // From now on the front passes signals to it.
        let _ = Report::Started(process).send(front.as_fd(), &[]);
        let outcome = follow(&server, &warden, front.as_fd());
        if outcome.is_none() {
            tree::end_descendants();
        }
        warden.reap();
        let summary = server.trace.as_ref().map(Trace::summary).unwrap_or_default();
        let missing = server.missing_line().filter(|_| names_missing);
        complain(&(summary + &missing.unwrap_or_default()));
        last(outcome.map_or(Report::Lost, Report::Ended));
        std::process::exit(0)
    });
    match never.expect("a microprocess that waits for a process is no deadlock") {}
}

/// Ends the first process, and thus everything, when the front has ended.
fn end_with(server: &Server, front: BorrowedFd<'_>, process: u32) {
    while descriptor::ready(front, Interest::Read, None).is_err() {}
    // The front never sends. If the channel is readable, the front has ended.
    server.admission.close();
    // If it has ended already, the warden is ending the others.
    let _ = tree::send(process, libc::SIGKILL);
}

/// Ends the first process, and thus everything, once the instance has used up `cpu_max`.
fn limit(server: &Server, warden: u32, process: u32, cpu_max: Duration) {
    let mut account = Account::default();
    while account.look(warden) <= cpu_max {
        kyocho_microprocess::sleep(LOOK_EVERY);
    }
    server.admission.close();
    let seconds = cpu_max.as_secs_f64();
    complain(&format!(
        "kyocho unix: {seconds} s of processor time are used up; the programs were ended\n"
    ));
    // If it has ended already, the warden is ending the others.
    let _ = tree::send(process, libc::SIGKILL);
}

/// Passes reports until all processes have ended. Returns how the first one ended, or `None` if the
/// warden ended before.
fn follow(server: &Server, warden: &Warden, front: BorrowedFd<'_>) -> Option<Outcome> {
    let mut outcome = None;
    while let Some(report) = warden.receive() {
        match report {
            // A front that has ended receives nothing.
            Report::Stopped => drop(report.send(front, &[])),
            Report::Ended(how) => {
                server.admission.close();
                outcome = Some(how);
            }
            Report::Started(_) | Report::Failed(_) | Report::Lost => {}
        }
    }
    outcome
}

/// Receives calls while there are clients, and starts a microprocess for each.
fn receive(server: &Arc<Server>, listener: &Arc<Listener>) {
    loop {
        if descriptor::ready(listener.as_fd(), Interest::Read, None).is_err() {
            continue;
        }
        match listener.receive() {
            Ok(asked) => {
                let (server, answers) = (Arc::clone(server), Arc::clone(listener));
                let serving = Builder::new().spawn(move || server.serve(&answers, asked));
                if serving.is_err() {
                    // There is no stack for another microprocess. A caller that is gone needs no
                    // answer.
                    let _ = listener.answer(asked.id, Err(Errno::NOMEM));
                }
            }
            Err(_) if listener.is_abandoned() => return,
            // The caller died before its call was received.
            Err(_) => {}
        }
    }
}
