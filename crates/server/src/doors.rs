//! The table of doors. To add a protocol, write a file in this folder and add its door to
//! [`DOORS`]; see [`door`](crate::door).

mod nrepl;
mod ssh;
mod telnet;
mod unix;

use crate::address::{self, Address, Endpoint};
use crate::context::Context;
use crate::door::{Door, Listener, Opened};
use crate::protocol::Protocol;
use core::str::FromStr;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

/// All doors, in the order in which help and messages list them.
static DOORS: &[&dyn Door] = &[&unix::Unix, &ssh::Ssh, &nrepl::Nrepl, &telnet::Telnet];

/// Pause before the next connection is accepted, after the host had no descriptor or memory for
/// one.
const PAUSE: Duration = Duration::from_millis(100);

/// The protocols of all doors.
pub(crate) fn protocols() -> impl Iterator<Item = &'static Protocol> + Clone {
    DOORS.iter().map(|door| door.protocol())
}

/// The default address of a server.
///
/// # Errors
/// The user's directory cannot be determined.
pub(crate) fn own_address() -> io::Result<Address> {
    Ok(Address { protocol: unix::Unix.protocol(), endpoint: Endpoint::Socket(own_socket()?) })
}

/// The Unix socket of a user's own server: the default of `kyocho serve` and `kyocho connect`.
///
/// # Errors
/// The user's directory cannot be determined.
pub fn own_socket() -> io::Result<PathBuf> {
    Ok(kyocho_sys::directory::of_user()?.join("serve.sock"))
}

/// The forms of addresses, as a help text lists them.
#[must_use]
pub fn forms_of_addresses() -> String {
    address::forms(protocols())
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, protocols())
    }
}

/// Listens on `address`.
///
/// # Errors
/// See [`Door::open`].
pub(crate) fn open(address: &Address, context: &Arc<Context>) -> io::Result<Opened> {
    let door = DOORS.iter().find(|door| door.protocol().name == address.protocol.name);
    door.expect("an address names a protocol of the table").open(&address.endpoint, context)
}

/// The body of a network service: serves connections until the process ends.
pub(crate) fn serve(listener: &dyn Listener, context: &Arc<Context>) {
    loop {
        if let Err(error) = listener.serve_next(context)
            && error.kind() != ErrorKind::ConnectionAborted
        {
            context.console.complain(&format!("kyocho: network: {error}"));
            kyocho_microprocess::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, DOORS, protocols};
    use crate::address::forms;
    use crate::protocol::{ConfiguredUser, Ports};

    #[test]
    fn addresses_are_parsed_and_printed() {
        for text in [
            "unix:/run/k.sock",
            "ssh:0.0.0.0:2222",
            "ssh:[::]:22",
            "telnet:127.0.0.1:2323",
            "telnet:[::1]:1",
            "nrepl:127.0.0.1:7",
            "nrepl:unix:/run/editors.sock",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "unix",
            "unix:",
            "telnet",
            "telnet:2323",
            "telnet:unix:/run/k.sock",
            "ssh:2222",
            "ssh:localhost",
            "telnet:0.0.0.0:23",
            "ftp:x",
            "telnet:10.0.0.1:23",
            "nrepl:10.0.0.1:7",
            "nrepl:unix:",
            "nrepl:",
        ] {
            text.parse::<Address>().unwrap_err();
        }
    }

    #[test]
    fn the_forms_of_addresses_follow_from_the_table() {
        assert_eq!(
            forms(protocols()),
            "unix:PATH, ssh:ADDRESS:PORT, nrepl, nrepl:unix:PATH, nrepl:127.0.0.1:PORT or telnet:127.0.0.1:PORT"
        );
    }

    /// A protocol that does not identify its clients must not be reachable from other machines.
    #[test]
    fn doors_without_identification_listen_on_loopback_only() {
        for door in DOORS {
            let protocol = door.protocol();
            let others = DOORS.iter().filter(|other| other.protocol().name == protocol.name);
            assert_eq!(others.count(), 1, "{} is in the table once", protocol.name);
            if protocol.user == ConfiguredUser::Unidentified {
                assert_ne!(protocol.ports, Ports::Any, "{}", protocol.name);
            }
        }
    }
}
