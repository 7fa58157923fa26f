//! Thin, safe wrappers of Linux calls: one file for each kernel mechanism, without policy.
//!
//! Read in this order: [`error`] and [`fault`] (what every wrapper does), [`prim`] (the only access
//! to atomics, cells and threads), then the mechanism in question.
//!
//! **Invariant:** a wrapper reports failure by an [`error::Errno`], never by `errno`. A
//! microprocess may be preempted between a call and a read of `errno`, and continue on another
//! kernel thread.
//!
//! **Invariant:** no wrapper allocates unless its documentation says so: most run where the
//! interrupted code may hold the allocator's lock.
//!
//! Most functions that can fail also fail by an injected error ([`fault`]), even if their errors do
//! not list "Injected errors".

pub mod allocator;
pub mod arrivals;
pub mod at_exit;
pub mod barrier;
#[cfg(not(loom))] // runs in the host, where no model looks
pub mod bpf;
pub mod clock;
#[cfg(all(target_arch = "x86_64", not(loom)))] // its processes run the launcher of `arch`
pub mod confined;
pub mod descriptor;
pub mod directory;
pub mod error;
pub mod event;
pub mod fault;
#[cfg(not(loom))] // sleeps in the host, where no model looks
pub mod futex;
pub mod holder_only;
pub mod loopback;
pub mod mapping;
pub mod memory;
#[cfg(not(loom))] // mounts in the host, where no model looks
pub mod memory_filesystem;
#[cfg(not(loom))] // its thread sleeps in the host, where no model looks
pub mod opening;
#[cfg(not(loom))] // asks the host's memory, where no model looks
pub mod pagemap;
pub mod passing;
pub mod peer;
#[cfg(not(loom))] // sleeps in the host, where no model looks
pub mod pi;
pub mod poll;
pub mod prim;
pub mod process;
mod raw;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub mod remote;
#[cfg(not(loom))] // sleeps in the host, where no model looks
pub mod robust;
#[cfg(all(target_arch = "x86_64", not(loom)))] // `arch` has sequences for no other yet
pub mod rseq;
pub mod scheduling;
pub mod sealed;
#[cfg(not(loom))]
pub mod seccomp;
pub mod shared_file;
pub mod signal;
pub mod skip;
pub mod sleep;
pub mod standard_error;
#[cfg(not(loom))]
pub mod status;
#[cfg(not(loom))]
pub mod sysv;
pub mod task;
#[cfg(not(loom))] // models start threads of their own
pub mod thread;
mod thread_id;
pub mod timer;
#[cfg(not(loom))] // maps memory that no model sees
pub mod two_views;
#[cfg(not(loom))] // stops in the host, where no model looks
pub mod userfault;
