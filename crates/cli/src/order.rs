//! `kyocho kill`, `suspend`, `resume` and `priority`: orders to microprocesses by their global ids.

use crate::terminal;
use kyocho_microprocess::control::GlobalId;
use kyocho_microprocess::control::client::Client;
use kyocho_microprocess::control::protocol::Request;
use std::io;
use std::process::ExitCode;

/// Gives `order`, made for the number inside its address space, to each of `targets`.
pub(crate) fn command(targets: &[GlobalId], order: impl Fn(u64) -> Request) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for &target in targets {
        if let Err(error) = give(target, &order(target.local)) {
            terminal::complain(&format!("kyocho: {target}: {error}"));
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Gives one order.
///
/// # Errors
/// The address space cannot be asked or refuses, or the microprocess has ended.
pub(crate) fn give(target: GlobalId, order: &Request) -> io::Result<()> {
    Client::connect(target.process)?.ask(order).map(drop)
}
