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

/// Boots the system with the world that the options name, or says why it could not.
pub(crate) fn boot_world(options: Options, voice: Voice) -> Option<System> {
    let image = options.image.clone();
    let mut system = boot(options, voice)?;
    if let Some(image) = image
        && let Err(report) = system.load_image(&image)
    {
        terminal::complain(&format!("kyocho: {}", report.message()));
        return None;
    }
    Some(system)
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
