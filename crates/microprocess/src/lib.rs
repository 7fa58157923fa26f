//! Microprocesses.
