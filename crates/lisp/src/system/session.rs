//! Sessions: evaluations that follow each other in one environment.

use crate::image::WorldCopy;
use crate::report::Report;
use crate::system::boot::{self, Job, Text};
use crate::system::forms::read_all;
use crate::system::kernel::{Ended, Kernel, lock};
use crate::system::lisp_session::LispSession;
use kyocho_heap::heap::location;
use kyocho_library::port::Role;
use kyocho_syntax::environment::Environment;
use kyocho_vm::machine::condition;
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

/// What an evaluation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The values of the forms, printed; those without interest are left out.
    pub values: Vec<String>,
}

/// How an evaluation ended, on its way to [`Session::finish`].
#[derive(Debug)]
pub struct Unread(Ended);

/// What others may do to a session while it evaluates. Any kernel thread may use it.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    kernel: Arc<Kernel>,
    session: Arc<LispSession>,
}

impl SessionHandle {
    /// Stops the evaluation that is going on, and keeps the session: raises in the evaluation; `false` where none is going on.
    pub fn interrupt(&self) -> bool {
        self.session.interrupt()
    }

    /// Ends the session as a whole: all its threads, in every state; what `dynamic-wind` has them do last gets 100 ms.
    /// Waits in the kernel for them. What the session's names stood for is garbage from then on.
    pub fn end(&self) {
        self.session.end(&self.kernel);
    }
}

/// A user's session ends with its value, as [`SessionHandle::end`] tells; the process's own lasts as long as the system.
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

    /// Evaluates the forms of a text. Waits in the kernel: not for microprocesses, which [`begin`](Self::begin).
    ///
    /// # Errors
    /// The report of what nobody handled; the forms before it have been evaluated.
    pub fn eval(&mut self, text: &str, source_name: &str) -> Result<Evaluation, Report> {
        let text = Text::prompt(Arc::clone(&self.environment), read_all(text, source_name));
        self.evaluate(text)
    }

    /// Evaluates the forms of a text as [`eval`](Self::eval) does, and writes the values of each form to
    /// the session's output port, one a line, before it evaluates the next one.
    ///
    /// # Errors
    /// The report of what nobody handled; the forms before it have been evaluated.
    pub fn eval_and_print(&mut self, text: &str, source_name: &str) -> Result<(), Report> {
        let text = Text::printing(Arc::clone(&self.environment), read_all(text, source_name));
        self.evaluate(text).map(drop)
    }

    fn evaluate(&mut self, text: Text) -> Result<Evaluation, Report> {
        let ended = boot::evaluate(&self.jobs, &self.session, text);
        // Output that the host refuses was reported to the program by its ports. Ports of other users are none of this one's business.
        if self.session.id == 0 {
            let _ = kyocho_library::port::flush_of(&self.session.account);
        }
        self.outcome(ended)
    }

    /// Begins to evaluate the forms of a text, from a microprocess of the system. `on_end` is called once, by the
    /// evaluation's last step: it leaves what it gets where somebody finds it, wakes him, and must not wait. One evaluation
    /// at a time: the next may begin when `on_end` was called.
    pub fn begin(
        &self,
        text: &str,
        source_name: &str,
        on_end: impl FnOnce(Unread) + Send + 'static,
    ) {
        let text = Text::prompt(Arc::clone(&self.environment), read_all(text, source_name));
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// Begins, as [`begin`](Self::begin), to evaluate the forms of a text as
    /// [`eval_and_print`](Self::eval_and_print) does.
    pub fn begin_and_print(
        &self,
        text: &str,
        source_name: &str,
        on_end: impl FnOnce(Unread) + Send + 'static,
    ) {
        let text = Text::printing(Arc::clone(&self.environment), read_all(text, source_name));
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// Begins, as [`begin`](Self::begin), to give the session the world that an image holds.
    pub fn begin_image(&self, path: &Path, on_end: impl FnOnce(Unread) + Send + 'static) {
        let text = Text::image(&self.session, path);
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// Begins, as [`begin`](Self::begin), to copy the session's world: what an image of it would hold.
    pub fn begin_copy(&self, on_end: impl FnOnce(Unread) + Send + 'static) {
        let text = Text::none(Arc::clone(&self.environment), "%copy-world");
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// The copy that [`begin_copy`](Self::begin_copy) began.
    ///
    /// # Errors
    /// Why there is none: the name that holds what no image can keep, or no memory.
    pub fn finish_copy(&mut self, ended: Unread) -> Result<WorldCopy, Report> {
        self.finish(ended)?;
        let copy = self.session.copy();
        self.session.set_copy(None);
        copy.map(WorldCopy).ok_or_else(|| Report::internal("no copy was made"))
    }

    /// Begins, as [`begin`](Self::begin), to give the session the world of another one.
    pub fn begin_world(&self, copy: WorldCopy, on_end: impl FnOnce(Unread) + Send + 'static) {
        self.session.set_copy(Some(copy.0));
        let text = Text::none(Arc::clone(&self.environment), "%enter-world");
        self.kernel.begin(&self.session, text, Box::new(|ended| on_end(Unread(ended))));
    }

    /// Where `(save-image)` saves to from now on.
    pub fn set_image(&self, path: &Path) {
        self.session.set_image(path);
    }

    /// What an evaluation that [`begin`](Self::begin) began gave.
    ///
    /// # Errors
    /// The report of what nobody handled.
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

    /// Passes on what the session's ports still hold. Waits in the kernel until the user has taken it.
    pub fn flush_output(&self) {
        for role in [Role::Output, Role::Error] {
            self.session.port(role).flush_outside();
        }
    }

    /// The code that `exit` was called with, once it was.
    #[must_use]
    pub const fn exit_code(&self) -> Option<u8> {
        self.exit_code
    }

    /// The bound names that begin so.
    #[must_use]
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let names = self.environment.names();
        let beginning = names.into_iter().filter(|name| name.starts_with(prefix));
        beginning.map(str::to_owned).collect()
    }

    /// The parameters of each clause of the procedure that a name stands for, as they were written: `(a b . rest)`. None where it stands for
    /// something else, or for a procedure that is not written in Lisp.
    #[must_use]
    pub fn parameters_of(&self, name: &str) -> Option<Vec<String>> {
        let global = self.environment.variable(name)?;
        self.kernel.threads.as_outsider(|| condition::parameters_of(location::value(&global)))
    }

    /// What others may do to it.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        SessionHandle { kernel: Arc::clone(&self.kernel), session: Arc::clone(&self.session) }
    }
}
