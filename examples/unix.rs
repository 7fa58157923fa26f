//! A program under a UNIX server of its own. It sees this folder as `/src`, for reading:
//!
//!     cargo run --example unix -- sh -c 'ls /src; touch /src/x'
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use kyocho_unix::{MountPoint, Options, Outcome, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut program: Vec<_> = std::env::args_os().skip(1).collect();
    if program.is_empty() {
        program = ["sh", "-c", "ls /src"].map(Into::into).to_vec();
    }
    let environment: Vec<_> = std::env::vars_os().collect();
    let source = MountPoint { source: ".".into(), target: "/src".into(), writable: false };
    match run(&Options { mounts: vec![source], ..Options::default() }, &program, &environment) {
        Ok(Outcome::Exited(status)) => ExitCode::from(status),
        Ok(Outcome::Signalled(signal)) => {
            println!("ended by signal {signal}");
            ExitCode::from(128 + signal as u8)
        }
        Err(error) => {
            println!("{error}");
            ExitCode::from(127)
        }
    }
}
