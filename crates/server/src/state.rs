//! The folder for files that are kept between runs: `$XDG_STATE_HOME/kyocho`, or
//! `~/.local/state/kyocho`.

use std::path::PathBuf;

/// The folder, which is made if necessary. `None` if the user has no home folder, or the host
/// refuses.
pub fn folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))?;
    let folder = state.join("kyocho");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder)
}
