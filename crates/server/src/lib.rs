//! The doors of the Lisp Server: users connect at the same time, by several protocols, each to a
//! session of their own.
//!
//! ```text
//!   server     starts and stops: reads the configuration, opens the doors
//!      │
//!   doors      the table of doors: unix, ssh, nrepl, telnet; one file for each protocol, which
//!      │         implements the trait `Door`
//!      │
//!   entrance   identifies the user of a connection     getty   reads, evaluates and prints, for
//!      │                                                       protocols that carry lines of text
//!   register   the users of the configuration (`config`), and their accounts
//!
//!   jupyter    the kernel of one notebook, in a process of its own
//! ```
//!
//! **To add a protocol**, write a file in `doors/` and add its door to the table in `doors.rs`.
//! `door.rs` says what the file must contain.
//!
//! **Absent on purpose:** the command line, signals, line editing, and printing. The program that
//! runs a server boots the system itself and supplies a [`Console`] for messages. It also decides
//! when to call [`Server::reload`] and [`Server::stop`].

mod address;
pub mod comma;
mod config;
mod console;
mod context;
mod counter;
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
