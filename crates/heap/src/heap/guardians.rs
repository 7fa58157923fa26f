//! Guardians: an object registered with a guardian is returned by it once the object is otherwise
//! unreachable (Dybvig, Bruggeman, Eby, 1993).
//!
//! ```text
//!   watched --unreachable, while the guardian is reachable--> saved: reachable by the guardian
//!   saved   --taken by the program--> an ordinary object
//! ```
//!
//! Watching does not keep an object alive. When all reachable objects are marked, ephemerons
//! included, all unmarked watched objects become saved at once. They are then marked with
//! everything reachable from them. Guardians found only by this marking save their objects
//! afterwards. So an ephemeron whose key was saved is not broken before the key has been taken and
//! has become unreachable again. An unreachable guardian saves nothing. Each guardian with its
//! objects is examined once in a collection, while the world is stopped.

use crate::heap::marker::Marker;
use crate::heap::{ForeignObject, Mutator, barrier};
use crate::raise::Result;
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// The guardian as a value, set once it exists.
    me: Option<Value>,
    watched: Vec<Value>,
    /// Saved objects, in order of registration.
    saved: VecDeque<Value>,
}

/// A guardian as Lisp refers to it.
#[derive(Debug, Default)]
pub struct Guardian(Mutex<State>);

impl Guardian {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an object. The object counts as reachable now, so a cycle in progress does not
    /// find it garbage.
    ///
    /// # Errors
    /// The account's limit is reached.
    pub fn watch(&self, m: &Mutator, object: Value) -> Result<()> {
        let mut state = self.state();
        if state.watched.len() == state.watched.capacity() {
            // The vector doubles, and all of its objects may have to be saved.
            m.charge(2 * size_of::<Value>() * state.watched.len().max(4))?;
        }
        state.watched.push(object);
        barrier::keep(object);
        Ok(())
    }

    /// A saved object, if there is one.
    pub fn take(&self) -> Option<Value> {
        let taken = self.state().saved.pop_front()?;
        barrier::overwrite(|| taken);
        Some(taken)
    }

    /// Saves the objects for which `is_live` is false, and adds them to `found`.
    fn save(&self, is_live: impl Fn(Value) -> bool, found: &mut Vec<Value>) {
        let mut state = self.state();
        let State { watched, saved, .. } = &mut *state;
        let begin = saved.len();
        watched.retain(|&object| {
            let stays = is_live(object);
            if !stays {
                saved.push_back(object);
            }
            stays
        });
        found.extend(saved.iter().skip(begin));
    }
}

impl ForeignObject for Guardian {
    fn trace(&self, marker: &mut Marker) {
        let state = self.state();
        state.saved.iter().for_each(|&object| marker.mark(object));
        if let Some(me) = state.me {
            marker.guardian(me);
        }
    }

    fn held_bytes(&self) -> usize {
        let state = self.state();
        let values = state.watched.capacity() + state.saved.capacity();
        size_of::<Self>() + size_of::<Value>() * values
    }
}

impl Mutator {
    /// A guardian without objects.
    ///
    /// # Errors
    /// Out of memory.
    pub fn guardian(&mut self) -> Result<Value> {
        let guardian = self.foreign(Box::new(Guardian::default()))?;
        if let Some(object) = guardian.as_foreign::<Guardian>() {
            object.state().me = Some(guardian);
        }
        Ok(guardian)
    }
}

impl Marker {
    /// Saves watched objects that are otherwise unreachable. All else is marked, and the world is
    /// stopped.
    pub(super) fn save_guarded(&mut self) {
        loop {
            let guardians = self.take_guardians();
            let mut found = Vec::new();
            for guardian in guardians.into_iter().filter_map(Value::as_foreign::<Guardian>) {
                guardian.save(|object| self.is_live(object), &mut found);
            }
            if found.is_empty() {
                return;
            }
            found.into_iter().for_each(|object| self.mark(object));
            self.run();
        }
    }
}
