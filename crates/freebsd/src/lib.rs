//! The emulation library of the FreeBSD personality: it stands in each client of the UNIX server that runs a FreeBSD program (Paper 2).
//!
//! ```text
//!   program: syscall ──► host's filter: not the library's ──► SIGSYS ─► trap: number, words ─► dispatch ─► the host's call, made here ─► host's filter:
//!   program ◄── registers, carry ◄────────────────────────────────────────────┘                             native, served or refused as for Linux programs
//!
//!   signal ──► deliver: FreeBSD's frame ─► the program's handler ─► back into the host's frame
//! ```
//!
//! Paper 2's personalities are tables in front of one server: so here. What a call means is decided in the program's own process, without a privilege; what
//! it may do, by the filter and the server, which know no personality. A hostile program that changes this library gains nothing: it could make the host's calls
//! itself.
//!
//! Entered from `trap` and [`begin`] alone. It has no thread-local storage (that is the program's), allocates nothing, and takes no lock: a signal
//! may come anywhere.
//!
//! **Invariant:** the code stands where no client can map, and only calls from there reach the host; all others trap.
//!
//! **Invariant:** memory of the program is copied in and out (`user`), never referred to.
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

/// The host's handler of calls that the filter stopped, and of `SIGSYS` that somebody sent.
extern "C" fn trap(signal: u32, info: &Info, context: &mut Context) {
    const BY_FILTER: i32 = 1;
    if info.code == BY_FILTER {
        dispatch::serve(context);
    } else {
        deliver::deliver(signal, info, context);
    }
}

/// Begins the program that the launcher has mapped; `stack` is as the host gave it.
pub fn begin(stack: u64) -> ! {
    start::start(stack)
}
