//! The `kyocho` command: reads the command line and hands over to one file a command.
//!
//! Exit codes: 0 fine, 1 the program failed, 2 the command line was wrong (clap's own).

mod boot;
mod command_line;
mod deep;
mod prompt;
mod run;
mod signals;
mod terminal;
mod tour;

use clap::Parser;
use command_line::{Command, CommandLine};
use kyocho_lisp::system::Engine;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let options = line.system.to_options();
    if options.engine == Engine::Deep {
        return match line.command {
            Some(Command::Run { file, .. }) => deep::command(&options, &file),
            _ => {
                terminal::complain("the deep engine runs programs: kyocho --engine deep run FILE");
                ExitCode::from(2)
            }
        };
    }
    match line.command {
        None => prompt::command(options),
        Some(Command::Run { file, arguments }) => run::command(options, &file, arguments),
        Some(Command::Tour) => tour::command(options),
    }
}
