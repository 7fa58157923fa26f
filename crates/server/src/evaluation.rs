//! Evaluates the texts of a session one after the other, as a microprocess that waits; and
//! interrupts, which may arrive at any time.

use kyocho_lisp::system::{Evaluation, Report, Session, SessionHandle, Unread};
use kyocho_microprocess::{Microprocess, park};
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An interrupt for an evaluation that is about to begin.
#[derive(Debug, Default)]
pub(crate) struct Interrupt(AtomicBool);

impl Interrupt {
    /// Stops the running evaluation. If none runs and one `is_awaited`, stops that one when it
    /// begins.
    pub(crate) fn raise(&self, handle: &SessionHandle, is_awaited: impl FnOnce() -> bool) {
        self.0.store(true, Ordering::SeqCst);
        if !is_awaited() || handle.interrupt() {
            self.clear();
        }
    }

    /// Discards an interrupt whose evaluation is over.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Evaluates the text, and waits for the end.
///
/// # Errors
/// The report of an error that was not handled.
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

/// Evaluates the text, writes the values of each form to the session's output port, and waits for
/// the end.
///
/// # Errors
/// The report of an error that was not handled.
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

/// Begins an evaluation, and waits for its end.
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
