//! Runs a page as one terminal session: a shell script of its commands, in a folder that looks like
//! a clone of the repository after `make run`.

use crate::page::{Block, Kind};
use core::fmt::Write as _;
use core::time::Duration;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

/// Longer than any page takes on a loaded machine. A session that reaches it hangs.
const LIMIT: Duration = Duration::from_secs(600);
/// The line before a block's output, with its number.
const BEGIN: &str = "@@ block";
/// Printed in place of a skipped block.
const SKIPPED: &str = "@@ skipped";

/// Replaces commands of the pages that build something: everything is built already.
const BUILT: &str = r#"
make() {
    case $1 in
        run) kyocho tour ;;
        install) scripts/install "${2#PREFIX=}" "$KYOCHO_LIBRARIES" ;;
        *) echo "make $*: unknown to the test of the book"; return 2 ;;
    esac
}
cargo() {
    while [ "$1" != --example ]; do shift; done
    example=$2; shift 2
    if [ "$1" = -- ]; then shift; fi
    [ -x "$KYOCHO_EXAMPLES/$example" ] || echo "not built: cargo build -p kyocho --examples"
    "$KYOCHO_EXAMPLES/$example" "$@"
}
"#;

pub(crate) enum Outcome {
    Printed(Vec<String>),
    Skipped(String),
}

/// A folder of one page, removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Makes links to everything in the repository. What the session writes stays in its own
    /// folder.
    fn like_a_clone(name: &str, root: &Path) -> Self {
        let name = name.replace(['/', '.'], "-");
        let path = std::env::temp_dir().join(format!("kyocho-{}-{name}", std::process::id()));
        let folder = Self(path);
        fs::create_dir_all(folder.0.join("target")).expect("a folder for the page");
        for entry in fs::read_dir(root).expect("the repository").flatten() {
            if entry.file_name() != "target" && entry.file_name() != ".git" {
                symlink(entry.path(), folder.0.join(entry.file_name())).expect("a link");
            }
        }
        symlink(built(), folder.0.join("target/release")).expect("a link");
        folder
    }
}

/// The folder with the command that was built for this test.
fn built() -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_kyocho"));
    command.parent().expect("the command lies in a folder").to_owned()
}

/// Runs the blocks one after the other. Returns the outcome of each.
pub(crate) fn run(name: &str, root: &Path, blocks: &[&Block]) -> Vec<Outcome> {
    let folder = Folder::like_a_clone(name, root);
    let script = folder.0.join(".session");
    fs::write(&script, script_of(blocks)).expect("the script can be written");
    let output = folder.0.join(".output");
    let file = File::create(&output).expect("a file for the output");
    let path = std::env::var("PATH").unwrap_or_default();
    let libraries = std::env::current_exe().expect("the test's own program");
    let mut shell = Command::new("sh");
    shell.arg(&script).current_dir(&folder.0).process_group(0);
    shell.stdin(Stdio::null()).stdout(file.try_clone().expect("a descriptor")).stderr(file);
    shell.env("PATH", format!("{}:{path}", built().display()));
    shell.env("KYOCHO_EXAMPLES", built().join("examples"));
    shell.env("KYOCHO_LIBRARIES", libraries.parent().expect("a folder"));
    shell.env("HOME", &folder.0).env("KYOCHO_DIR", folder.0.join(".kyocho"));
    shell.env("XDG_STATE_HOME", folder.0.join(".state")).env("NO_COLOR", "1").env("TERM", "dumb");
    under_watchdog(name, shell.spawn().expect("a shell"));
    let printed = fs::read(&output).expect("the output can be read");
    outcomes(&String::from_utf8_lossy(&printed), blocks)
}

/// Waits for the session. If it hangs, kills it with all its processes.
fn under_watchdog(name: &str, mut shell: Child) {
    let group = format!("-{}", shell.id());
    let (ended, end) = channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = end.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout);
        if late {
            let _gone = Command::new("kill").args(["-KILL", "--", &group]).status();
        }
        late
    });
    shell.wait().expect("the shell ends");
    drop(ended);
    assert!(!watchdog.join().expect("the watchdog does not panic"), "{name} hangs");
}

/// One script for all blocks, so that variables, folders and background jobs persist from block to
/// block.
fn script_of(blocks: &[&Block]) -> String {
    let mut script = String::from(BUILT);
    for (number, block) in blocks.iter().enumerate() {
        let needs = block.needs.as_deref().unwrap_or("true");
        let _ok = write!(
            script,
            "echo '{BEGIN} {number}'\nif ( {needs} ) >/dev/null 2>&1; then\n{}\nelse echo '{SKIPPED}'; fi\n",
            wait_of(block) + &body_of(block),
        );
    }
    // Ends servers that were started, by SIGTERM. Not every shell lists its jobs in `$(...)`.
    script.push_str(
        "jobs -p >.jobs\nfor job in $(cat .jobs); do kill \"$job\"; done 2>/dev/null\nwait\n",
    );
    script
}

/// Waits until the block can run. The watchdog ends a wait that takes too long.
fn wait_of(block: &Block) -> String {
    let condition = block.condition.as_deref().unwrap_or("true");
    format!("until ( {condition} ) >/dev/null 2>&1; do sleep 0.02; done\n")
}

fn body_of(block: &Block) -> String {
    if let Some(file) = &block.file {
        return format!("cat >{file} <<'END-OF-BLOCK'\n{}END-OF-BLOCK", block.text);
    }
    if block.kind == Kind::Scheme {
        return format!("kyocho <<'END-OF-BLOCK'\n{}END-OF-BLOCK", block.text);
    }
    let mut body = String::new();
    for command in block.commands() {
        let echoed = format!("$ {}", command.replace('\n', "\n> ")).replace("\n> \n", "\n>\n");
        let _ok = write!(
            body,
            "cat <<'END-OF-COMMAND'\n{echoed}\nEND-OF-COMMAND\n{command}\nstatus=$?; [ $status = 0 ] || echo \"? $status\"\n",
        );
    }
    body
}

/// Removes empty lines at the end, which a page cannot show.
fn without_empty_end(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Splits the output at the lines that begin a block.
fn outcomes(output: &str, blocks: &[&Block]) -> Vec<Outcome> {
    let mut parts = vec![Vec::new(); blocks.len()];
    let mut at = None;
    for line in output.lines() {
        if let Some(number) = line.strip_prefix(BEGIN) {
            at = number.trim().parse::<usize>().ok();
        } else if let Some(part) = at.and_then(|number| parts.get_mut(number)) {
            part.push(line.trim_end().to_owned());
        }
    }
    let outcome = |(part, block): (Vec<String>, &&Block)| match part.first() {
        Some(line) if line == SKIPPED => {
            Outcome::Skipped(format!("needs `{}`", block.needs.as_deref().unwrap_or_default()))
        }
        _ => Outcome::Printed(without_empty_end(part)),
    };
    parts.into_iter().zip(blocks).map(outcome).collect()
}
