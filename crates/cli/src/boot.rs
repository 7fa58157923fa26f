//! Boots the Lisp system, and prints one line for each service as it starts.

use crate::terminal;
use kyocho_lisp::system::{Options, System};

/// What the boot prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootOutput {
    /// One line for each service.
    Services,
    /// Nothing, unless it fails.
    Quiet,
}

/// Boots the system and loads the image that the options name. Prints the reason and returns `None`
/// if that fails.
pub(crate) fn boot_world(options: Options, voice: BootOutput) -> Option<System> {
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

/// Boots the system. Prints the reason and returns `None` if that fails.
pub(crate) fn boot(options: Options, voice: BootOutput) -> Option<System> {
    let mut say = |line: &kyocho_lisp::system::ServiceLine| {
        if voice == BootOutput::Services {
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
