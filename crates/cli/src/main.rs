//! The command `kyocho`: reads the command line and calls the file of its command.
//!
//! Exit codes: 0 success, 1 the program failed, 2 the command line was wrong (as clap has it).

mod boot;
mod command_line;
mod connect;
mod deep;
mod dsm;
mod editor;
mod highlight;
mod jupyter;
mod layout;
mod nrepl_port;
mod order;
mod pages;
mod paper;
mod prompt;
mod ps;
mod run;
mod screen;
mod serve;
mod signals;
mod terminal;
mod top;
mod tour;
mod trace;
mod unix;

use command_line::{Command, Control};
use connect::Server;
use kyocho_lisp::system::Engine;
use kyocho_microprocess::control::protocol::Request;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = command_line::read();
    if let Some(Command::Unix(arguments)) = &line.command {
        return unix::command(arguments);
    }
    // To be called while the process has one thread.
    kyocho_sys::barrier::prepare();
    let options = line.system.to_options();
    let command = match line.command {
        Some(Command::Control(command)) => return control(command),
        Some(Command::Dsm(command)) => return dsm::command(&command),
        Some(Command::Connect { socket, handed }) => {
            return connect::command(if handed { Server::Handed } else { Server::At(socket) });
        }
        Some(Command::NreplPort { socket, port }) => return nrepl_port::command(socket, port),
        Some(Command::Pages { folder }) => return pages::command(&folder),
        Some(Command::Paper(options)) => return paper::command(&options),
        command => command,
    };
    if options.engine == Engine::Deep {
        return match command {
            Some(Command::Run { file, .. }) => deep::command(&options, &file),
            _ => {
                terminal::complain(
                    "the deep engine has no prompt and no server. Use: kyocho --engine deep run FILE",
                );
                ExitCode::from(2)
            }
        };
    }
    match command {
        None => prompt::command(options),
        Some(Command::Run { file, arguments }) => run::command(options, &file, arguments),
        Some(Command::Serve { config, listen }) => {
            // A server runs for months, and its kernel threads start and end. At this point there
            // is one.
            kyocho_sys::allocator::give_back_large_blocks();
            serve::command(options, config, listen)
        }
        Some(Command::Jupyter(command)) => jupyter::command(&command, options),
        Some(Command::Tour) => tour::command(options),
        Some(
            Command::Control(_)
            | Command::Connect { .. }
            | Command::NreplPort { .. }
            | Command::Pages { .. }
            | Command::Paper(_)
            | Command::Unix(_)
            | Command::Dsm(_),
        ) => unreachable!("handled above"),
    }
}

/// Runs a command that concerns running processes.
fn control(command: Control) -> ExitCode {
    match command {
        Control::Ps { process, json, prometheus } => {
            let form = match (json, prometheus) {
                (true, _) => ps::OutputFormat::Json,
                (_, true) => ps::OutputFormat::Prometheus,
                _ => ps::OutputFormat::Table,
            };
            ps::command(process, form)
        }
        Control::Top => top::command(),
        Control::Trace { seconds, output, process, program } => match program.as_slice() {
            [] => trace::process(process, seconds, &output),
            words => trace::program(words, &output),
        },
        Control::Kill { targets } => order::command(&targets, |id| Request::Kill { id }),
        Control::Suspend { targets } => order::command(&targets, |id| Request::Suspend { id }),
        Control::Resume { targets } => order::command(&targets, |id| Request::Resume { id }),
        Control::Priority { target, level } => {
            order::command(&[target], |id| Request::Priority { id, level })
        }
    }
}
