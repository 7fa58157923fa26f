//! Forms that are run one after the other: a file, a text at the prompt, a datum that `eval` was given.
//!
//! ```text
//!   text ──read──► data ──expand──► top-level forms ──compile──► items ──► called one by one
//! ```
//!
//! A form is expanded when those before it have run. Expanding touches no Lisp value: whoever runs the text does it apart. Compiling makes values,
//! and pauses.

use super::kernel::{Kernel, lock};
use super::lisp_session::LispSession;
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
    /// Compiles what a form was expanded to. Keeps all that it makes.
    pub(crate) fn compile_forms(
        &self,
        mutator: &mut Mutator,
        forms: Vec<TopLevel>,
        span: Span,
    ) -> Result<Vec<Item>> {
        let compile = |form| match form {
            TopLevel::Form(core) => {
                let thunk = compiler::compile(mutator, &self.builtins, &core);
                // What is long takes its time to go.
                mutator.apart(|| drop(core));
                thunk.map(Item::Thunk).map_err(|error| error.into_raise(span))
            }
            TopLevel::Ready(name) => Ok(Item::Ready(name)),
        };
        forms.into_iter().map(compile).collect()
    }
}

/// Something to do for a form at top level.
#[derive(Debug)]
pub(crate) enum Item {
    /// Call this.
    Thunk(Value),
    /// Tell the world that this library's body has run.
    Ready(Arc<str>),
}

/// Forms that are being run one after the other: a file, a text at the prompt.
#[derive(Debug)]
pub(crate) struct Source(Mutex<SourceState>);

#[derive(Debug)]
struct SourceState {
    environment: Arc<Environment>,
    data: VecDeque<core::result::Result<Datum, SyntaxError>>,
    items: VecDeque<Item>,
    /// Whether it is the text that somebody waits for, not one that it loads or makes.
    is_main: bool,
}

/// What a text asks for next.
#[derive(Debug)]
pub(crate) enum Todo {
    /// Call this.
    Call(Value),
    /// Tell the world that this library's body has run.
    Ready(Arc<str>),
    /// Expand this, and [`put`](Source::put) what it gives.
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

/// Reads a whole text; the first error ends it.
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

    /// The same text, as the one that somebody waits for.
    pub(crate) fn into_main(self) -> Self {
        lock(&self.0).is_main = true;
        self
    }

    /// Forms that are compiled already.
    pub(crate) fn of_items(environment: Arc<Environment>, items: Vec<Item>) -> Self {
        let data = VecDeque::new();
        Self(Mutex::new(SourceState { environment, data, items: items.into(), is_main: false }))
    }

    /// Where the forms are evaluated.
    pub(crate) fn environment(&self) -> Arc<Environment> {
        Arc::clone(&lock(&self.0).environment)
    }

    /// What to do next; `None` at the end.
    pub(crate) fn next(&self, session: &LispSession) -> Result<Option<Todo>> {
        let mut state = lock(&self.0);
        match state.items.pop_front() {
            Some(Item::Thunk(thunk)) => {
                barrier::overwrite(|| thunk);
                return Ok(Some(Todo::Call(thunk)));
            }
            Some(Item::Ready(name)) => return Ok(Some(Todo::Ready(name))),
            None => {}
        }
        let Some(read) = state.data.pop_front() else { return Ok(None) };
        let form = read.map_err(Raise::syntax)?;
        if state.is_main {
            session.note_form(form.span);
        }
        Ok(Some(Todo::Expand(form)))
    }

    /// The procedure to call next, while no thread runs: at boot, and in tests.
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
                Some(Todo::Call(thunk)) => return Ok(Some(thunk)),
                Some(Todo::Ready(name)) => lock(&session.world).library_ready(&name),
                Some(Todo::Expand(form)) => {
                    let expanded = lock(&session.world).expand(&environment, &form);
                    self.put(kernel, mutator, form, expanded)?;
                }
            }
        }
    }

    /// Makes what `form` was expanded to what comes next. Where there is no memory for that, or the thread is to stop, the form does: it is asked
    /// for again.
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
                _ => m.apart(|| drop(form)),
            }
            lock(&self.0).items.extend(compiled?);
            Ok(())
        })
    }
}
