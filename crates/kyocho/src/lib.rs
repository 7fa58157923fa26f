//! Kyocho (協調, "cooperation"): an operating system at user level, as a library.
//!
//! This crate only gathers the rooms of the house; each has its own documentation:
//!
//! * [`microprocess`]: user-level threads with kernel upcalls (paper 1);
//! * [`gate`]: calls between address spaces (paper 1, §4);
//! * [`tst`]: test-and-set without atomic instructions (paper 0);
//! * [`dsm`]: shared memory across nodes (paper 3);
//! * [`lisp`]: the Lisp Server (paper 4).

pub use kyocho_dsm as dsm;
pub use kyocho_gate as gate;
pub use kyocho_lisp as lisp;
pub use kyocho_microprocess as microprocess;
pub use kyocho_tst as tst;
