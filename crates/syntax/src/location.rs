//! Top-level locations and their lifetimes.
//!
//! ```text
//!   environment, core form ──names──> location ──> value ──> closure ──> code
//!                                        ^                                │ refers to
//!                                        └────────────────────────────────┘
//! ```
//!
//! A location is *named* while an environment or a core form refers to it. Its value is then a root
//! of the collector. A location that is no longer named is kept alive by code that refers to it,
//! like any object: marking the code marks its value. So a location is freed with the last
//! environment and the last code that refer to it, even if its value leads back to itself. A value
//! may also lead to the environment that names its location. Such an environment is freed when its
//! session ends.
//!
//! The system's locations live as long as the process. All code may refer to them, so they are not
//! counted.
//!
//! Locations are not objects of the heap, because the expander makes them and has no heap. The
//! content of a location is a plain word here. The heap defines which value the word denotes, and
//! the machine reads and writes it through the location's address.

use crate::symbol::Symbol;
use core::ops::Deref;
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory charged for a location of a session: the location, its reference counts, and its entry in
/// the list of locations.
pub const LOCATION_BYTES: usize = size_of::<Global>() + 3 * size_of::<usize>();

/// The word of a location without a value.
pub const UNBOUND: u64 = 0x606;

/// A top-level location: a name and a value.
#[derive(Debug)]
pub struct Global {
    /// Its name as the user wrote it, for messages.
    pub name: Symbol,
    /// The word of its value; initially [`UNBOUND`].
    word: AtomicU64,
    /// Number of [`Location`]s that refer to it.
    names: AtomicUsize,
    /// Number of locations in the system.
    total: Arc<AtomicUsize>,
}

impl Global {
    fn new(name: Symbol, total: &Arc<AtomicUsize>) -> Self {
        total.fetch_add(1, Ordering::Relaxed);
        let word = AtomicU64::new(UNBOUND);
        Self { name, word, names: AtomicUsize::new(0), total: Arc::clone(total) }
    }

    /// The current word; [`UNBOUND`] before the first write.
    #[inline(always)]
    #[must_use]
    pub fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// Writes the word. Only the heap may call this: it must report the overwritten value to the
    /// collector.
    #[inline(always)]
    pub fn set_word(&self, word: u64) {
        self.word.store(word, Ordering::Release);
    }

    /// Its address, which code contains.
    #[must_use]
    pub fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        self.total.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reference to a location from an environment or a core form.
#[derive(Clone, Debug)]
pub struct Location(Reference);

#[derive(Clone, Debug)]
enum Reference {
    /// A location of the system, which is never freed.
    System(&'static Global),
    /// A location of a session.
    Own(Named),
}

/// A counted reference, which makes the location a named one.
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
            Reference::System(global) => global,
            Reference::Own(Named(global)) => global,
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
    /// The count that code referring to the location must hold. `None` for a location of the
    /// system.
    #[must_use]
    pub fn counted(&self) -> Option<&Arc<Global>> {
        match &self.0 {
            Reference::System(_) => None,
            Reference::Own(Named(global)) => Some(global),
        }
    }

    /// A reference to a location of the system.
    #[must_use]
    pub fn of_system(global: &'static Global) -> Self {
        Self(Reference::System(global))
    }
}

/// The locations of one world; roots of the collector.
#[derive(Debug, Default)]
pub struct Globals {
    system: Mutex<Vec<&'static Global>>,
    own: Mutex<Vec<Arc<Global>>>,
    total: Arc<AtomicUsize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Globals {
    /// The locations of another world of the same system. Initially there are none.
    pub(crate) fn of_same_system(&self) -> Self {
        Self { total: Arc::clone(&self.total), ..Self::default() }
    }

    /// A new, unbound location.
    pub fn make(&self, name: Symbol) -> Location {
        let global = Arc::new(Global::new(name, &self.total));
        let location = Location(Reference::Own(Named::new(Arc::clone(&global))));
        lock(&self.own).push(global);
        location
    }

    /// A new, unbound location of the system.
    pub(crate) fn make_lasting(&self, name: Symbol) -> Location {
        let global: &'static Global = Box::leak(Box::new(Global::new(name, &self.total)));
        lock(&self.system).push(global);
        Location::of_system(global)
    }

    /// The system's locations in the order of their creation.
    #[must_use]
    pub fn system(&self) -> Vec<&'static Global> {
        lock(&self.system).clone()
    }

    /// Calls `visit` with each named location, and forgets the others, which only code refers to
    /// now.
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

    /// Bytes of the session's named locations.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        lock(&self.own).len() * LOCATION_BYTES
    }

    /// Calls `visit` with each location of the session, in the order of their creation.
    pub fn for_each_own(&self, mut visit: impl FnMut(&Global)) {
        lock(&self.own).iter().for_each(|global| visit(global));
    }

    /// Number of locations in the system, in all of its worlds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}
