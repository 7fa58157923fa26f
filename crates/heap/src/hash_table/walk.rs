//! Walks over whole tables in slices. Between two slices the spin bit is free and collections may
//! run.
//!
//! A walk visits every association that exists from its beginning to its end, exactly once. For
//! concurrent changes it sees the state before or after.

use super::{COUNT, DELETED, Table, make, make_weak, procedures};
use crate::heap::Mutator;
use crate::heap::pause::PART;
use crate::raise::Result;
use crate::value::Value;
use core::ops::Range;

/// The associations of a table, oldest first.
#[derive(Debug)]
pub struct Walk {
    table: Value,
    /// The ranges still to be read. An entry that moves also stays in the old storage, so the walk
    /// can still read it.
    ranges: Vec<(Value, Range<usize>)>,
}

impl Walk {
    /// Starts a walk and releases the spin bit.
    pub fn over(table: Table) -> Self {
        Self { table: table.object, ranges: table.ranges() }
    }

    /// The associations of the next slice; `None` at the end.
    pub fn next_part(&mut self) -> Option<Vec<(Value, Value)>> {
        let (entries, range) = self.ranges.iter_mut().find(|(_, range)| !range.is_empty())?;
        let part = range.start..range.end.min(range.start + PART);
        range.start = part.end;
        let table = Table::lock(self.table)?;
        let associations = part
            .filter(|&entry| table.key(*entries, entry) != DELETED)
            .map(|entry| (table.key(*entries, entry), table.value(*entries, entry)));
        Some(associations.collect())
    }

    /// The values, besides the table, that a pause must keep for the walk.
    pub fn held(&self) -> impl Iterator<Item = Value> + '_ {
        self.ranges.iter().map(|(entries, _)| *entries)
    }
}

/// The number of associations in a table, which must be an argument of the primitive or kept.
/// Counts one by one if keys or values are weak.
///
/// # Errors
/// As [`Mutator::pause`].
pub fn count(m: &mut Mutator, table: Value) -> Result<usize> {
    let Some(locked) = Table::lock(table) else { return Ok(0) };
    if !locked.is_weak() {
        return Ok(locked.number(COUNT));
    }
    let mut walk = Walk::over(locked);
    let mut count = 0;
    while let Some(part) = walk.next_part() {
        count += part.len();
        m.pause_with(&mut walk.held().collect())?;
    }
    Ok(count)
}

/// A table with the same associations.
///
/// # Errors
/// Out of memory, or those of [`Mutator::pause`].
pub fn copy(m: &mut Mutator, table: Table) -> Result {
    let (equivalence, weakness) = (table.equivalence, table.weakness);
    let procedures = procedures(table.object);
    let capacity = if table.is_weak() { 0 } else { table.number(COUNT) };
    let mut walk = Walk::over(table);
    let mut held: Vec<Value> = walk.held().collect();
    let new = m.keeping(&held, |m| make(m, equivalence, procedures, capacity))?;
    make_weak(new, weakness);
    held.push(new);
    m.keeping(&held, |m| {
        while let Some(part) = walk.next_part() {
            let kept: Vec<Value> = part.iter().flat_map(|&(key, value)| [key, value]).collect();
            m.keeping(&kept, |m| {
                part.iter().try_for_each(|&(key, value)| match Table::lock(new) {
                    Some(mut copy) => copy.set(m, key, value),
                    None => Ok(()),
                })
            })?;
            m.pause(&[])?;
        }
        Ok(new)
    })
}
