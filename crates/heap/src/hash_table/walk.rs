//! Whole tables, read in parts: between two parts the spin bit is free, and collections go by.
//!
//! A walk meets every association that is there from its begin to its end, once. Of what others
//! change meanwhile it sees the state before or after.

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
    /// What is still to be read. Entries that have moved are left as they were.
    ranges: Vec<(Value, Range<usize>)>,
}

impl Walk {
    /// Gives the spin bit back.
    pub fn over(table: Table) -> Self {
        Self { table: table.object, ranges: table.ranges() }
    }

    /// The associations of the next part; none at the end.
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

    /// What a pause must hold to go on with it, beside the table.
    pub fn held(&self) -> impl Iterator<Item = Value> + '_ {
        self.ranges.iter().map(|(entries, _)| *entries)
    }
}

/// How many associations a table has, which is an argument of the primitive or kept. Where keys or
/// values are weak, it counts them one by one.
///
/// # Errors
/// As [`Mutator::pause`] tells.
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
/// No memory; or as [`Mutator::pause`] tells.
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
