//! Gates: procedure calls between address spaces (Paper 1, §4 and §5).
//!
//! A [`Server`] listens on a path. A [`Client`] connects to it once, over a Unix socket that passes
//! shared memory, and then calls through that memory. The caller is a microprocess; another
//! microprocess serves the call at the caller's priority.
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
//! The paper's kernel moves the caller's kernel thread into the server's address space. Linux
//! cannot move a thread. What the paper gains by the move is kept: no scheduler decides anything
//! between the call and its service. The server's virtual processor itself polls the call frames
//! ([`bell`](kyocho_microprocess::bell)), so the kernel thread that finds a call also serves it. If
//! both sides share a core, the caller's kernel thread yields the core to the server's, which
//! yields it back with the reply.
//!
//! ```text
//!   client                            frame (shared)              server
//!   takes a frame (a credit)          replied n
//!   copies the request in, its level  requested n+1 ── ring ──► worker n wakes at that level
//!   polls, yields the core, or parks                            copies the request out, checks it,
//!                                                               and serves
//!   copies the reply out, checks      replied n+1   ◄── ring ── copies the reply in
//! ```
//!
//! [`protocol`] defines the state word and its transitions as pure functions; [`frame`] is the
//! layout of frames in memory. [`Client`] and `server::worker` are the two sides. `liveness` has
//! the kernel threads that close a connection when its other side is gone.
//!
//! **Invariant:** data in shared memory is unchecked. Each side copies it, checks the copy once,
//! and counts calls itself. A peer that breaks the protocol loses its connection, and other
//! connections are unaffected.
//!
//! **Invariant:** a frame belongs to one call from the request to the reply. If the caller stops
//! waiting, the frame is free only after the server has answered.
//!
//! **Bounds:** [`CREDITS_MAX`] concurrent calls of one client (further callers wait for a frame),
//! [`INLINE_BYTES_MAX`] bytes inline, [`REGIONS_MAX`] regions of at most [`REGION_BYTES_MAX`]
//! bytes.

mod client;
mod error;
pub mod frame;
mod handle;
mod handshake;
mod liveness;
pub mod protocol;
mod server;
mod service;
mod slice;
mod state;
pub mod typed;

pub use kyocho_gate_macros::interface;

pub use client::{Client, Region, Target};
pub use error::{Error, Failure};
pub use frame::{CREDITS_MAX, INLINE_BYTES_MAX};
pub use handle::{Handle, ROOT};
pub use server::{Server, ServerBuilder};
pub use service::{Call, Service};
pub use slice::{REGION_BYTES_MAX, REGIONS_MAX, Slice};
