//! Telling the service manager that the server is up (`sd_notify`: a datagram to `$NOTIFY_SOCKET`).

use crate::terminal;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says that users may come, where somebody wants to know.
pub(crate) fn ready() {
    if let Some(name) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(&name, b"READY=1")
    {
        let name = name.display();
        terminal::complain(&format!("kyocho: the service manager at {name} was not told: {error}"));
    }
}

fn send(name: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(drop)
}
