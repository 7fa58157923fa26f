//! Progress of a long run: one line on standard error, rewritten on a terminal, or a line for each
//! tenth of the run elsewhere.

use std::io::{IsTerminal, Write, stderr};

/// The steps of a run.
#[derive(Debug)]
pub struct Progress {
    done: usize,
    all: usize,
    on_terminal: bool,
}

impl Progress {
    /// Nothing of `all` steps is done.
    pub fn new(all: usize) -> Self {
        Self { done: 0, all, on_terminal: stderr().is_terminal() }
    }

    /// Starts the next step, described by `what`.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        let (done, all) = (self.done, self.all);
        if self.on_terminal {
            const WIDTH: usize = 30;
            let bar = "#".repeat(WIDTH * done / all);
            eprint!("\r\x1b[K[{bar:<WIDTH$}] {done}/{all} {what}");
            // A failure to show progress does not end the run.
            drop(stderr().flush());
        } else if done * 10 / all > (done - 1) * 10 / all {
            eprintln!("bench: {done}/{all} {what}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.on_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
