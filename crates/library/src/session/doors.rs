//! Addresses of this process's own that its sessions do not connect to: who comes in there is another user.
//!
//! An address has many spellings: names of hosts, `0.0.0.0`, IPv4 within IPv6. So it is not what a session asks for that is compared, but where the host has
//! connected it to, before the session has the socket.

use core::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// The addresses.
#[derive(Debug, Default)]
pub struct Doors(Mutex<Vec<SocketAddr>>);

impl Doors {
    /// Adds an address.
    pub fn add(&self, address: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(canonical(address));
    }

    /// Whether a connection leads to one of them, as the host tells its other end.
    pub(crate) fn has(&self, other_end: SocketAddr) -> bool {
        let doors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        doors.contains(&canonical(other_end))
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
