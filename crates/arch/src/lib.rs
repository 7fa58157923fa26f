//! All assembly of the workspace: what an instruction set must provide. One file for each
//! instruction set, with the same names in each.
//!
//! | name | what it is |
//! |---|---|
//! | [`prepare`], [`switch`], [`Context`] | switch from one stack to another |
//! | [`current_vp`], [`current_thread_word`] | two words of the *kernel thread*, read from memory at every call |
//! | [`restartable`] | sequences that a preemption nullifies and restarts (Paper 0) |
//! | `rseq` | the same, nullified by Linux whenever the thread leaves its CPU; not on `AArch64` yet |
//! | [`pc_of`], [`set_pc`], [`sp_of`], [`fp_of`] | what a signal handler reads and changes in the interrupted context |
//! | [`system_call`] | a call of the host kernel that does not change `errno` |
//! | `instruments` | notes to Valgrind and the sanitizers about stacks; not on `AArch64` yet |
//! | `launcher` | the code in every UNIX client that maps and enters programs (Paper 2); not on `AArch64` yet |
//! | `emulation` | support for a library in a client that translates another system's calls (Paper 2); not on `AArch64` yet |
//!
//! **Invariant:** nothing here allocates, has a policy, or knows what a microprocess is.
//!
//! **Invariant:** the compiler never caches the address of a kernel thread's words.
//! A microprocess may suspend on one kernel thread and resume on another, so an address of a
//! `thread_local!` computed before a switch is wrong after it, and the compiler may reuse it.
//! Each read here is one volatile block of assembly that computes the address again.
#![no_std]

#[cfg(test)]
extern crate std;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
use aarch64 as isa;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64 as isa;
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("this instruction set has no file in kyocho-arch yet: write one beside x86_64.rs");

#[cfg(target_arch = "x86_64")]
mod cpu;
#[cfg(feature = "mutants")]
pub mod mutant;
pub mod restartable;
#[cfg(target_arch = "x86_64")]
pub mod rseq;
#[cfg(target_arch = "x86_64")]
pub use isa::{emulation, instruments, launcher};

pub use isa::{
    Context, Suspended, current_thread_word, current_vp, current_vp_word, fp_of,
    is_beside_saved_pc, pc_of, prepare, set_current_thread_word, set_current_vp, set_pc, sp_of,
    switch, system_call,
};

#[cfg(test)]
mod tests;
