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
//! The paper redirects every system call to an emulation library that calls the UNIX server. Here
//! the host's filter divides them. A call on what a program already *has* goes to the host, at the
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
//! **Invariant:** the server remembers nothing about processes beyond one call. The host keeps
//! their directory, their descriptors and their mask, inherits them at `fork` and frees them at the
//! end.
//!
//! **Invariant:** a client has no descriptors but those it began with, those the server gave it,
//! and those made from these.
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
