//! Sessions: consecutive evaluations in one environment.

use crate::image::WorldCopy;
use crate::kernel::session::LispSession;
use crate::kernel::{Ended, Kernel, lock};
use crate::report::Report;
use crate::system::boot::{self, Job, Text};
use crate::system::forms::read_all;
use kyocho_heap::heap::location;
use kyocho_library::port::Role;
use kyocho_syntax::environment::Environment;
use kyocho_vm::machine::procedure;
use std::path::Path;
use std::sync::{Arc, mpsc};

/// A user's session.
#[derive(Debug)]
pub struct Session {
    kernel: Arc<Kernel>,
    jobs: mpsc::Sender<Job>,
    session: Arc<LispSession>,
    environment: Arc<Environment>,
    exit_code: Option<u8>,
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The printed values of the forms, without unspecified ones.
    pub values: Vec<String>,
}

/// The result of an evaluation, to be passed to [`Session::finish`].
#[derive(Debug)]
pub struct Unread(Ended);

/// A handle for controlling a session while it evaluates, from any kernel thread.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    kernel: Arc<Kernel>,
    session: Arc<LispSession>,
}

impl SessionHandle {
    /// Stops the current evaluation by raising an exception in it; the session continues. Returns
    /// `false` if there is no evaluation.
    pub fn interrupt(&self) -> bool {
        self.session.interrupt()
    }

    /// Ends the whole session with all its threads, in any state. Their `dynamic-wind` procedures
    /// have 100 ms to run. Blocks in the kernel until the threads have ended. Afterwards the values
    /// of the session's names are garbage.
    pub fn end(&self) {
        self.session.end(&self.kernel);
    }
}

/// Dropping a user's session ends it, as [`SessionHandle::end`] does. The process's own session
/// lasts as long as the system.
impl Drop for Session {
    fn drop(&mut self) {
        if self.session.id != 0 {
            self.handle().end();
        }
    }
}

impl Session {
    pub(super) fn new(
        kernel: Arc<Kernel>,
        jobs: mpsc::Sender<Job>,
        session: Arc<LispSession>,
    ) -> Self {
        let made = || lock(&session.world).interaction_environment();
        let environment = session.restored().unwrap_or_else(made);
        session.set_interaction(&environment);
        session.begin_debugging();
        Self { kernel, jobs, session, environment, exit_code: None }
    }

    /// Evaluates the forms of a text. Blocks in the kernel, so microprocesses must use
    /// [`begin`](Self::begin) instead.
    ///
    /// # Errors
    /// The report of an unhandled exception. The forms before it have been evaluated.
    pub fn eval(&mut self, text: &str, source_name: &str) -> Result<Evaluation, Report> {
        let text = Text::prompt(Arc::clone(&self.environment), read_all(text, source_name));
        self.evaluate(text)
    }

    /// As [`eval`](Self::eval), but writes the values of each form to the session's output port,
    /// one a line, before the next form is evaluated.
    ///
    /// # Errors
    /// The report of an unhandled exception. The forms before it have been evaluated.
    pub fn eval_and_print(&mut self, text: &str, source_name: &str) -> Result<(), Report> {
        let text = Text::printing(Arc::clone(&self.environment), read_all(text, source_name));
        self.evaluate(text).map(drop)
    }

    fn evaluate(&mut self, text: Text) -> Result<Evaluation, Report> {
        let ended = boot::evaluate(&self.jobs, &self.session, text);
        // The ports have reported refused output to the program. Only ports of this account are
        // flushed.
        if self.session.id == 0 {
            let _ = kyocho_library::port::flush_of(&self.session.account);
        }
        self.outcome(ended)
    }

    /// Starts the evaluation of the forms of a text, from a microprocess of the system. `on_end` is
    /// called once, in the last step of the evaluation. It stores its argument, wakes the receiver,
    /// and must not wait. Only one evaluation at a time: the next may begin after `on_end` was
    /// called.
    pub fn begin(
        &self,
        text: &str,
        source_name: &str,
        on_end: impl FnOnce(Unread) + Send + 'static,
    ) {
        let text = Text::prompt(Arc::clone(&self.environment), read_all(text, source_name));
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// As [`begin`](Self::begin), with the output of [`eval_and_print`](Self::eval_and_print).
    pub fn begin_and_print(
        &self,
        text: &str,
        source_name: &str,
        on_end: impl FnOnce(Unread) + Send + 'static,
    ) {
        let text = Text::printing(Arc::clone(&self.environment), read_all(text, source_name));
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// As [`begin`](Self::begin), for loading an image into the session.
    pub fn begin_image(&self, path: &Path, on_end: impl FnOnce(Unread) + Send + 'static) {
        let text = Text::image(&self.session, path);
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// As [`begin`](Self::begin), for copying the session's world, as an image would save it.
    pub fn begin_copy(&self, on_end: impl FnOnce(Unread) + Send + 'static) {
        let text = Text::none(Arc::clone(&self.environment), "%copy-world");
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// The copy that [`begin_copy`](Self::begin_copy) started.
    ///
    /// # Errors
    /// Why there is none: a name refers to an object that an image cannot save, or memory is out.
    pub fn finish_copy(&mut self, ended: Unread) -> Result<WorldCopy, Report> {
        self.finish(ended)?;
        let copy = self.session.copy();
        self.session.set_copy(None);
        copy.map(WorldCopy).ok_or_else(|| Report::internal("no copy was made"))
    }

    /// As [`begin`](Self::begin), for replacing the session's world by a copy of another session's.
    pub fn begin_world(&self, copy: WorldCopy, on_end: impl FnOnce(Unread) + Send + 'static) {
        self.session.set_copy(Some(copy.0));
        let text = Text::none(Arc::clone(&self.environment), "%enter-world");
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// Sets the file that `(save-image)` writes.
    pub fn set_image(&self, path: &Path) {
        self.session.set_image(path);
    }

    /// The result of an evaluation that [`begin`](Self::begin) started.
    ///
    /// # Errors
    /// The report of an unhandled exception.
    pub fn finish(&mut self, ended: Unread) -> Result<Evaluation, Report> {
        self.outcome(ended.0)
    }

    fn outcome(&mut self, ended: Ended) -> Result<Evaluation, Report> {
        if let Some(restored) = self.session.restored() {
            self.environment = restored;
        }
        match ended {
            Ended::Values(values) => Ok(Evaluation { values }),
            Ended::Report(report) => Err(report),
            Ended::Exit(code) => {
                self.exit_code = Some(code as u8);
                Ok(Evaluation { values: Vec::new() })
            }
        }
    }

    /// Flushes the session's ports. Blocks in the kernel until the user has received the output.
    pub fn flush_output(&self) {
        for role in [Role::Output, Role::Error] {
            self.session.port(role).flush_outside();
        }
    }

    /// The argument of `exit` as an exit code, if it was called.
    #[must_use]
    pub const fn exit_code(&self) -> Option<u8> {
        self.exit_code
    }

    /// The bound names with this prefix.
    #[must_use]
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let names = self.environment.names();
        let beginning = names.into_iter().filter(|name| name.starts_with(prefix));
        beginning.map(str::to_owned).collect()
    }

    /// The parameter lists of the clauses of a procedure, as written: `(a b . rest)`. `None` if the
    /// name is not bound to a procedure written in Lisp.
    #[must_use]
    pub fn parameters_of(&self, name: &str) -> Option<Vec<String>> {
        let global = self.environment.variable(name)?;
        self.kernel.threads.as_outsider(|| procedure::parameters_of(location::value(&global)))
    }

    /// A handle for controlling the session.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle { kernel: Arc::clone(&self.kernel), session: Arc::clone(&self.session) }
    }
}
