//! Forms that are run in order: of a file, of a text at the prompt, or a datum passed to `eval`.
//!
//! ```text
//!   text ──read──► data ──expand──► top-level forms ──compile──► items ──► called one by one
//! ```
//!
//! A form is expanded after those before it have run. Expansion uses no Lisp values, so it runs
//! outside Lisp. Compilation makes values, and pauses.

use crate::kernel::session::LispSession;
use crate::kernel::{Kernel, lock};
use kyocho_heap::heap::{ForeignObject, Marker, Mutator, barrier};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::{Datum, Span};
use kyocho_syntax::environment::Environment;
use kyocho_syntax::error::SyntaxError;
use kyocho_syntax::expander::TopLevel;
use kyocho_syntax::reader::{ReadError, Reader};
use kyocho_syntax::source;
use kyocho_vm::compiler;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

impl Kernel {
    /// Compiles the expansion of a form. Keeps everything that it makes alive.
    pub(crate) fn compile_forms(
        &self,
        mutator: &mut Mutator,
        forms: Vec<TopLevel>,
        span: Span,
    ) -> Result<Vec<Item>> {
        let compile = |form| match form {
            TopLevel::Form(core) => {
                let thunk = compiler::compile(mutator, &self.builtins, &core);
                // Dropping long data takes time.
                mutator.compute_outside(|| drop(core));
                thunk.map(Item::Thunk).map_err(|error| error.into_raise(span))
            }
            TopLevel::Ready(name) => Ok(Item::Ready(name)),
        };
        forms.into_iter().map(compile).collect()
    }
}

/// An action for a top-level form.
#[derive(Debug)]
pub(crate) enum Item {
    /// Call this thunk.
    Thunk(Value),
    /// Record that this library's body has run.
    Ready(Arc<str>),
}

/// A source of forms that are being run in order.
#[derive(Debug)]
pub(crate) struct Source(Mutex<SourceState>);

#[derive(Debug)]
struct SourceState {
    environment: Arc<Environment>,
    data: VecDeque<core::result::Result<Datum, SyntaxError>>,
    items: VecDeque<Item>,
    /// Whether this is the main text of an evaluation, not one that it loads or creates.
    is_main: bool,
}

/// The next action for a text.
#[derive(Debug)]
pub(crate) enum NextAction {
    /// Call this thunk.
    Call(Value),
    /// Record that this library's body has run.
    Ready(Arc<str>),
    /// Expand this form, and pass the result to [`put`](Source::put).
    Expand(Datum),
}

impl ForeignObject for Source {
    fn trace(&self, marker: &mut Marker) {
        for item in &lock(&self.0).items {
            if let Item::Thunk(thunk) = item {
                marker.mark(*thunk);
            }
        }
    }
}

/// Reads a whole text, up to the first error.
pub(crate) fn read_all(
    text: &str,
    name: &str,
) -> VecDeque<core::result::Result<Datum, SyntaxError>> {
    let mut reader = Reader::of_text(text, source::register(name));
    let mut data = VecDeque::new();
    loop {
        match reader.read() {
            Ok(Some(datum)) => data.push_back(Ok(datum)),
            Ok(None) => return data,
            Err(ReadError::Incomplete(error) | ReadError::Wrong(error)) => {
                data.push_back(Err(error));
                return data;
            }
        }
    }
}

impl Source {
    /// The forms of a text.
    pub(crate) fn new(
        environment: Arc<Environment>,
        data: VecDeque<core::result::Result<Datum, SyntaxError>>,
    ) -> Self {
        Self(Mutex::new(SourceState { environment, data, items: VecDeque::new(), is_main: false }))
    }

    /// The same text, marked as the main text of an evaluation.
    pub(crate) fn into_main(self) -> Self {
        lock(&self.0).is_main = true;
        self
    }

    /// A source of forms that are compiled already.
    pub(crate) fn of_items(environment: Arc<Environment>, items: Vec<Item>) -> Self {
        let data = VecDeque::new();
        Self(Mutex::new(SourceState { environment, data, items: items.into(), is_main: false }))
    }

    /// The environment in which the forms are evaluated.
    pub(crate) fn environment(&self) -> Arc<Environment> {
        Arc::clone(&lock(&self.0).environment)
    }

    /// The next action; `None` at the end.
    pub(crate) fn next(&self, session: &LispSession) -> Result<Option<NextAction>> {
        let mut state = lock(&self.0);
        match state.items.pop_front() {
            Some(Item::Thunk(thunk)) => {
                barrier::overwrite(|| thunk);
                return Ok(Some(NextAction::Call(thunk)));
            }
            Some(Item::Ready(name)) => return Ok(Some(NextAction::Ready(name))),
            None => {}
        }
        let Some(read) = state.data.pop_front() else { return Ok(None) };
        let form = read.map_err(Raise::syntax)?;
        if state.is_main {
            session.note_form(form.span);
        }
        Ok(Some(NextAction::Expand(form)))
    }

    /// The next procedure to call, while no threads run: at boot, and in tests.
    pub(crate) fn next_alone(
        &self,
        kernel: &Kernel,
        session: &LispSession,
        mutator: &mut Mutator,
    ) -> Result<Option<Value>> {
        let environment = self.environment();
        loop {
            match self.next(session)? {
                None => return Ok(None),
                Some(NextAction::Call(thunk)) => return Ok(Some(thunk)),
                Some(NextAction::Ready(name)) => lock(&session.world).library_ready(&name),
                Some(NextAction::Expand(form)) => {
                    let expanded = lock(&session.world).expand(&environment, &form);
                    self.put(kernel, mutator, form, expanded)?;
                }
            }
        }
    }

    /// Compiles the expansion of `form` and puts the result first. If memory is out, or the thread
    /// must stop, `form` itself is put back and will be expanded again.
    pub(crate) fn put(
        &self,
        kernel: &Kernel,
        mutator: &mut Mutator,
        form: Datum,
        expanded: core::result::Result<Vec<TopLevel>, SyntaxError>,
    ) -> Result<()> {
        mutator.keeping(&[], |m| {
            let compiled = expanded
                .map_err(Raise::syntax)
                .and_then(|forms| kernel.compile_forms(m, forms, form.span));
            match &compiled {
                Err(raise) if raise.is_out_of_memory() || raise.is_interruption() => {
                    lock(&self.0).data.push_front(Ok(form));
                }
                _ => m.compute_outside(|| drop(form)),
            }
            lock(&self.0).items.extend(compiled?);
            Ok(())
        })
    }
}
