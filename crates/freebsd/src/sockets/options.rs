//! Options of sockets: the host's level and name for FreeBSD's. The values are the same.

use crate::errno::Errno;

const SOCKET: u64 = 0xffff;
const HOST_SOCKET: u64 = 1;
/// The option whose value is an error.
pub(super) const LAST_ERROR: (u64, u64) = (HOST_SOCKET, 4);

/// Level, FreeBSD's name, the host's name.
#[rustfmt::skip]
const OPTIONS: [(u64, u64, u64); 43] = [
    (SOCKET, 0x1, 1), (SOCKET, 0x2, 30), (SOCKET, 0x4, 2), (SOCKET, 0x8, 9), (SOCKET, 0x10, 5), (SOCKET, 0x20, 6),
    (SOCKET, 0x80, 13), (SOCKET, 0x100, 10), (SOCKET, 0x200, 15), (SOCKET, 0x400, 29), (SOCKET, 0x1001, 7),
    (SOCKET, 0x1002, 8), (SOCKET, 0x1003, 19), (SOCKET, 0x1004, 18), (SOCKET, 0x1005, 21), (SOCKET, 0x1006, 20),
    (SOCKET, 0x1007, 4), (SOCKET, 0x1008, 3), (SOCKET, 0x1016, 38), (SOCKET, 0x1019, 39),
    // IP
    (0, 3, 1), (0, 4, 2), (0, 9, 32), (0, 10, 33), (0, 11, 34), (0, 12, 35), (0, 13, 36), (0, 65, 12),
    // TCP
    (6, 1, 1), (6, 2, 2), (6, 4, 3), (6, 256, 4), (6, 512, 5), (6, 1024, 6),
    // IPv6
    (41, 4, 16), (41, 9, 17), (41, 10, 18), (41, 11, 19), (41, 12, 20), (41, 13, 21), (41, 27, 26), (41, 37, 51), (41, 61, 67),
];

/// The host's level and name.
///
/// # Errors
/// `NOPROTOOPT`: the host has no such option.
pub(super) fn to_host(level: u64, name: u64) -> Result<(u64, u64), Errno> {
    let [level, name] = [level, name].map(|word| u64::from(word as u32));
    let known = OPTIONS.iter().find(|(at, ours, _)| (*at, *ours) == (level, name));
    let (_, _, host) = known.ok_or(Errno::NOPROTOOPT)?;
    Ok((if level == SOCKET { HOST_SOCKET } else { level }, *host))
}

#[cfg(test)]
mod tests {
    use super::{LAST_ERROR, to_host};
    use crate::errno::Errno;

    #[test]
    fn options_are_the_hosts() {
        for (level, name, host_level, host) in [
            (0xffff, 0x4, libc::SOL_SOCKET, libc::SO_REUSEADDR),
            (0xffff, 0x1001, libc::SOL_SOCKET, libc::SO_SNDBUF),
            (0xffff, 0x20, libc::SOL_SOCKET, libc::SO_BROADCAST),
            (6, 256, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
            (6, 512, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
            (41, 27, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
            (0, 4, libc::IPPROTO_IP, libc::IP_TTL),
            (0, 12, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP),
        ] {
            assert_eq!(to_host(level, name), Ok((host_level as u64, host as u64)));
        }
        assert_eq!(LAST_ERROR, (libc::SOL_SOCKET as u64, libc::SO_ERROR as u64));
        assert_eq!(to_host(0xffff, 0x800), Err(Errno::NOPROTOOPT));
    }
}
