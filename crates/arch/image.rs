//! The part of this crate that stands in clients of the UNIX server: what the image of a foreign personality is linked from. Nothing else is, for its sections
//! would come along.
#![no_std]

#[path = "src/x86_64/emulation.rs"]
pub mod emulation;
#[path = "src/x86_64/launcher.rs"]
pub mod launcher;
#[path = "src/x86_64/system_call.rs"]
mod system_call;

pub use system_call::system_call;
