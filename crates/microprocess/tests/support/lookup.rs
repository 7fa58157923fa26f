//! A name query to a server that answers when told to. The query is made by the C library's own
//! resolver, with its own system calls.

use core::ffi::{CStr, c_int};
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::net::UdpSocket;

use super::kinds::Kind;

/// A server on loopback, silent at first.
pub(crate) struct Lookup {
    server: UdpSocket,
    released: AtomicUsize,
}

/// The beginning of the C library's data about servers, one for each kernel thread: `struct
/// __res_state` of <resolv.h>.
#[repr(C)]
struct Resolver {
    patience_s: c_int,
    tries: c_int,
    options: libc::c_ulong,
    servers: c_int,
    addresses: [libc::sockaddr_in; 3],
}

unsafe extern "C" {
    fn __res_init() -> c_int;
    fn __res_state() -> *mut Resolver;
    fn res_query(
        name: *const libc::c_char,
        class: c_int,
        kind: c_int,
        answer: *mut u8,
        bytes: c_int,
    ) -> c_int;
}

const NAME: &CStr = c"kyocho.test";
/// Class internet, kind address.
const CLASS: c_int = 1;
const KIND: c_int = 1;
/// The third and fourth byte of an answer: the name does not exist.
const NO_SUCH_NAME: [u8; 2] = [0x81, 0x83];

impl Lookup {
    pub(crate) fn new() -> Self {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        server.set_nonblocking(true).unwrap();
        Self { server, released: AtomicUsize::new(0) }
    }

    /// Makes it the only server that the calling kernel thread asks.
    fn choose(&self) {
        let SocketAddr::V4(address) = self.server.local_addr().unwrap() else {
            unreachable!("bound to an address of version 4")
        };
        // SAFETY: has no arguments.
        assert_eq!(unsafe { __res_init() }, 0);
        // SAFETY: has no arguments.
        let resolver = unsafe { __res_state() };
        // SAFETY: initialised above, and owned by this kernel thread. A microprocess keeps its
        // kernel thread until it calls the runtime.
        let resolver = unsafe { &mut *resolver };
        resolver.servers = 1;
        resolver.addresses[0].sin_family = libc::AF_INET as libc::sa_family_t;
        resolver.addresses[0].sin_port = address.port().to_be();
        resolver.addresses[0].sin_addr.s_addr = u32::from(*address.ip()).to_be();
    }
}

impl Kind for Lookup {
    fn sleep(&self, time: usize) {
        let mut answer = [0_u8; 512];
        // The server may be asked again, or given up; only the release ends the sleep.
        while self.released.load(Ordering::SeqCst) <= time {
            self.choose();
            // SAFETY: a name that ends in a zero byte, and a buffer of this function with its
            // length.
            let bytes = unsafe {
                let room = answer.len() as c_int;
                res_query(NAME.as_ptr(), CLASS, KIND, answer.as_mut_ptr(), room)
            };
            assert_eq!(bytes, -1, "there is no such name");
        }
    }

    fn release(&self, time: usize) {
        self.released.store(time + 1, Ordering::SeqCst);
    }

    fn insist(&self, _time: usize) {
        let mut message = [0_u8; 512];
        while let Ok((bytes, peer)) = self.server.recv_from(&mut message) {
            message[2..4].copy_from_slice(&NO_SUCH_NAME);
            self.server.send_to(&message[..bytes], peer).unwrap();
        }
    }
}
