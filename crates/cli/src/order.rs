//! `kyocho kill`, `suspend`, `resume` and `priority`: orders to microprocesses, named by their
//! global ids.

use crate::terminal;
use kyocho_microprocess::control::GlobalId;
use kyocho_microprocess::control::client::Client;
use kyocho_microprocess::control::protocol::Request;
use std::io;
use std::process::ExitCode;

/// Sends an order to each of `targets`. `order` makes it from the number inside the process.
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

/// Sends one order.
///
/// # Errors
/// The process cannot be reached or refuses, or the microprocess has ended.
pub(crate) fn give(target: GlobalId, order: &Request) -> io::Result<()> {
    Client::connect(target.process)?.ask(order).map(drop)
}
