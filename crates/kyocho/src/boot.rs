//! Booting, with one line a service as it comes up.

use crate::terminal;
use kyocho_lisp::system::{Options, System};

/// How much the boot says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// One line a service.
    Services,
    /// Nothing unless it fails.
    Quiet,
}

/// Boots the system, or says why it could not.
pub(crate) fn boot(options: Options, voice: Voice) -> Option<System> {
    let mut say = |line: &kyocho_lisp::system::ServiceLine| {
        if voice == Voice::Services {
            terminal::line(&format!("{:<20} {}", line.name, line.detail));
        }
    };
    match System::boot(options, &mut say) {
        Ok(system) => Some(system),
        Err(error) => {
            terminal::complain(&format!("kyocho: cannot boot: {error}"));
            None
        }
    }
}
