//! Registers the kernel: writes a folder with a `kernel.json` where Jupyter looks for one.

use serde_json::json;
use std::env;
use std::path::{Path, PathBuf};

/// The folder for kernels of all users of the machine.
const MACHINE: &str = "/usr/local/share/jupyter";

/// Writes the kernel's specification. Returns its path.
///
/// # Errors
/// The folder cannot be written, or the user has no home folder.
pub(super) fn install(for_user: bool, prefix: Option<&Path>) -> Result<PathBuf, String> {
    let data = match prefix {
        Some(prefix) => prefix.join("share/jupyter"),
        None if for_user => of_user().ok_or("no home folder: set HOME, or use --prefix")?,
        None => PathBuf::from(MACHINE),
    };
    let program = env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let specification = json!({
        "argv": [program, "jupyter", "run", "{connection_file}"],
        "display_name": "Scheme (Kyocho)",
        "language": "scheme",
        "interrupt_mode": "message",
    });
    let folder = data.join("kernels/kyocho");
    let path = folder.join("kernel.json");
    let text = format!("{specification:#}\n");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| format!("{}: {error} (--user installs for you only)", path.display()))?;
    Ok(path)
}

/// The folder for kernels of one user.
fn of_user() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || set("XDG_DATA_HOME").or_else(|| Some(env::home_dir()?.join(".local/share")));
    set("JUPYTER_DATA_DIR").or_else(|| Some(data()?.join("jupyter")))
}
