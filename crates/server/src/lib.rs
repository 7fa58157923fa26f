//! The doors of the Lisp Server: how many users reach their sessions at the same time, by the protocols that they have.
//!
//! ```text
//!   server     from the configuration to open doors; reading it again
//!      │
//!   doors      the table of doors: unix, ssh, nrepl, telnet ─ one file a protocol, behind one trait (`door`)
//!      │
//!   entrance   whose a connection is          getty   reads, evaluates, shows, for protocols of lines
//!      │
//!   register   users and their accounts, as the configuration (`config`) has them
//!
//!   jupyter    a kernel of one notebook, in a process of its own
//! ```
//!
//! **A new protocol** is a file in `doors/` and its name in the table there; `door.rs` says what it has to have.
//!
//! **Absent on purpose:** the command line, signals, editing of lines, and printing. A program that runs a server hands over a [`Console`],
//! boots the system itself, and calls [`Server::reload`] and [`Server::stop`] when it wants.

mod address;
pub mod comma;
mod config;
mod console;
mod context;
mod dialect;
mod door;
mod doors;
mod entrance;
mod evaluation;
pub mod frames;
mod getty;
mod heartbeat;
pub mod jupyter;
pub mod names;
mod notify;
mod protocol;
mod register;
mod room;
mod section;
mod server;
mod socket_file;
pub mod state;
mod wire;
mod worlds;

pub use address::Address;
pub use console::Console;
pub use doors::{forms_of_addresses, own_socket};
pub use server::{Plan, ServeError, Server};
