//! The UNIX server: runs unmodified Linux programs under a server of its own, at user level (Paper
//! 2).
//!
//! ```text
//!   client process                              server (microprocesses)            host
//!   ┌───────────────────────┐  on descriptors, memory, threads, time: natively ──────►
//!   │ program               │  names anything: a path, a process, an address
//!   │                       │ ────────────────► checks, does it, hands a
//!   │ launcher (read-only)  │ ◄──────────────── descriptor or a value back
//!   └───────────────────────┘
//! ```
//!
//! Lites, the paper's server, redirects every system call to an emulation library that calls the
//! server. Here the host's filter divides them. A call on what a program already *has* goes to the host, at the
//! host's cost, because it harms no other process even if the program is hostile. A call that
//! *names* something new is served: the host carries it to the server (`SECCOMP_RET_USER_NOTIF`)
//! with the argument words as they were in the registers. Descriptors are the host's, handed over
//! by the server, so reading, writing, pipes, forking and waiting have the host's cost.
//!
//! The folders are layers, each of which imports only from itself and from those below it.
//! `ARCHITECTURE.md` lists them, and a test compares the imports with that list.
//!
//! Read `policy.rs`, `state/mounts.rs`, `paths/walk.rs`, `calls/exec.rs`, `server.rs` and
//! `life/warden.rs`, in this order.
//!
//! **Invariant:** the server remembers nothing about a process once a call of it is complete. A
//! diverted call is complete when the launcher has called back. The host keeps the directory, the
//! descriptors and the mask of each process, inherits them at `fork` and frees them at the end.
//!
//! **Invariant:** a client has descriptors of files and addresses only if it began with them, the
//! server gave them, another process sent them, or they were made from such descriptors. All others
//! come from native calls that name nothing, such as `pipe` and `eventfd`.
//!
//! **Invariant:** the server trusts nothing that it reads in a client. It copies once, checks the
//! copy, and uses the copy.
#![cfg(target_arch = "x86_64")]

mod calls;
mod clients;
mod errors;
mod life;
mod options;
mod paths;
mod policy;
mod program;
mod server;
mod state;

pub use life::start::run;
pub use options::{MountPoint, Network, Options, Outcome, Personality, StartError};
