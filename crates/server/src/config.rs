//! The configuration: the users and their limits, in one TOML file.
//!
//! ```toml
//! listen = ["unix:/run/kyocho/serve.sock", "telnet:127.0.0.1:2323"]
//! telnet_user = "guest"        # the account of every telnet connection
//! nrepl_user = "ada"           # the account of editors that connect by TCP with the token
//! worlds = "/var/lib/kyocho"   # where (save-image) keeps a user's world for the next session
//!
//! [limits]              # the defaults; a user's own section may override each
//! memory_mib = 64
//!
//! [user.ada]
//! uid = 1000            # identifies the user at the Unix socket
//! keys = ["ssh-ed25519 AAAA... ada@home"]   # identify the user by SSH
//! memory_mib = 512
//! operator = true       # may install policies of the system
//!
//! [user.guest]
//!
//! [ssh]
//! connections = 1000
//! ```
//!
//! Without a file there is one user: the host's user that runs the server.
//!
//! A protocol may have entries of its own in the file: the key `NAME_user` and the table `[NAME]`.
//! Its [`Protocol`] says which. These entries are removed from the parsed file before the rest is
//! read.
//!
//! **Invariant:** only the user that runs the server may have `files`. The server opens a session's
//! files itself, with its own rights. With these rights a session could read all users' worlds, the
//! keys of images and of the SSH host, and the server's own memory.
//!
//! **Invariant:** the telnet user is not identified, so it has no user number, no keys, no files,
//! and may not install policies.

use crate::protocol::{ConfiguredUser, Protocol};
use crate::section::{ConfigMistake, Section, Settings};
use core::fmt;
use kyocho_lisp::account::Bounds;
use kyocho_microprocess::Priority;
use russh::keys::{Algorithm, PublicKey};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// A configuration that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The addresses to listen on, as written.
    pub(crate) listen: Vec<String>,
    /// The users of connections that do not identify one, by the name of the protocol.
    pub(crate) configured_users: BTreeMap<&'static str, String>,
    /// The values that protocols have read from their sections, by the name of the protocol.
    pub(crate) settings: BTreeMap<&'static str, Settings>,
    /// The folder of users' worlds.
    pub(crate) worlds: Option<PathBuf>,
    /// The users by name.
    pub(crate) users: BTreeMap<String, User>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// The user's number on the host, if any.
    pub(crate) uid: Option<u32>,
    /// The user's public keys for SSH.
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) bounds: Bounds,
}

/// The limits of a user, unless the file overrides them.
pub(crate) const DEFAULT: Bounds = Bounds {
    memory_bytes_max: 64 << 20,
    threads_max: 1000,
    ports_max: 32,
    sockets_max: 0,
    sessions_max: 8,
    priority_max: Priority::NORMAL,
    share: 1,
    files: false,
    operator: false,
};

/// Limit of sockets of the user that runs the server, if there is no file.
const OWNER_SOCKETS_MAX: usize = 32;

/// The file as it is written, without the entries of protocols.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTable {
    #[serde(default)]
    listen: Vec<String>,
    worlds: Option<PathBuf>,
    #[serde(default)]
    limits: UserTable,
    #[serde(default)]
    user: BTreeMap<Spanned<String>, UserTable>,
}

/// The keys of [`FileTable`].
const OWN_KEYS: [&str; 4] = ["listen", "worlds", "limits", "user"];

/// A user, or the default limits. The defaults have no `uid`, `keys` and `operator`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserTable {
    uid: Option<Spanned<u32>>,
    #[serde(default)]
    keys: Vec<Spanned<String>>,
    memory_mib: Option<Spanned<usize>>,
    threads: Option<usize>,
    ports: Option<usize>,
    sockets: Option<usize>,
    sessions: Option<usize>,
    priority: Option<Spanned<u8>>,
    share: Option<Spanned<u32>>,
    files: Option<bool>,
    operator: Option<Spanned<bool>>,
}

/// Least memory with which a session is usable.
const MEMORY_MIB_MIN: usize = 4;

/// The largest share of the processors.
const SHARE_MAX: u32 = 1000;

/// A mistake in a file, and its place.
#[derive(Debug)]
pub(crate) struct ConfigError {
    path: String,
    line: Option<usize>,
    message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// The entries of protocols in a file.
#[derive(Default)]
struct ProtocolEntries {
    users: Vec<(&'static Protocol, Spanned<String>)>,
    settings: BTreeMap<&'static str, Settings>,
}

impl ProtocolEntries {
    /// Removes the entries from `file` and reads them.
    fn take(
        file: &mut DeTable<'_>,
        protocols: impl Iterator<Item = &'static Protocol>,
    ) -> Result<Self, ConfigMistake> {
        let mut found = Self::default();
        let mut known: Vec<String> = OWN_KEYS.map(str::to_owned).to_vec();
        for protocol in protocols {
            known.extend(found.take_user(file, protocol)?);
            known.extend(found.take_section(file, protocol)?);
        }
        match file.keys().find(|key| !OWN_KEYS.contains(&key.get_ref().as_ref())) {
            None => Ok(found),
            Some(key) => {
                let (name, known) = (key.get_ref(), known.join("`, `"));
                Err((key.span(), format!("unknown field `{name}`, expected one of `{known}`")))
            }
        }
    }

    /// Takes out the key `NAME_user`, if the protocol has it. Returns the key.
    fn take_user(
        &mut self,
        file: &mut DeTable<'_>,
        protocol: &'static Protocol,
    ) -> Result<Option<String>, ConfigMistake> {
        if protocol.user == ConfiguredUser::None {
            return Ok(None);
        }
        let key = format!("{}_user", protocol.name);
        if let Some(value) = file.remove(key.as_str()) {
            self.users.push((protocol, text_of(&value)?));
        }
        Ok(Some(key))
    }

    /// Takes out the table `[NAME]`, if the protocol has it. Returns the key.
    fn take_section(
        &mut self,
        file: &mut DeTable<'_>,
        protocol: &'static Protocol,
    ) -> Result<Option<String>, ConfigMistake> {
        let Some(read) = protocol.read_section else { return Ok(None) };
        let section = file.remove(protocol.name).map(Section::new);
        self.settings.insert(protocol.name, read(section)?);
        Ok(Some(protocol.name.to_owned()))
    }
}

/// Checks that a value is a string.
fn text_of(value: &Spanned<DeValue<'_>>) -> Result<Spanned<String>, ConfigMistake> {
    match value.get_ref().as_str() {
        Some(text) => Ok(Spanned::new(value.span(), text.to_owned())),
        None => Err((value.span(), "expected a string".to_owned())),
    }
}

impl Config {
    /// The configuration that is used without a file: the user that runs the server may connect.
    pub(crate) fn of_owner(uid: u32, protocols: impl Iterator<Item = &'static Protocol>) -> Self {
        let owner = User {
            uid: Some(uid),
            keys: Vec::new(),
            bounds: Bounds {
                files: true,
                operator: true,
                sockets_max: OWNER_SOCKETS_MAX,
                ..DEFAULT
            },
        };
        let users = BTreeMap::from([("owner".to_owned(), owner)]);
        let mut config = Self {
            listen: Vec::new(),
            configured_users: BTreeMap::new(),
            settings: BTreeMap::new(),
            worlds: None,
            users,
        };
        for protocol in protocols {
            if protocol.user == ConfiguredUser::Trusted {
                config.configured_users.insert(protocol.name, "owner".to_owned());
            }
            if let Some(read) = protocol.read_section {
                let settings = read(None).expect("a missing section has no mistake");
                config.settings.insert(protocol.name, settings);
            }
        }
        config
    }

    /// Reads and checks a file.
    pub(crate) fn read(
        path: &Path,
        protocols: impl Iterator<Item = &'static Protocol>,
    ) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
            path: name.clone(),
            line: None,
            message: error.to_string(),
        })?;
        Self::parse(&text, kyocho_sys::peer::own_user(), protocols).map_err(|(place, message)| {
            let before = text.get(..place.start).unwrap_or(&text);
            ConfigError { path: name, line: Some(1 + before.matches('\n').count()), message }
        })
    }

    /// Parses the configuration of a server that the host's user `own` runs.
    fn parse(
        text: &str,
        own: u32,
        protocols: impl Iterator<Item = &'static Protocol>,
    ) -> Result<Self, ConfigMistake> {
        let complaint =
            |error: toml::de::Error| (error.span().unwrap_or_default(), error.message().to_owned());
        let mut file = DeTable::parse(text).map_err(complaint)?;
        let protocol_entries = ProtocolEntries::take(file.get_mut(), protocols)?;
        let written = FileTable::deserialize(Deserializer::from(file)).map_err(complaint)?;
        let defaults = written.limits.into_defaults()?.bounds(DEFAULT)?;
        let has_worlds = written.worlds.is_some();
        let users = users(written.user, defaults, own, has_worlds)?;
        let mut configured_users = BTreeMap::new();
        for (protocol, name) in protocol_entries.users {
            check_configured(protocol, &name, &users)?;
            configured_users.insert(protocol.name, name.into_inner());
        }
        let (listen, worlds, settings) =
            (written.listen, written.worlds, protocol_entries.settings);
        Ok(Self { listen, configured_users, settings, worlds, users })
    }

    /// The name of the user with this number on the host.
    pub(crate) fn user_of(&self, uid: u32) -> Option<&str> {
        let user = self.users.iter().find(|(_, user)| user.uid == Some(uid));
        user.map(|(name, _)| name.as_str())
    }
}

/// Checks the users of a file.
fn users(
    written: BTreeMap<Spanned<String>, UserTable>,
    defaults: Bounds,
    own: u32,
    has_worlds: bool,
) -> Result<BTreeMap<String, User>, ConfigMistake> {
    let mut users = BTreeMap::new();
    let mut uids = BTreeMap::new();
    for (name, user) in written {
        let has_files = has_worlds || !user.keys.is_empty();
        if has_files && !is_file_name(name.get_ref()) {
            let message =
                "with `worlds` or `keys`, a user's name is letters, digits, `_`, `-` and `.`";
            return Err((name.span(), message.to_owned()));
        }
        if let Some(uid) = &user.uid
            && let Some(other) = uids.insert(*uid.get_ref(), name.get_ref().clone())
        {
            return Err((uid.span(), format!("uid {} belongs to {other} already", uid.get_ref())));
        }
        let uid = user.uid.as_ref().map(|uid| *uid.get_ref());
        let keys = user.keys.iter().map(public_key).collect::<Result<_, _>>()?;
        let operator = user.operator.as_ref().is_some_and(|operator| *operator.get_ref());
        let bounds = Bounds { operator, ..user.bounds(defaults)? };
        if bounds.files && uid != Some(own) {
            let (place, user) = (name.span(), name.get_ref());
            return Err((place, only_the_server_has_files(user, own)));
        }
        users.insert(name.into_inner(), User { uid, keys, bounds });
    }
    Ok(users)
}

/// Refuses a user that does not exist, or has rights that unidentified clients must not get.
fn check_configured(
    protocol: &Protocol,
    name: &Spanned<String>,
    users: &BTreeMap<String, User>,
) -> Result<(), ConfigMistake> {
    let Some(user) = users.get(name.get_ref()) else {
        return Err((name.span(), format!("there is no [user.{}]", name.get_ref())));
    };
    let has_rights = user.uid.is_some() || !user.keys.is_empty() || user.bounds.operator;
    if protocol.user == ConfiguredUser::Unidentified && has_rights {
        let message = format!(
            "the {}_user must have no uid, keys, files or operator: every process on this machine \
             can use it",
            protocol.name
        );
        return Err((name.span(), message));
    }
    Ok(())
}

/// The message if `files` is set for a user other than the server's own.
fn only_the_server_has_files(user: &str, own: u32) -> String {
    format!(
        "{user} may not have files: sessions open files with the rights of the server's own user. \
         Only the user with `uid = {own}` may have `files`"
    )
}

/// Parses a line of a `.pub` file, as `ssh-keygen` writes it.
fn public_key(line: &Spanned<String>) -> Result<PublicKey, ConfigMistake> {
    let wrong = |message: String| (line.span(), message);
    let key = PublicKey::from_openssh(line.get_ref())
        .map_err(|error| wrong(format!("not a public key as in a .pub file: {error}")))?;
    if matches!(key.algorithm(), Algorithm::Rsa { .. } | Algorithm::Dsa) {
        let name = key.algorithm();
        return Err(wrong(format!(
            "{name} keys are not accepted: make one with ssh-keygen -t ed25519"
        )));
    }
    Ok(key)
}

/// Whether the name can be part of the names of a user's files (world, history).
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

impl UserTable {
    /// Refuses keys that identify one user or give rights to one user.
    fn into_defaults(self) -> Result<Self, ConfigMistake> {
        let (uid, key) = (self.uid.as_ref().map(Spanned::span), self.keys.first());
        let operator = self.operator.as_ref().map(Spanned::span);
        let own = [("uid", uid), ("keys", key.map(Spanned::span)), ("operator", operator)];
        match own.into_iter().find_map(|(name, place)| Some((name, place?))) {
            Some((name, place)) => {
                Err((place, format!("`{name}` belongs in the section of one user")))
            }
            None => Ok(self),
        }
    }

    /// The user's limits. Those that are not written are taken from `defaults`.
    fn bounds(self, defaults: Bounds) -> Result<Bounds, ConfigMistake> {
        let mut bounds = defaults;
        if let Some(mib) = self.memory_mib {
            if *mib.get_ref() < MEMORY_MIB_MIN || *mib.get_ref() > usize::MAX >> 20 {
                return Err((mib.span(), format!("memory_mib must be at least {MEMORY_MIB_MIN}")));
            }
            bounds.memory_bytes_max = mib.get_ref() << 20;
        }
        if let Some(level) = self.priority {
            let out_of_range = || (level.span(), "priority must be 0 to 63".to_owned());
            bounds.priority_max = Priority::new(*level.get_ref()).ok_or_else(out_of_range)?;
        }
        if let Some(share) = self.share {
            if !(1..=SHARE_MAX).contains(share.get_ref()) {
                return Err((share.span(), format!("share must be 1 to {SHARE_MAX}")));
            }
            bounds.share = *share.get_ref();
        }
        bounds.threads_max = self.threads.unwrap_or(bounds.threads_max);
        bounds.ports_max = self.ports.unwrap_or(bounds.ports_max);
        bounds.sockets_max = self.sockets.unwrap_or(bounds.sockets_max);
        bounds.sessions_max = self.sessions.unwrap_or(bounds.sessions_max);
        bounds.files = self.files.unwrap_or(bounds.files);
        Ok(bounds)
    }
}

#[cfg(test)]
mod tests;
