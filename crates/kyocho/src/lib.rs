//! Kyocho (協調, "cooperation"): an operating system at user level, as a library.
//!
//! This crate gathers the libraries of the project under one name. A cargo feature of the same
//! name adds each module; the first three are on by default. So are the features `io`, `net`,
//! `trace` and `control`, which add the modules of these names to `microprocess`.
//!
//! | module | what it is |
//! |---|---|
//! | `microprocess` | user-level threads with kernel upcalls (paper 1) |
//! | `gate` | calls between address spaces (paper 1, §4) |
//! | `tst` | test-and-set without atomic instructions, and locks (paper 0) |
//! | `pagetable` | page tables for 64-bit address spaces (paper 2) |
//! | `dsm` | shared memory across nodes (paper 3); feature `mpi` connects nodes by MPI as well |
//! | `lisp` | the Lisp Server (paper 4) |
//! | `unix` | a UNIX server for unmodified programs (paper 2) |
//!
//! Feature `full` adds them all. The command `kyocho` is the crate `kyocho-cli`.

#[cfg(feature = "dsm")]
pub use kyocho_dsm as dsm;
#[cfg(feature = "gate")]
pub use kyocho_gate as gate;
#[cfg(feature = "lisp")]
pub use kyocho_lisp as lisp;
#[cfg(feature = "microprocess")]
pub use kyocho_microprocess as microprocess;
#[cfg(feature = "pagetable")]
pub use kyocho_pagetable as pagetable;
#[cfg(feature = "tst")]
pub use kyocho_tst as tst;
#[cfg(feature = "unix")]
pub use kyocho_unix as unix;
