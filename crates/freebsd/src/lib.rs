//! The emulation library of the FreeBSD personality. It is in each client of the UNIX server that
//! runs a FreeBSD program (Paper 2).
//!
//! ```text
//!   program: syscall ──► host's filter: not from the library ──► SIGSYS ─► trap: number, words
//!                                      ─► dispatch ─► the host's call, made by the library
//!                                      ─► host's filter: native, served or refused, as for Linux
//!   program ◄── registers, carry ◄───────┘
//!
//!   signal ──► deliver: FreeBSD's frame ─► the program's handler ─► back into the host's frame
//! ```
//!
//! Paper 2's personalities are tables in front of one server, and so is this one. The program's own
//! process decides what a call means, without privileges. The filter and the server decide what it
//! may do, and they know no personality. A hostile program that changes this library gains nothing,
//! because it could make the host's calls itself.
//!
//! The library is entered through `trap` and [`begin`] alone. It has no thread-local storage (that
//! is the program's), allocates nothing, and takes no lock, because a signal may come at any time.
//!
//! **Invariant:** the code is at addresses that the client cannot map. Only calls from there reach
//! the host; all others trap.
//!
//! **Invariant:** memory of the program is copied in and out (`user`); no reference to it is made.
#![cfg_attr(not(test), no_std)]
#![cfg(target_arch = "x86_64")]

mod deliver;
mod dispatch;
mod errno;
mod files;
mod frame;
mod host;
mod kqueue;
mod masks;
pub mod names;
mod processes;
pub mod report;
mod same;
mod signals;
mod sockets;
mod space;
mod start;
mod stat;
mod sysctl;
mod terminals;
mod threads;
mod time;
mod user;
mod volumes;

use frame::{Context, Info};

/// The host's handler of calls that the filter trapped, and of a `SIGSYS` that was sent.
extern "C" fn trap(signal: u32, info: &Info, context: &mut Context) {
    const BY_FILTER: i32 = 1;
    if info.code == BY_FILTER {
        dispatch::serve(context);
    } else {
        deliver::deliver(signal, info, context);
    }
}

/// Starts the program that the launcher has mapped. `stack` is the host's first stack pointer.
pub fn begin(stack: u64) -> ! {
    start::start(stack)
}
