//! Guardians: whoever registers an object with one is given it when nothing else leads to it any more (Dybvig, Bruggeman, Eby, 1993).
//!
//! ```text
//!   watched --out of reach, while the guardian is not--> saved: reachable by the guardian --taken--> the program's again
//! ```
//!
//! What is watched is not kept by that. When all that is reachable is marked, ephemerons included, what guardians watch and was not found is
//! saved, all of it at once, and marked with what it leads to; guardians found only then save theirs after. So an ephemeron whose key was saved stays
//! whole, until the key was taken and let go. A guardian that is out of reach saves nothing. It is looked at once a collection, with what it watches,
//! while the threads stand.

use crate::heap::marker::Marker;
use crate::heap::{ForeignObject, Mutator, barrier};
use crate::raise::Result;
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// The guardian itself, known when it is made.
    me: Option<Value>,
    watched: Vec<Value>,
    /// What was found out of reach, in the order in which it was registered.
    saved: VecDeque<Value>,
}

/// A guardian as Lisp holds it.
#[derive(Debug, Default)]
pub struct Guardian(Mutex<State>);

impl Guardian {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches over an object. It is noted as one that is reachable now: a collection that goes on does not take it for garbage.
    ///
    /// # Errors
    /// When the heap's limit is reached; the thread is to end, or to stop.
    pub fn watch(&self, m: &Mutator, object: Value) -> Result<()> {
        let mut state = self.state();
        if state.watched.len() == state.watched.capacity() {
            // It doubles; and all may have to be saved.
            m.charge(2 * size_of::<Value>() * state.watched.len().max(4))?;
        }
        state.watched.push(object);
        barrier::keep(object);
        Ok(())
    }

    /// An object that was out of reach, if there is one.
    pub fn take(&self) -> Option<Value> {
        let taken = self.state().saved.pop_front()?;
        barrier::overwrite(|| taken);
        Some(taken)
    }

    /// Saves what `is_live` does not know; adds it to `found`.
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
    /// A guardian that watches nothing.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn guardian(&mut self) -> Result<Value> {
        let guardian = self.foreign(Box::new(Guardian::default()))?;
        if let Some(object) = guardian.as_foreign::<Guardian>() {
            object.state().me = Some(guardian);
        }
        Ok(guardian)
    }
}

impl Marker {
    /// Saves what guardians watch and nothing else leads to. All else is marked, and the world is stopped.
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
