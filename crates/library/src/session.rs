//! What the procedures of the library find around them: the session of the thread that calls them.
//!
//! The thread is asked of the heap's [`Host`](kyocho_heap::heap::context::Host), which knows no more of a session than that it is there. Who runs
//! threads keeps a [`Surroundings`] for each session, and gives it out by [`Caller::session`]. Without a host, as in tests, everything
//! is permitted and nobody asks for anything.

mod forbidden_addresses;
mod variables;

pub use forbidden_addresses::ForbiddenAddresses;
pub use variables::{Full, Variables};

use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::context::Caller;
use std::sync::Arc;

/// What the library keeps for a session.
#[derive(Debug)]
pub struct Surroundings {
    /// Environment variables as the session sees them.
    pub variables: Variables,
    /// Where no session connects to.
    pub forbidden_addresses: Arc<ForbiddenAddresses>,
    /// The session is the process's own: it may change what all sessions share.
    pub is_of_process: bool,
}

/// The surroundings of a caller.
fn surroundings(caller: &dyn Caller) -> Option<&Surroundings> {
    caller.session().downcast_ref()
}

/// Does something with the surroundings of the thread that calls, if it has any.
pub(crate) fn with<T>(context: &ThreadContext, act: impl FnOnce(Option<&Surroundings>) -> T) -> T {
    let caller = context.caller();
    act(caller.as_deref().and_then(surroundings))
}

/// Whether somebody wants something of the thread: what waits in the kernel should give up.
pub(crate) fn has_request(context: &ThreadContext) -> bool {
    context.caller().is_some_and(|caller| caller.has_request())
}

/// The same to ask while the thread is outside.
pub(crate) fn wish(context: &ThreadContext) -> impl Fn() -> bool + use<> {
    let caller = context.caller();
    move || caller.as_ref().is_some_and(|caller| caller.has_request())
}
