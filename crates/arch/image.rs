//! The part of this crate that runs in clients of the UNIX server: the image of a foreign
//! personality is linked from it. It contains nothing else, because its sections would be linked,
//! too.
#![no_std]

#[path = "src/x86_64/emulation.rs"]
pub mod emulation;
#[path = "src/x86_64/launcher.rs"]
pub mod launcher;
#[path = "src/x86_64/system_call.rs"]
mod system_call;

pub use system_call::system_call;
