//! Interned symbols. A symbol lives as long as the process, and its address is its identity.
//!
//! Cost: interning takes one lock of a sharded table; comparing is comparing addresses.
//!
//! Symbols are never freed, so their makers are charged for them: each kernel thread counts the
//! bytes of the symbols that it made.

use core::cell::Cell;
use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The data of a symbol. Aligned so that the low bits of its address are free for a tag.
#[derive(Debug)]
#[repr(align(16))]
pub struct SymbolData {
    name: Box<str>,
}

/// An interned name.
#[derive(Clone, Copy)]
pub struct Symbol(&'static SymbolData);

const SHARDS: usize = 16;

struct Table {
    hasher: RandomState,
    shards: [Mutex<HashMap<&'static str, Symbol>>; SHARDS],
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table {
    hasher: RandomState::new(),
    shards: core::array::from_fn(|_| Mutex::new(HashMap::new())),
});

/// Locks the part of the table that contains the name.
fn shard_of(name: &str) -> MutexGuard<'static, HashMap<&'static str, Symbol>> {
    let table = &*TABLE;
    let shard = &table.shards[table.hasher.hash_one(name) as usize % SHARDS];
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static MADE_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Bytes of a symbol besides its name: its data and its entry in the table.
const OWN_BYTES: usize = 64;

/// Whether this kernel thread has made symbols since the last [`take_made_bytes`].
#[must_use]
pub fn has_made() -> bool {
    MADE_BYTES.get() > 0
}

/// Bytes of the symbols that this kernel thread has made since the last call.
pub fn take_made_bytes() -> usize {
    MADE_BYTES.take()
}

fn make(name: &str) -> &'static SymbolData {
    MADE_BYTES.set(MADE_BYTES.get() + name.len() + OWN_BYTES);
    Box::leak(Box::new(SymbolData { name: name.into() }))
}

impl Symbol {
    /// The symbol called `name`. Makes it if it does not exist.
    #[must_use]
    pub fn intern(name: &str) -> Self {
        let mut shard = shard_of(name);
        if let Some(&symbol) = shard.get(name) {
            return symbol;
        }
        let data = make(name);
        shard.insert(&data.name, Self(data));
        Self(data)
    }

    /// The symbol called `name`, if it exists.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        shard_of(name).get(name).copied()
    }

    /// A new symbol that no reader can produce and no other call returns. `name` only appears in
    /// messages.
    #[must_use]
    pub fn uninterned(name: &str) -> Self {
        Self(make(name))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Its address, which is its identity; the low four bits are zero.
    #[must_use]
    pub fn address(self) -> usize {
        core::ptr::from_ref(self.0).addr()
    }

    /// The symbol's data, for making a tagged word.
    #[must_use]
    pub fn data(self) -> &'static SymbolData {
        self.0
    }

    /// The symbol with this data.
    #[must_use]
    pub fn from_data(data: &'static SymbolData) -> Self {
        Self(data)
    }
}

impl PartialEq for Symbol {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl Eq for Symbol {}

impl Hash for Symbol {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
