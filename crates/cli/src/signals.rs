//! SIGINT, SIGTERM and SIGHUP. A kernel thread waits for them, so the reaction to a signal is
//! ordinary code.

use crate::terminal;
use kyocho_lisp::system::System;
use kyocho_sys::thread;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code of a program that a signal ended, less the signal's number. A convention of shells.
const SIGNAL_EXIT_BASE: i32 = 128;

const STACK_BYTES: usize = 1 << 20;

fn on_signals(signals: &[i32], mut act: impl FnMut(i32) + Send + 'static) {
    let mut signals = match Signals::new(signals) {
        Ok(signals) => signals,
        Err(error) => {
            return terminal::complain(&format!("kyocho: cannot handle signals: {error}"));
        }
    };
    let started = thread::start("signals", STACK_BYTES, move || {
        for signal in signals.forever() {
            act(signal);
        }
    });
    if let Err(error) = started {
        terminal::complain(&format!("kyocho: cannot handle signals: {error}"));
    }
}

/// For programs: on SIGINT and SIGTERM, flushes the ports and exits.
pub(crate) fn end_on_signals(system: &System) {
    let shutdown = system.shutdown_handle();
    on_signals(&[SIGINT, SIGTERM], move |signal| {
        shutdown.flush_ports();
        std::process::exit(SIGNAL_EXIT_BASE + signal);
    });
}

/// For prompts: the same on SIGTERM.
pub(crate) fn end_on_sigterm(system: &System) {
    let shutdown = system.shutdown_handle();
    on_signals(&[SIGTERM], move |signal| {
        shutdown.flush_ports();
        std::process::exit(SIGNAL_EXIT_BASE + signal);
    });
}

/// For servers: calls `reload` on SIGHUP. Returns on SIGINT and SIGTERM.
pub(crate) fn serve(mut reload: impl FnMut()) {
    match Signals::new([SIGHUP, SIGINT, SIGTERM]) {
        Ok(mut signals) => {
            for signal in signals.forever() {
                if signal != SIGHUP {
                    return;
                }
                reload();
            }
        }
        Err(error) => terminal::complain(&format!("kyocho: cannot handle signals: {error}")),
    }
}

/// For prompts: calls `interrupt` on SIGINT, which stops the evaluation and keeps the session.
pub(crate) fn on_sigint(mut interrupt: impl FnMut() + Send + 'static) {
    on_signals(&[SIGINT], move |_| interrupt());
}
