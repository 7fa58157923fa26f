//! The socket at the other end of a TCP connection within this machine. For Unix sockets
//! `SO_PEERCRED` provides this; here it comes from `/proc/net/tcp` and `/proc/net/tcp6` (proc(5)).
//!
//! Each line there is one end of a connection. The other end of a socket is the line whose local
//! address is the socket's peer and whose remote address is the socket's own.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind};

/// The tables of a network namespace. An IPv6 socket that is connected to an IPv4 socket is in the
/// second one.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// How often a table is read: if it changes during a read, the kernel may leave out a line.
const READINGS_MAX: usize = 3;

/// The socket at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEnd {
    /// The user that created it.
    pub user: u32,
    /// Its inode number among the host's sockets. Never 0: a process has it open.
    pub inode: u64,
}

impl OtherEnd {
    /// The socket at the other end of a connection from `peer` to `own`; `None` if no process of
    /// this network namespace has it open (any more). Reads a table of all TCP connections of the
    /// namespace. Allocates.
    ///
    /// # Errors
    /// The host has no such table, or this process may not read it.
    pub fn of(own: SocketAddr, peer: SocketAddr) -> io::Result<Option<Self>> {
        let ends = (canonical(peer), canonical(own));
        for table in core::iter::repeat_n(TABLES, READINGS_MAX).flatten() {
            let found = match fs::File::open(table) {
                Ok(file) => find(BufReader::new(file), ends)?,
                // The host has no IPv6.
                Err(error) if error.kind() == ErrorKind::NotFound && table != TABLES[0] => None,
                Err(error) => return Err(error),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Whether this process has the socket open. Reads the list of all its descriptors. Allocates.
    ///
    /// # Errors
    /// The host does not list them.
    pub fn is_of_this_process(&self) -> io::Result<bool> {
        self.is_listed_in("/proc/self/fd")
    }

    /// Whether another process has the socket open. Allocates.
    ///
    /// # Errors
    /// The host does not list its descriptors: it has ended, or belongs to another user.
    pub fn is_of(&self, process: u32) -> io::Result<bool> {
        self.is_listed_in(&format!("/proc/{process}/fd"))
    }

    fn is_listed_in(&self, folder: &str) -> io::Result<bool> {
        let name = format!("socket:[{}]", self.inode);
        for entry in fs::read_dir(folder)? {
            // A descriptor that was closed meanwhile is not the one.
            let target = fs::read_link(entry?.path());
            if target.is_ok_and(|target| target.as_os_str() == name.as_str()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// One representation for all forms of an address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The line with these local and remote addresses, if a process has its socket open.
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

/// `0100007F:1F90`: the address in words as in the kernel's memory, the port as a number.
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
    fn other_end_is_found_and_belongs_to_this_process() {
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
    fn ipv6_socket_connected_over_ipv4_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let Ok(_stream) = TcpStream::connect(format!("[::ffff:127.0.0.1]:{port}")) else {
            return crate::skip::skip("ipv6_socket_connected_over_ipv4_is_found", "no IPv6 here");
        };
        let (accepted, peer) = listener.accept().unwrap();
        assert!(OtherEnd::of(accepted.local_addr().unwrap(), peer).unwrap().is_some());
    }

    #[test]
    fn invalid_lines_are_ignored() {
        let ends = (address("0100007F:1F90").unwrap(), address("0100007F:0001").unwrap());
        let text = "head\n 0: 0100007F:1F90\n\n1: x y 01 0 0 0 7 0 9\n\
                    2: 0100007F:1F90 0100007F:0001 01 0:0 0:0 0 7 0 55 1\n";
        let end = find(text.as_bytes(), ends).unwrap();
        assert_eq!(end, Some(OtherEnd { user: 7, inode: 55 }));
        let closed = text.replace(" 55 ", " 0 ");
        assert_eq!(
            find(closed.as_bytes(), ends).unwrap(),
            None,
            "a connection that no process has open"
        );
        assert_eq!(address("0100007F"), None);
        assert_eq!(address("é100007F0:1"), None);
        assert_eq!(address("01:1"), None);
    }
}
