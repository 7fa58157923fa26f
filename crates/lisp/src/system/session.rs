//! Sessions: evaluations that follow each other in one environment.

use crate::report::Report;
use crate::syntax::environment::Environment;
use crate::syntax::error::SyntaxError;
use crate::syntax::reader::{ReadError, Reader};
use crate::syntax::source;
use crate::system::boot::{self, Evaluate};
use crate::system::kernel::{Ended, Kernel, lock, read_all};
use crate::thread::lisp_thread::REQUEST_INTERRUPT;
use std::sync::{Arc, mpsc};

/// A user's session.
#[derive(Debug)]
pub struct Session {
    kernel: Arc<Kernel>,
    requests: mpsc::Sender<Evaluate>,
    environment: Arc<Environment>,
    exit_code: Option<u8>,
}

/// What an evaluation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The values of the forms, printed; those without interest are left out.
    pub values: Vec<String>,
}

/// Whether a text is a number of whole forms.
#[derive(Debug)]
pub enum Completeness {
    /// It is.
    Complete,
    /// More text may complete it.
    Incomplete,
    /// No text can.
    Wrong(SyntaxError),
}

/// Stops the evaluation that is going on, and keeps the session. Any kernel thread may use it.
#[derive(Clone, Debug)]
pub struct Interrupt {
    kernel: Arc<Kernel>,
}

impl Interrupt {
    /// Raises in the evaluation; does nothing where none is going on.
    pub fn interrupt(&self) {
        let main = lock(&self.kernel.main).clone();
        if let Some(main) = main {
            main.request(&self.kernel, REQUEST_INTERRUPT);
        }
    }
}

impl Session {
    pub(super) fn new(kernel: Arc<Kernel>, requests: mpsc::Sender<Evaluate>) -> Self {
        let environment = lock(&kernel.world).interaction_environment();
        kernel.set_interaction(&environment);
        Self { kernel, requests, environment, exit_code: None }
    }

    /// Evaluates the forms of a text.
    ///
    /// # Errors
    /// The report of what nobody handled; the forms before it have been evaluated.
    pub fn eval(&mut self, text: &str, source_name: &str) -> Result<Evaluation, Report> {
        let data = read_all(text, source_name);
        let environment = Arc::clone(&self.environment);
        let ended = boot::evaluate(&self.requests, Evaluate::text(environment, data));
        // Output that the host refuses was reported to the program by its ports.
        let _ = crate::port::flush_all();
        match ended {
            Ended::Values(values) => Ok(Evaluation { values }),
            Ended::Report(report) => Err(report),
            Ended::Exit(code) => {
                self.exit_code = Some(code as u8);
                Ok(Evaluation { values: Vec::new() })
            }
        }
    }

    /// The code that `exit` was called with, once it was.
    #[must_use]
    pub const fn exit_code(&self) -> Option<u8> {
        self.exit_code
    }

    /// Whether a text can be evaluated as it is.
    #[must_use]
    pub fn completeness(&self, text: &str) -> Completeness {
        let mut reader = Reader::of_text(text, source::register("prompt"));
        loop {
            match reader.read() {
                Ok(Some(_)) => {}
                Ok(None) => return Completeness::Complete,
                Err(ReadError::Incomplete(_)) => return Completeness::Incomplete,
                Err(ReadError::Wrong(error)) => return Completeness::Wrong(error),
            }
        }
    }

    /// The bound names that begin so.
    #[must_use]
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let names = self.environment.names();
        let beginning = names.into_iter().filter(|name| name.starts_with(prefix));
        beginning.map(str::to_owned).collect()
    }

    /// What stops this session's evaluations.
    #[must_use]
    pub fn interrupt_handle(&self) -> Interrupt {
        Interrupt { kernel: Arc::clone(&self.kernel) }
    }
}
