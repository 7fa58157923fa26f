//! The error of a run in a deadlock: which microprocesses waited, and for what.

use core::fmt;

use crate::processor::record::{Reason, State};
use crate::processor::shared::Shared;
use crate::wait::sync;

/// The error of a run in which nothing was runnable or pending, and `main` had not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// The waiting microprocesses, oldest first.
    pub waiting: Vec<Waiting>,
}

/// A microprocess in a deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its id.
    pub id: u64,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The level of its priority.
    pub level: u8,
    /// What it waited for.
    pub reason: Reason,
    /// If it waited for a mutex: the id of the microprocess that held the mutex.
    pub held_by: Option<u64>,
}

/// The most waiting microprocesses that the text lists.
const LISTED_MAX: usize = 100;

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "deadlock: nothing is runnable and nothing pending; {} wait:",
            self.waiting.len()
        )?;
        for Waiting { id, name, level, reason, held_by } in self.waiting.iter().take(LISTED_MAX) {
            let name = name.as_deref().unwrap_or("(no name)");
            write!(f, "\n  microprocess {id} {name}, priority {level}, waits for {reason}")?;
            if let Some(holder) = held_by {
                write!(f, ", held by microprocess {holder}")?;
            }
        }
        if self.waiting.len() > LISTED_MAX {
            write!(f, "\n  and {} more", self.waiting.len() - LISTED_MAX)?;
        }
        Ok(())
    }
}

impl core::error::Error for Deadlock {}

/// The waiting microprocesses of a runtime in which nothing runs, and what they wait for.
pub(super) fn waiting_in(shared: &'static Shared) -> Vec<Waiting> {
    let parked = shared.records().filter(|record| record.state.get() == State::Parked);
    let mut waiting: Vec<Waiting> = parked
        .map(|record| Waiting {
            id: record.id(),
            name: record.name.get().as_str().map(str::to_owned),
            level: record.level(),
            reason: record.reason.get(),
            held_by: sync::holder_of(record.reason.get()),
        })
        .collect();
    waiting.sort_by_key(|waiting| waiting.id);
    waiting
}
