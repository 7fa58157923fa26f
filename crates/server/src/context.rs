//! What every door is given: the system, its users, and where messages go.

use crate::console::Console;
use crate::register::Register;
use kyocho_lisp::system::System;
use std::sync::Arc;

/// What all doors of a server share.
#[derive(Debug)]
pub(crate) struct Context {
    /// The system whose sessions are opened.
    pub(crate) system: Arc<System>,
    /// Who may come in, and as whom.
    pub(crate) register: Arc<Register>,
    pub(crate) console: Console,
}
