//! The users of the server and their accounts. An account outlives a change of the configuration.

use crate::config::Config;
use crate::counter::Counter;
use crate::protocol::Protocol;
use crate::worlds::World;
use kyocho_lisp::account::Account;
use russh::keys::PublicKey;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The users of a server.
#[derive(Debug)]
pub(crate) struct Register {
    state: Mutex<State>,
    /// Notifies of each new configuration.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    config: Config,
    /// The world of users who have none of their own.
    first_world: Option<PathBuf>,
    /// Accounts by user name. A user who was removed from the configuration keeps the open
    /// sessions.
    accounts: HashMap<String, Arc<Account>>,
    /// Counts connections by protocol and by user, across changes of the configuration.
    connections: HashMap<(&'static str, String), Arc<Counter>>,
}

impl Register {
    pub(crate) fn new(config: Config, first_world: Option<PathBuf>) -> Self {
        let (accounts, connections) = (HashMap::new(), HashMap::new());
        let state = Mutex::new(State { config, first_world, accounts, connections });
        Self { state, changed: watch::Sender::new(()) }
    }

    /// Where to find the world of a user's sessions.
    pub(crate) fn world_of(&self, name: &str) -> World {
        let state = self.lock();
        let own = state.config.worlds.as_ref().map(|folder| folder.join(format!("{name}.image")));
        World { own, first: state.first_world.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the configuration. New limits also apply to open sessions.
    pub(crate) fn replace(&self, config: Config) {
        let mut state = self.lock();
        for (name, user) in &config.users {
            if let Some(account) = state.accounts.get(name) {
                account.set_bounds(user.bounds);
            }
        }
        state.config = config;
        drop(state);
        self.changed.send_replace(());
    }

    /// Receives a notice of each later change of the configuration.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The account of the host's user with this number.
    pub(crate) fn account_of_uid(&self, uid: u32) -> Option<Arc<Account>> {
        let mut state = self.lock();
        let name = state.config.user_of(uid)?.to_owned();
        state.account(&name)
    }

    /// The account of a user who has been identified.
    pub(crate) fn account_of(&self, name: &str) -> Option<Arc<Account>> {
        self.lock().account(name)
    }

    /// The account of the user that the key `NAME_user` of the configuration names for a protocol.
    pub(crate) fn configured_account(&self, protocol: &Protocol) -> Option<Arc<Account>> {
        let mut state = self.lock();
        let name = state.config.configured_users.get(protocol.name)?.clone();
        state.account(&name)
    }

    /// Whether this is one of the user's keys.
    pub(crate) fn knows_key(&self, name: &str, key: &PublicKey) -> bool {
        let state = self.lock();
        let keys = state.config.users.get(name).map_or(&[][..], |user| &user.keys);
        keys.iter().any(|own| own.key_data() == key.key_data())
    }

    /// Whether any user has a key.
    pub(crate) fn has_keys(&self) -> bool {
        self.lock().config.users.values().any(|user| !user.keys.is_empty())
    }

    /// The values that a protocol has read from its section of the configuration. `None` if it has
    /// no section.
    ///
    /// # Panics
    /// The protocol has read its section as another type than `T`.
    pub(crate) fn settings<T: Send + Sync + 'static>(&self, protocol: &Protocol) -> Option<Arc<T>> {
        let settings = Arc::clone(self.lock().config.settings.get(protocol.name)?);
        Some(
            settings
                .downcast()
                .expect("`T` is the type as which the protocol has read its section"),
        )
    }

    /// Counts the connections of the user `whose` by this protocol.
    pub(crate) fn connections(&self, protocol: &Protocol, whose: &str) -> Arc<Counter> {
        let key = (protocol.name, whose.to_owned());
        Arc::clone(self.lock().connections.entry(key).or_default())
    }
}

impl State {
    fn account(&mut self, name: &str) -> Option<Arc<Account>> {
        let bounds = self.config.users.get(name)?.bounds;
        let made = || Account::new(name, bounds);
        Some(Arc::clone(self.accounts.entry(name.to_owned()).or_insert_with(made)))
    }
}
