//! One evaluation after the other in a session, as a microprocess waits for it; and the interrupt that may come at any time.

use kyocho_lisp::system::{Evaluation, Report, Session, SessionHandle, Unread};
use kyocho_microprocess::{Microprocess, park};
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An interrupt for the evaluation that is about to begin.
#[derive(Debug, Default)]
pub(crate) struct Interrupt(AtomicBool);

impl Interrupt {
    /// Stops the evaluation, or the one that is about to begin where one `is_awaited`.
    pub(crate) fn raise(&self, handle: &SessionHandle, is_awaited: impl FnOnce() -> bool) {
        self.0.store(true, Ordering::SeqCst);
        if !is_awaited() || handle.interrupt() {
            self.clear();
        }
    }

    /// It was for one that is over.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Evaluates, and waits for the end.
///
/// # Errors
/// The report of what nobody handled.
pub(crate) fn evaluate(
    session: &mut Session,
    text: &str,
    source_name: &str,
    interrupt: &Interrupt,
) -> Result<Evaluation, Report> {
    let begin = |on_end| session.begin(text, source_name, on_end);
    let ended = await_end(begin, &session.handle(), interrupt);
    session.finish(ended)
}

/// Evaluates, has the session's output port told the values of each form, and waits for the end.
///
/// # Errors
/// The report of what nobody handled.
pub(crate) fn evaluate_and_print(
    session: &mut Session,
    text: &str,
    source_name: &str,
    interrupt: &Interrupt,
) -> Result<Evaluation, Report> {
    let begin = |on_end| session.begin_and_print(text, source_name, on_end);
    let ended = await_end(begin, &session.handle(), interrupt);
    session.finish(ended)
}

/// Begins something, and waits for its end.
pub(crate) fn await_end(
    begin: impl FnOnce(Box<dyn FnOnce(Unread) + Send>),
    handle: &SessionHandle,
    interrupt: &Interrupt,
) -> Unread {
    let me = Microprocess::current();
    let slot = Arc::new(Mutex::new(None));
    let filled = Arc::clone(&slot);
    begin(Box::new(move |ended| {
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        me.unpark();
    }));
    if interrupt.0.swap(false, Ordering::SeqCst) {
        handle.interrupt();
    }
    loop {
        let ended = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            return ended;
        }
        park();
    }
}
