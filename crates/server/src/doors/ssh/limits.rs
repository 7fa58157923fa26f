//! Limits the number of connections, from one address and in all.
//!
//! The prefix of an IPv6 network has 64 bits, and one host can use many addresses with that prefix
//! (RFC 4291, §2.5.1; RFC 8981). So all addresses with the same prefix count as one.

use super::section::Limits;
use core::net::{IpAddr, Ipv6Addr};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the open connections by address.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounts(Mutex<HashMap<IpAddr, usize>>);

/// One connection that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct CountedConnection(Arc<ConnectionCounts>, IpAddr);

impl ConnectionCounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more connection from `address`, or returns `None` if a limit is reached.
    pub(super) fn try_add(
        self: &Arc<Self>,
        address: IpAddr,
        limits: &Limits,
    ) -> Option<CountedConnection> {
        let address = network(address);
        let mut taken = self.lock();
        let all: usize = taken.values().sum();
        let here = taken.get(&address).copied().unwrap_or(0);
        if all >= limits.connections_max || here >= limits.connections_an_address_max {
            return None;
        }
        taken.insert(address, here + 1);
        Some(CountedConnection(Arc::clone(self), address))
    }
}

/// What counts as one address: each IPv4 address, also if it is written as an IPv6 address, and
/// each IPv6 network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut taken = self.0.lock();
        if let Some(count) = taken.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::section::Limits;
    use super::ConnectionCounts;
    use core::net::IpAddr;
    use std::sync::Arc;

    #[test]
    fn connections_are_counted_by_address_and_in_all() {
        let limits =
            Limits { connections_max: 3, connections_an_address_max: 2, ..Limits::default() };
        let counts = Arc::new(ConnectionCounts::default());
        let [one, other, third] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let first = counts.try_add(one, &limits).unwrap();
        let _second = counts.try_add(one, &limits).unwrap();
        assert!(counts.try_add(one, &limits).is_none(), "the limit of one address is two");
        let _third = counts.try_add(other, &limits).unwrap();
        assert!(counts.try_add(third, &limits).is_none(), "the limit of all is three");
        drop(first);
        assert!(counts.try_add(third, &limits).is_some(), "a closed connection no longer counts");
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        let limits = Limits { connections_an_address_max: 2, ..Limits::default() };
        let counts = Arc::new(ConnectionCounts::default());
        let try_add = |address: &str| counts.try_add(address.parse().unwrap(), &limits);
        let one = try_add("2001:db8:0:1::1").unwrap();
        let _two = try_add("2001:db8:0:1:ffff:ffff:ffff:ffff").unwrap();
        assert!(try_add("2001:db8:0:1:1:2:3:4").is_none(), "the limit of a 64-bit network is two");
        assert!(try_add("2001:db8:0:2::1").is_some(), "another network");
        let _three = try_add("10.0.0.1").unwrap();
        let _four = try_add("::ffff:10.0.0.1").unwrap();
        assert!(try_add("10.0.0.1").is_none(), "two spellings of one address");
        assert!(try_add("::ffff:10.0.0.2").is_some());
        drop(one);
        assert!(try_add("2001:db8:0:1::2").is_some());
        assert!(counts.lock().len() <= 4, "counted by networks");
    }
}
