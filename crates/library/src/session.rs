//! The session of the calling thread, as the procedures of the library see it.
//!
//! The heap's [`Host`](kyocho_heap::heap::context::Host) returns the thread, but does not know the
//! type of its session. The system that runs threads keeps a [`Surroundings`] for each session.
//! [`Caller::session`] returns it. Without a host, as in tests, everything is permitted and there
//! are no requests.

mod forbidden_addresses;
mod variables;

pub use forbidden_addresses::ForbiddenAddresses;
pub use variables::{Full, Variables};

use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::context::Caller;
use std::sync::Arc;

/// The state of a session that the library uses.
#[derive(Debug)]
pub struct Surroundings {
    /// Environment variables as the session sees them.
    pub variables: Variables,
    /// The addresses that no session may connect to. All sessions share this.
    pub forbidden_addresses: Arc<ForbiddenAddresses>,
    /// Whether the session is the process's own. It may change state that all sessions share.
    pub is_of_process: bool,
}

/// The surroundings of a caller.
fn surroundings(caller: &dyn Caller) -> Option<&Surroundings> {
    caller.session().downcast_ref()
}

/// Calls `act` with the surroundings of the calling thread. `None` if it has no session.
pub(crate) fn with<T>(context: &ThreadContext, act: impl FnOnce(Option<&Surroundings>) -> T) -> T {
    let caller = context.caller();
    act(caller.as_deref().and_then(surroundings))
}

/// Whether there is a request for the thread. A wait in the kernel then gives up.
pub(crate) fn has_request(context: &ThreadContext) -> bool {
    context.caller().is_some_and(|caller| caller.has_request())
}

/// As [`has_request`], as a function that may be called while the thread is outside Lisp.
pub(crate) fn request_check(context: &ThreadContext) -> impl Fn() -> bool + use<> {
    let caller = context.caller();
    move || caller.as_ref().is_some_and(|caller| caller.has_request())
}
