//! `kyocho dsm node`: starts a node on another host, where a remote shell runs it. The node's
//! settings are read from standard input, because they contain the secret of the launch, and every
//! user of a host can read command lines. The rest of standard input is a connection to the
//! launcher. When it ends, the launcher has ended.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use kyocho_dsm::launch::variable;
use kyocho_sys::descriptor::{Inheritance, set_inheritance};

use crate::terminal::complain;

/// Most variables.
const LINES_MAX: usize = 16;
/// Longest variable. One contains the names of up to 4,096 nodes.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Reads `NAME=value` lines up to an empty one, and replaces this process by the program.
pub(crate) fn command(program: &[OsString]) -> ExitCode {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).stdin(std::process::Stdio::null());
    // Under another number, because the program's standard input is empty.
    let line = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(line) => line,
        Err(why) => return fail(&format!("no connection to `kyocho dsm run`: {why}")),
    };
    let mut input = std::fs::File::from(line);
    for _ in 0..LINES_MAX {
        let line = match read_line(&mut input) {
            Ok(line) if line.is_empty() => break,
            Ok(line) => line,
            Err(why) => return fail(&format!("standard input: {why}")),
        };
        let variable = line.split_once('=').filter(|(name, _)| name.starts_with("KYOCHO_DSM_"));
        let Some((name, value)) = variable else {
            return fail("expected the settings that `kyocho dsm run` sends");
        };
        command.env(name, value);
    }
    if let Err(why) = set_inheritance(input.as_fd(), Inheritance::Inherited) {
        return fail(&format!("cannot pass on a descriptor: {why}"));
    }
    let why = command.env(variable::LAUNCHER, input.as_raw_fd().to_string()).exec();
    complain(&format!("cannot run {}: {why}", program[0].display()));
    ExitCode::FAILURE
}

fn fail(why: &str) -> ExitCode {
    complain(&format!("kyocho dsm node: {why}"));
    ExitCode::from(2)
}

/// A line, or the rest of the input if there is no line end. Reads nothing after the line: that is
/// for the program.
fn read_line(input: &mut impl Read) -> io::Result<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    let mut input = input.take(LINE_BYTES_MAX);
    while input.read(&mut byte)? == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
}
