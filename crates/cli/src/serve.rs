//! `kyocho serve`: a system that many users are in at the same time.
//!
//! ```text
//!   init ── network (one a place to listen) ── getty (one a session) ── its user's threads
//!                 accepts, asks who it is         reads, evaluates, shows
//! ```
//!
//! All of them are microprocesses (paper 4, §3.1) that wait in the kernel's rings: an idle server uses no processor time. The main kernel
//! thread waits for signals: SIGHUP reads the configuration again, SIGTERM and SIGINT end.

pub(crate) mod address;
mod bencode;
mod config;
mod dialect;
mod editors;
mod evaluation;
pub(crate) mod frames;
mod getty;
mod heartbeat;
mod network;
mod notify;
mod nrepl;
mod other_protocol;
mod register;
mod room;
mod socket_file;
mod ssh;
mod telnet;
mod wire;
mod worlds;

use crate::boot::{Voice, boot};
use crate::{signals, terminal};
use address::Address;
use config::Config;
use kyocho_lisp::system::Options;
use register::Register;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Exact integers have so many bits at most, 78,000 digits: the slowest operation on them takes some tens of milliseconds, and what is done
/// in one go, in which nobody can be stopped and no garbage collected, less than ten.
const INTEGER_BITS_MAX: u64 = 1 << 18;

/// `kyocho serve`.
pub(crate) fn command(options: Options, config: Option<PathBuf>, listen: Vec<Address>) -> ExitCode {
    match serve(options, config, listen) {
        Ok(code) => code,
        Err(message) => {
            terminal::complain(&format!("kyocho: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(
    options: Options,
    path: Option<PathBuf>,
    listen: Vec<Address>,
) -> Result<ExitCode, String> {
    let config = read(path.as_deref())?;
    let addresses = addresses(&config, listen)?;
    let register = Arc::new(Register::new(config, options.image.clone()));
    let options = Options { integer_bits_max: INTEGER_BITS_MAX, ..options };
    let Some(system) = boot(options, Voice::Services) else { return Ok(ExitCode::FAILURE) };
    let system = Arc::new(system);
    let mut names = Vec::new();
    for address in addresses {
        let (listener, name) = network::listen(&address, &system, &register)
            .map_err(|error| format!("{address}: {error}"))?;
        // Where a port was left open, the host has chosen one.
        let address = listener.address().unwrap_or(address);
        let (inner, register) = (Arc::clone(&system), Arc::clone(&register));
        names.extend(name);
        system
            .spawn_service(&format!("network {address}"), move || {
                network::serve(&inner, &register, &listener);
            })
            .map_err(|error| format!("{address}: {error}"))?;
        terminal::line(&format!("{:<20} {address}", "network"));
    }
    heartbeat::start(&system).map_err(|error| format!("the heartbeat: {error}"))?;
    notify::ready();
    signals::serve(|| reload(path.as_deref(), &register));
    notify::stopping();
    drop(names);
    Ok(ExitCode::SUCCESS)
}

fn read(path: Option<&Path>) -> Result<Config, String> {
    match path {
        Some(path) => Config::read(path).map_err(|wrong| wrong.to_string()),
        None => Ok(Config::of_owner(kyocho_sys::peer::own_user())),
    }
}

/// Where to listen: as the command line says, else as the file says, else at the user's own place.
fn addresses(config: &Config, listen: Vec<Address>) -> Result<Vec<Address>, String> {
    if !listen.is_empty() {
        return Ok(listen);
    }
    if config.listen.is_empty() {
        return Address::of_user().map(|own| vec![own]).map_err(|error| error.to_string());
    }
    let parse =
        |text: &String| text.parse().map_err(|error| format!("listen = [\"{text}\"]: {error}"));
    config.listen.iter().map(parse).collect()
}

/// The configuration has changed: users and limits do; where to listen does not.
fn reload(path: Option<&Path>, register: &Register) {
    notify::reloading();
    match read(path) {
        Ok(config) => {
            register.replace(config);
            terminal::line("kyocho: the configuration was read again");
        }
        Err(message) => terminal::complain(&format!("kyocho: {message}; nothing was changed")),
    }
    notify::ready();
}
