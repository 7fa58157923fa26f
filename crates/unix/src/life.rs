//! The life of an instance: serving, signals, limits, and its end with its first process.
//!
//! ```text
//!   receiver ── a microprocess a call ──►  Server::serve
//!   signals  ── TERM, HUP sent to the command ──► the first process
//!   limit    ── processor time used up ──► ends the first process
//!   follow   ◄── the warden's news: stopped, ended, all gone
//! ```

use crate::cpu::{Account, LOOK_EVERY};
use crate::instance::{Options, StartError};
use crate::processes;
use crate::server::Server;
use crate::trace::Trace;
use crate::warden::{News, Outcome, Started, Warden};
use core::time::Duration;
use kyocho_microprocess::Builder;
use kyocho_microprocess::io::descriptor;
use kyocho_microprocess::signals::{self, Signal, Signals};
use kyocho_sys::error::Errno;
use kyocho_sys::poll::Interest;
use kyocho_sys::seccomp::Listener;
use kyocho_sys::signal::{Delivery, set_delivery};
use kyocho_sys::task::ThreadId;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;

/// What keys of a terminal stop is for the first process to decide: the server stops when that one did.
pub(crate) fn leave_stopping_to_the_program() {
    for signal in [Signal::TSTP, Signal::TTIN, Signal::TTOU] {
        // Threads that the runtime starts inherit it. Failing, the server would stop too early at worst.
        let _ = set_delivery(signal, Delivery::Block);
    }
}

/// Serves until the first process ends, and the others with it.
pub(crate) fn serve(
    server: Arc<Server>,
    started: Started,
    options: &Options,
) -> Result<Outcome, StartError> {
    let Started { warden, process, listener } = started;
    let listener = Arc::new(listener);
    let ended = Arc::clone(&server);
    let cpu_max = options.cpu_max;
    let outcome = kyocho_microprocess::run(move || {
        let receiver = Arc::clone(&listener);
        // Before the program begins, which is when its launcher is answered.
        let signals = signals::channel([Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP]);
        drop(kyocho_microprocess::spawn(move || pass_signals(process, signals.ok())));
        let receiving = Arc::clone(&server);
        drop(kyocho_microprocess::spawn(move || receive(&receiving, &receiver)));
        if let Some(cpu_max) = cpu_max {
            let (server, warden) = (Arc::clone(&server), warden.process());
            drop(kyocho_microprocess::spawn(move || limit(&server, warden, process, cpu_max)));
        }
        let outcome = follow(&server, &warden, process);
        if outcome.is_none() {
            processes::end_descendants();
        }
        warden.bury();
        outcome
    });
    let summary = ended.trace.as_ref().map(Trace::summary).unwrap_or_default();
    let missing = ended.missing_line().filter(|_| options.name_missing || options.trace);
    complain(&(summary + &missing.unwrap_or_default()));
    let outcome = outcome.expect("a microprocess that waits for a process is no deadlock");
    outcome.ok_or(StartError::Lost)
}

/// Ends the first process, and thus all, once the instance has used up `cpu_max`.
fn limit(server: &Server, warden: u32, process: u32, cpu_max: Duration) {
    let mut account = Account::default();
    while account.look(warden) <= cpu_max {
        kyocho_microprocess::sleep(LOOK_EVERY);
    }
    server.admission.close();
    let seconds = cpu_max.as_secs_f64();
    complain(&format!(
        "kyocho unix: {seconds} s of processor time are used up; what ran is ended\n"
    ));
    // Where it has ended, the warden is ending the others.
    let _ = processes::send(process, libc::SIGKILL);
}

/// Standard error that is closed leaves nobody to tell.
fn complain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Hears of the first process until all have ended: how it ended, unless the warden did before.
fn follow(server: &Server, warden: &Warden, process: u32) -> Option<Outcome> {
    let mut outcome = None;
    while let Some(news) = warden.hear() {
        match news {
            News::Stopped => stop_with(process),
            News::Ended(how) => {
                server.admission.close();
                outcome = Some(how);
            }
            News::Started(_) | News::Failed(_) => {}
        }
    }
    outcome
}

/// Stops the server where its first process has stopped, as a shell outside expects of a job; and lets that one go on when the server does.
fn stop_with(process: u32) {
    if !processes::is_stopped(process) {
        return;
    }
    // To this kernel thread, which therefore stands still before the next line. It cannot fail, and if it did, nothing would have stopped.
    let _ = kyocho_sys::signal::send(ThreadId::current(), Signal::STOP);
    if processes::is_stopped(process) {
        let _ = processes::send(process, libc::SIGCONT);
    }
}

/// Receives requests, a microprocess each, while there are clients.
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
                    // No stack for one more. A caller that is gone by now needs no answer.
                    let _ = listener.answer(asked.id, Err(Errno::NOMEM));
                }
            }
            Err(_) if listener.is_abandoned() => return,
            // The caller died between asking and being heard.
            Err(_) => {}
        }
    }
}

/// Passes on what is sent to us and meant for the program. What a terminal sends goes to its whole foreground group: the program has it
/// already, and we outlive it.
fn pass_signals(process: u32, signals: Option<Signals>) {
    let Some(signals) = signals else { return };
    while let Ok(signal) = signals.recv() {
        if signal == Signal::TERM || signal == Signal::HUP {
            // One that ended meanwhile needs no signal.
            let _ = processes::send(process, signal.number());
        }
    }
}
