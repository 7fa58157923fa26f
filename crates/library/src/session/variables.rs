//! Environment variables of a session: those of the process, with the session's own changes.
//! Programs that it starts get the same.
//!
//! The process's own environment is never written, because the C library reads it from any kernel
//! thread without a lock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes of names and values that a session may change: as much as the host
/// accepts for a single one.
const BYTES_MAX: usize = 128 * 1024;

/// A session's changes by name. A removed variable has no value.
#[derive(Debug, Default)]
pub struct Variables(Mutex<BTreeMap<String, Option<String>>>);

/// The error if there is no room for more changes.
#[derive(Debug)]
pub struct Full;

impl Variables {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The variables of threads without a session.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The value of a variable, if it has one.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        match self.lock().get(name) {
            Some(changed) => changed.clone(),
            None => std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        }
    }

    /// Every variable that has a value.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        let changes = self.lock();
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let inherited = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let mut all: Vec<_> = inherited.filter(|(name, _)| !changes.contains_key(name)).collect();
        let own = changes.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        all.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    /// The changes.
    pub(crate) fn changes(&self) -> Vec<(String, Option<String>)> {
        self.lock().iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Sets a variable, or removes it.
    ///
    /// # Errors
    /// The changes exceed [`BYTES_MAX`] bytes. Nothing has changed.
    pub(crate) fn set(&self, name: &str, value: Option<&str>) -> Result<(), Full> {
        let mut changes = self.lock();
        let bytes = |(name, value): (&String, &Option<String>)| {
            name.len() + value.as_ref().map_or(0, String::len)
        };
        let others: usize = changes.iter().filter(|(other, _)| *other != name).map(bytes).sum();
        if others + name.len() + value.map_or(0, str::len) > BYTES_MAX {
            return Err(Full);
        }
        changes.insert(name.to_owned(), value.map(str::to_owned));
        Ok(())
    }
}
