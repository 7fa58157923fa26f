//! Writes manual pages and completions, from the command line that `clap` reads. `scripts/install`
//! puts them into `PREFIX/share`.
//!
//! ```text
//! FOLDER/man/man1/kyocho.1, kyocho-run.1, ...          one page for each command
//! FOLDER/bash-completion/completions/kyocho
//! FOLDER/zsh/site-functions/_kyocho
//! FOLDER/fish/vendor_completions.d/kyocho.fish
//! ```

use crate::command_line;
use crate::terminal;
use clap_complete::Shell;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The name of the command, as users type it.
const NAME: &str = "kyocho";

/// Where each shell looks for completions, below `share`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/kyocho"),
    (Shell::Zsh, "zsh/site-functions/_kyocho"),
    (Shell::Fish, "fish/vendor_completions.d/kyocho.fish"),
];

/// `kyocho pages FOLDER`.
pub(crate) fn command(folder: &Path) -> ExitCode {
    match write(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&format!("kyocho: {}: {error}", folder.display()));
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    let manual = folder.join("man/man1");
    std::fs::create_dir_all(&manual)?;
    clap_mangen::generate_to(command_line::command(), manual)?;
    for (shell, file) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command_line::command(), NAME, &mut text);
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().expect("it has folders"))?;
        std::fs::write(file, text)?;
    }
    Ok(())
}
