//! Which socket is at the other end of a TCP connection within this machine: what `SO_PEERCRED` tells for Unix sockets, from
//! `/proc/net/tcp` and `/proc/net/tcp6` (proc(5)).
//!
//! Each line there is one end of a connection. The other end of ours is the line whose local address is our peer's and whose remote
//! address is our own.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind};

/// The tables of a network namespace. An IPv6 socket that is connected to an IPv4 one stands in the second one.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// The kernel lists a table that changes meanwhile in parts, and may leave out a line: so often it is read.
const READINGS_MAX: usize = 3;

/// The socket at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEnd {
    /// The user who made it.
    pub user: u32,
    /// Its number among the host's sockets; never 0: some process holds it.
    pub inode: u64,
}

impl OtherEnd {
    /// The socket at the other end of a connection from `peer` to `own`; none where no process of this network namespace holds it, or not
    /// any more. Reads a table of all TCP connections of the namespace.
    ///
    /// # Errors
    /// The host has no such table, or this process may not read it.
    pub fn of(own: SocketAddr, peer: SocketAddr) -> io::Result<Option<Self>> {
        let ends = (canonical(peer), canonical(own));
        for table in core::iter::repeat_n(TABLES, READINGS_MAX).flatten() {
            let found = match fs::File::open(table) {
                Ok(file) => find(BufReader::new(file), ends)?,
                // A host without IPv6.
                Err(error) if error.kind() == ErrorKind::NotFound && table != TABLES[0] => None,
                Err(error) => return Err(error),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Whether this process holds it. Looks at all its descriptors.
    ///
    /// # Errors
    /// The host does not list them.
    pub fn is_of_this_process(&self) -> io::Result<bool> {
        self.is_listed_in("/proc/self/fd")
    }

    /// The same of another process.
    ///
    /// # Errors
    /// The host does not list its descriptors: it has ended, or is another user's.
    pub fn is_of(&self, process: u32) -> io::Result<bool> {
        self.is_listed_in(&format!("/proc/{process}/fd"))
    }

    fn is_listed_in(&self, folder: &str) -> io::Result<bool> {
        let name = format!("socket:[{}]", self.inode);
        for entry in fs::read_dir(folder)? {
            // One that was closed meanwhile is not the one.
            let target = fs::read_link(entry?.path());
            if target.is_ok_and(|target| target.as_os_str() == name.as_str()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The same address for each way of writing it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The line with these local and remote addresses, if a process holds its socket.
fn find(
    table: impl BufRead,
    (local, remote): (SocketAddr, SocketAddr),
) -> io::Result<Option<OtherEnd>> {
    for line in table.lines().skip(1) {
        let line = line?;
        let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let [_, from, to, _, _, _, _, user, _, inode] = fields[..] else { continue };
        if address(from) == Some(local) && address(to) == Some(remote) {
            let end = user.parse().ok().zip(inode.parse().ok().filter(|&inode| inode != 0));
            return Ok(end.map(|(user, inode)| OtherEnd { user, inode }));
        }
    }
    Ok(None)
}

/// `0100007F:1F90`: the address in words as they lie in the kernel's memory, the port as a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(8 * at..8 * at + 8)?, 16).ok();
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?.to_ne_bytes()).into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::{OtherEnd, address, find};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_other_end_is_found_and_known_to_be_ours() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                return crate::skip::skip("the_other_end_is_found", "no IPv6 here");
            };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let end = OtherEnd::of(accepted.local_addr().unwrap(), peer).unwrap().unwrap();
            assert_eq!(end.user, crate::peer::own_user());
            assert!(end.is_of_this_process().unwrap());
            assert!(
                !OtherEnd { inode: end.inode + 1_000_000, ..end }.is_of_this_process().unwrap()
            );
            drop(stream);
            assert_eq!(OtherEnd::of(accepted.local_addr().unwrap(), peer).unwrap(), None);
        }
    }

    #[test]
    fn an_ipv6_socket_that_speaks_ipv4_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let Ok(_stream) = TcpStream::connect(format!("[::ffff:127.0.0.1]:{port}")) else {
            return crate::skip::skip("an_ipv6_socket_that_speaks_ipv4_is_found", "no IPv6 here");
        };
        let (accepted, peer) = listener.accept().unwrap();
        assert!(OtherEnd::of(accepted.local_addr().unwrap(), peer).unwrap().is_some());
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        let ends = (address("0100007F:1F90").unwrap(), address("0100007F:0001").unwrap());
        let text = "head\n 0: 0100007F:1F90\n\n1: x y 01 0 0 0 7 0 9\n\
                    2: 0100007F:1F90 0100007F:0001 01 0:0 0:0 0 7 0 55 1\n";
        let end = find(text.as_bytes(), ends).unwrap();
        assert_eq!(end, Some(OtherEnd { user: 7, inode: 55 }));
        let closed = text.replace(" 55 ", " 0 ");
        assert_eq!(find(closed.as_bytes(), ends).unwrap(), None, "a connection that nobody holds");
        assert_eq!(address("0100007F"), None);
        assert_eq!(address("é100007F0:1"), None);
        assert_eq!(address("01:1"), None);
    }
}
