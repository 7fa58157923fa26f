//! `kyocho dsm node`: at the far end of a remote shell. The place comes by standard input, because it
//! holds the secret, and a command line can be read by every user of a host. What comes behind it is
//! the launcher's line to the node, and its end says that the launcher has ended.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use kyocho_dsm::launch::variable;
use kyocho_sys::descriptor::{Inheritance, set_inheritance};

use crate::terminal::complain;

/// Longest list of variables.
const LINES_MAX: usize = 16;
/// Longest variable: 4,096 names of nodes are one.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Reads `NAME=value` lines up to an empty one, and becomes the program.
pub(crate) fn command(program: &[OsString]) -> ExitCode {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).stdin(std::process::Stdio::null());
    // By another number: the program's standard input is empty.
    let line = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(line) => line,
        Err(why) => return fail(&format!("no line to `kyocho dsm run`: {why}")),
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
            return fail("expected what `kyocho dsm run` sends");
        };
        command.env(name, value);
    }
    if let Err(why) = set_inheritance(input.as_fd(), Inheritance::Inherited) {
        return fail(&format!("cannot hand a descriptor on: {why}"));
    }
    let why = command.env(variable::LAUNCHER, input.as_raw_fd().to_string()).exec();
    complain(&format!("cannot run {}: {why}", program[0].display()));
    ExitCode::FAILURE
}

fn fail(why: &str) -> ExitCode {
    complain(&format!("kyocho dsm node: {why}"));
    ExitCode::from(2)
}

/// A line, or what there is before the end. Reads nothing behind it: that is for the program.
fn read_line(input: &mut impl Read) -> io::Result<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    let mut input = input.take(LINE_BYTES_MAX);
    while input.read(&mut byte)? == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
}
