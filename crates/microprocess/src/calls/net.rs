//! Sockets whose waits hold no kernel thread: std's names and shapes, with time limits.
//!
//! See [`io`](crate::calls::io) for how operations are carried out. A time limit that runs out is
//! [`ErrorKind::TimedOut`](std::io::ErrorKind::TimedOut), and what was asked for did not happen.
//! Descriptors stay in the kernel's blocking mode, so they can be shared with code that knows
//! nothing of this.
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
