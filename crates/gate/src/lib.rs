//! Gates: procedure calls between address spaces (Paper 1, §4 and §5).
//!
//! A [`Server`] listens on a path; a [`Client`] connects to it once, over a Unix socket that passes shared memory, and then calls
//! through that memory. The caller is a microprocess and so is whoever serves it, at the caller's priority.
//!
//! ```
//! use std::sync::Arc;
//! use kyocho_gate::{Call, Client, Failure, Server};
//!
//! fn double(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
//!     Ok(call.bytes().iter().map(|byte| byte * 2).collect())
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = std::env::temp_dir().join(format!("kyocho-gate-doc-{}", std::process::id()));
//! kyocho_microprocess::run(|| -> Result<(), kyocho_gate::Error> {
//!     let server = Server::builder().bind(&path, Arc::new(double))?;
//!     let client = Client::connect(&path)?;
//!     assert_eq!(client.call(0, &[1, 2, 3])?, [2, 4, 6]);
//!     drop(client);
//!     drop(server);
//!     Ok(())
//! })??;
//! # Ok(()) }
//! ```
//!
//! # The scheme
//!
//! The paper's kernel moves the caller's kernel thread into the server's address space. Linux moves no thread; what is kept is what the paper
//! gains by it: no scheduler decides anything between the call and its service. The server's virtual processor itself looks at the call frames
//! ([`bell`](kyocho_microprocess::bell)), so the kernel thread that finds a call is the one that serves it; and where both sides share a
//! core, the caller's hands the core over and gets it back by the reply.
//!
//! ```text
//!   client                                frame (shared)                 server
//!   takes a frame (a credit)              replied n
//!   copies the request in, its level      requested n+1  ──── ring ────► worker n wakes at that level
//!   spins, hands the core over, or parks                                 copies the request out, checks, serves
//!   copies the reply out, checks          replied n+1    ◄─── ring ───── copies the reply in
//! ```
//!
//! The state word and what may happen to it are [`protocol`], a pure step function; [`frame`] lays frames out in memory; `worker` and
//! [`Client`] are the two sides; `keeper`, one kernel thread a connection and side, sleeps on the socket and says when the other
//! side is gone.
//!
//! **Invariant:** what lies in shared memory is an allegation: each side copies, checks once, and keeps its own count of calls. A peer that
//! breaks the protocol loses its connection, nothing else.
//!
//! **Invariant:** a frame belongs to one caller from the request to the reply, even if the caller gives up: it is free again only when the
//! server has answered.
//!
//! **Bounds:** [`CREDITS_MAX`] calls of one client at a time, [`INLINE_BYTES_MAX`] bytes inline, [`REGIONS_MAX`] regions of at most
//! [`REGION_BYTES_MAX`] bytes; further callers of the client wait for a frame.

mod client;
mod error;
pub mod frame;
mod handshake;
mod keeper;
pub mod protocol;
mod region;
mod server;
mod service;
mod state;
pub mod typed;
mod worker;

pub use kyocho_gate_macros::interface;

pub use client::{Client, Target};
pub use error::{Error, Failure};
pub use frame::{CREDITS_MAX, INLINE_BYTES_MAX};
pub use region::{REGION_BYTES_MAX, REGIONS_MAX, Region, Slice};
pub use server::{Server, ServerBuilder};
pub use service::{Call, Handle, ROOT, Service};
