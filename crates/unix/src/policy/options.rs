//! Socket options that are permitted on any network: how data is buffered, waited for and
//! described. Options that choose interfaces, routes or groups, or attach something to the socket,
//! are not listed.

/// Of `SOL_SOCKET`.
pub(super) const OF_SOCKET: &[u32] = &[
    libc::SO_REUSEADDR as u32,
    libc::SO_DONTROUTE as u32,
    libc::SO_BROADCAST as u32,
    libc::SO_SNDBUF as u32,
    libc::SO_RCVBUF as u32,
    libc::SO_KEEPALIVE as u32,
    libc::SO_OOBINLINE as u32,
    libc::SO_PRIORITY as u32,
    libc::SO_LINGER as u32,
    libc::SO_REUSEPORT as u32,
    libc::SO_PASSCRED as u32,
    libc::SO_RCVLOWAT as u32,
    libc::SO_RCVTIMEO as u32,
    libc::SO_SNDTIMEO as u32,
    libc::SO_TIMESTAMP as u32,
    libc::SO_PASSSEC as u32,
    libc::SO_TIMESTAMPNS as u32,
    libc::SO_TIMESTAMPING as u32,
    libc::SO_RXQ_OVFL as u32,
    libc::SO_PEEK_OFF as u32,
    libc::SO_BUSY_POLL as u32,
    libc::SO_INCOMING_CPU as u32,
    libc::SO_ZEROCOPY as u32,
    // `SO_RCVTIMEO_NEW`, `SO_SNDTIMEO_NEW`
    66,
    67,
];

/// Of `IPPROTO_IP`.
pub(super) const OF_IPV4: &[u32] = &[
    libc::IP_TOS as u32,
    libc::IP_TTL as u32,
    libc::IP_PKTINFO as u32,
    libc::IP_MTU_DISCOVER as u32,
    libc::IP_RECVERR as u32,
    libc::IP_RECVTTL as u32,
    libc::IP_RECVTOS as u32,
    libc::IP_FREEBIND as u32,
    libc::IP_MINTTL as u32,
    libc::IP_BIND_ADDRESS_NO_PORT as u32,
    libc::IP_MULTICAST_TTL as u32,
    libc::IP_MULTICAST_LOOP as u32,
];

/// Of `IPPROTO_IPV6`.
pub(super) const OF_IPV6: &[u32] = &[
    libc::IPV6_UNICAST_HOPS as u32,
    libc::IPV6_MULTICAST_HOPS as u32,
    libc::IPV6_MULTICAST_LOOP as u32,
    libc::IPV6_MTU_DISCOVER as u32,
    libc::IPV6_MTU as u32,
    libc::IPV6_RECVERR as u32,
    libc::IPV6_V6ONLY as u32,
    libc::IPV6_RECVPKTINFO as u32,
    libc::IPV6_RECVHOPLIMIT as u32,
    libc::IPV6_DONTFRAG as u32,
    libc::IPV6_RECVTCLASS as u32,
    libc::IPV6_TCLASS as u32,
];

/// Of `IPPROTO_UDP`.
pub(super) const OF_UDP: &[u32] =
    &[libc::UDP_CORK as u32, libc::UDP_SEGMENT as u32, libc::UDP_GRO as u32];
