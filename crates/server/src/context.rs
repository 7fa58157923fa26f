//! The state that all doors of a server share: the system, its users, and the console for messages.

use crate::console::Console;
use crate::register::Register;
use kyocho_lisp::system::System;
use std::sync::Arc;

/// The state that all doors of a server share.
#[derive(Debug)]
pub(crate) struct Context {
    /// The system in which sessions are opened.
    pub(crate) system: Arc<System>,
    /// The users who may connect, and their accounts.
    pub(crate) register: Arc<Register>,
    pub(crate) console: Console,
}
