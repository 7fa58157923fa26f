//! The UNIX server: runs unmodified Linux programs under a server of its own, at user level (Paper 2).
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
//! The paper redirects every system call to an emulation library that calls the UNIX server. Here the host's filter divides them: what a hostile
//! program may do with what it *has* is left to the host, at the host's cost; what *names* something new is a call of the server, carried by the host
//! (`SECCOMP_RET_USER_NOTIF`) with the argument words as they were in the registers. Descriptors are the host's, handed over by the server; so reading,
//! writing, pipes, forking and waiting cost what they cost anyway.
//!
//! Read `policy` (which calls go where), `mounts` and `walk` (what a path means), `exec` (how a program comes in), `server`, `warden` (how it ends).
//!
//! **Invariant:** the server remembers nothing about processes beyond one call. Their directory, their descriptors, their mask are the host's, which
//! inherits and frees them.
//!
//! **Invariant:** a client has no descriptor but those it began with, those the server gave it, and those made from these.
//!
//! **Invariant:** the server trusts nothing that it reads in a client: it copies once, checks the copy, uses the copy.
#![cfg(target_arch = "x86_64")]

mod addresses;
mod admission;
mod attributes;
mod belongings;
mod client;
mod cpu;
mod devices;
mod directories;
mod dispatch;
mod elf;
mod exec;
mod extended;
mod files;
mod filesystems;
mod freebsd;
mod front;
mod instance;
mod ipc;
mod launcher;
mod life;
mod memory_files;
mod messages;
mod mounts;
mod names;
mod naming;
mod news;
mod plan;
mod policy;
mod proc;
mod processes;
mod running;
mod server;
mod shared_memory;
mod sites;
mod sockets;
mod trace;
mod walk;
mod warden;
mod watches;

pub use instance::{MountPoint, Options, Personality, StartError, run};
pub use server::Network;
pub use warden::Outcome;
