//! Addresses of this process to which its sessions must not connect, because a connection there
//! would act as another user.
//!
//! An address can be written in many ways: host names, `0.0.0.0`, IPv4 inside IPv6. So the
//! requested address is not compared. The comparison uses the address that the host has connected
//! to, before the session gets the socket.

use core::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// The addresses.
#[derive(Debug, Default)]
pub struct ForbiddenAddresses(Mutex<Vec<SocketAddr>>);

impl ForbiddenAddresses {
    /// Adds an address.
    pub fn add(&self, address: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(canonical(address));
    }

    /// Whether a connection leads to one of them, by the peer address that the host reports.
    pub(crate) fn has(&self, other_end: SocketAddr) -> bool {
        let addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.contains(&canonical(other_end))
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
