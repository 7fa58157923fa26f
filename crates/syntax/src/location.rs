//! Top-level locations: who has one, and when it goes.
//!
//! ```text
//!   environment, core form ──names──> location ──> value ──> closure ──> code ──refers to──> location
//! ```
//!
//! The value of a location that something names is a root. One that nothing names any more is kept by the code that refers to it, as any object
//! is, and so is its value: code marks it. So a location goes with the last environment and the last code that have it, also where its value
//! leads back to itself. An environment that one of its own locations leads to names them until its session ends.
//!
//! The system's own live as long as the process: all code refers to them, so that they need not be counted.
//!
//! They are no objects of the heap, for the expander makes them, and it has none. What a location holds is a word here; the heap says
//! which value the word is, and the machine reads and writes it by the location's address.

use crate::symbol::Symbol;
use core::ops::Deref;
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a session's location takes: itself, its counts, its place among all.
pub const LOCATION_BYTES: usize = size_of::<Global>() + 3 * size_of::<usize>();

/// The word of a location without a value.
pub const UNBOUND: u64 = 0x606;

/// A top-level location: a name and a value.
#[derive(Debug)]
pub struct Global {
    /// Its name as the user wrote it, for messages.
    pub name: Symbol,
    /// The value's word; starts as [`UNBOUND`].
    word: AtomicU64,
    /// How many [`Location`]s there are of it.
    names: AtomicUsize,
    /// How many locations there are.
    census: Arc<AtomicUsize>,
}

impl Global {
    fn new(name: Symbol, census: &Arc<AtomicUsize>) -> Self {
        census.fetch_add(1, Ordering::Relaxed);
        let word = AtomicU64::new(UNBOUND);
        Self { name, word, names: AtomicUsize::new(0), census: Arc::clone(census) }
    }

    /// The word that it holds; [`UNBOUND`] before anything is written.
    #[inline(always)]
    #[must_use]
    pub fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// Writes it. For the heap alone, which tells the collector what is overwritten.
    #[inline(always)]
    pub fn set_word(&self, word: u64) {
        self.word.store(word, Ordering::Release);
    }

    /// Its address, as code has it.
    #[must_use]
    pub fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        self.census.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A location that an environment or a core form names.
#[derive(Clone, Debug)]
pub struct Location(Holding);

#[derive(Clone, Debug)]
enum Holding {
    /// The system's, for ever.
    System(&'static Global),
    /// A session's.
    Own(Named),
}

/// Counted among the names of the location.
#[derive(Debug)]
struct Named(Arc<Global>);

impl Named {
    fn new(global: Arc<Global>) -> Self {
        global.names.fetch_add(1, Ordering::Relaxed);
        Self(global)
    }
}

impl Clone for Named {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.0.names.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for Location {
    type Target = Global;

    fn deref(&self) -> &Global {
        match &self.0 {
            Holding::System(global) => global,
            Holding::Own(Named(global)) => global,
        }
    }
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(&raw const **self, &raw const **other)
    }
}

impl Eq for Location {}

impl Location {
    /// What code that refers to it must keep, unless it is there for ever.
    #[must_use]
    pub fn counted(&self) -> Option<&Arc<Global>> {
        match &self.0 {
            Holding::System(_) => None,
            Holding::Own(Named(global)) => Some(global),
        }
    }

    /// One of the system's.
    #[must_use]
    pub fn of_system(global: &'static Global) -> Self {
        Self(Holding::System(global))
    }
}

/// The locations of one world: roots of the collector.
#[derive(Debug, Default)]
pub struct Globals {
    system: Mutex<Vec<&'static Global>>,
    own: Mutex<Vec<Arc<Global>>>,
    census: Arc<AtomicUsize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Globals {
    /// Those of another world of the same system: none yet.
    pub(crate) fn beside(&self) -> Self {
        Self { census: Arc::clone(&self.census), ..Self::default() }
    }

    /// A new location, unbound.
    pub fn make(&self, name: Symbol) -> Location {
        let global = Arc::new(Global::new(name, &self.census));
        let location = Location(Holding::Own(Named::new(Arc::clone(&global))));
        lock(&self.own).push(global);
        location
    }

    /// A new location of the system's, unbound.
    pub(crate) fn make_lasting(&self, name: Symbol) -> Location {
        let global: &'static Global = Box::leak(Box::new(Global::new(name, &self.census)));
        lock(&self.system).push(global);
        Location::of_system(global)
    }

    /// The system's, in the order in which they were made.
    #[must_use]
    pub fn system(&self) -> Vec<&'static Global> {
        lock(&self.system).clone()
    }

    /// Calls `visit` with each that is named. The others are the code's alone from now on.
    pub fn retain_named(&self, mut visit: impl FnMut(&Global)) {
        lock(&self.system).iter().for_each(|global| visit(global));
        lock(&self.own).retain(|global| {
            let is_named = global.names.load(Ordering::Relaxed) > 0;
            if is_named {
                visit(global);
            }
            is_named
        });
    }

    /// Bytes of those of the session that are named.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        lock(&self.own).len() * LOCATION_BYTES
    }

    /// Calls `visit` with each of the session's own, in the order in which they were made.
    pub fn for_each_own(&self, mut visit: impl FnMut(&Global)) {
        lock(&self.own).iter().for_each(|global| visit(global));
    }

    /// How many there are in the whole system, in all its worlds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.census.load(Ordering::Relaxed)
    }
}
