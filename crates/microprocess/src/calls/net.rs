//! Sockets whose waits occupy no kernel thread: with std's names and interfaces, and time limits.
//!
//! See [`io`](crate::calls::io) for how operations are performed. After its time limit an operation
//! fails with [`ErrorKind::TimedOut`](std::io::ErrorKind::TimedOut), without effect. Descriptors
//! stay in blocking mode, so they can be shared with other code.
//!
//! ```
//! use std::io::{Read, Write};
//! use kyocho_microprocess::{net::{TcpListener, TcpStream}, run, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! run(|| {
//!     let listener = TcpListener::bind("127.0.0.1:0")?;
//!     let address = listener.local_addr()?;
//!     let server = spawn(move || -> std::io::Result<()> {
//!         let (mut peer, _) = listener.accept()?;
//!         peer.write_all(b"hello")
//!     });
//!     let mut text = String::new();
//!     TcpStream::connect(address)?.read_to_string(&mut text)?;
//!     assert_eq!(text, "hello");
//!     server.join().unwrap()
//! })
//! .unwrap()
//! # }
//! ```

mod limit;
pub mod operation;
mod socket;
mod tcp;
mod udp;
mod unix;

pub use core::net::SocketAddr;
pub use std::net::{Shutdown, ToSocketAddrs};
pub use tcp::{Incoming, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix::{UnixDatagram, UnixListener, UnixStream};

#[cfg(test)]
mod tests;
