//! The configuration: who may come in, what each may have. One small TOML file.
//!
//! ```toml
//! listen = ["unix:/run/kyocho/serve.sock", "nrepl:unix:/run/kyocho/nrepl.sock", "telnet:127.0.0.1:2323"]
//! telnet_user = "guest"        # anybody on this machine is he
//! nrepl_user = "ada"           # whose editors that come by TCP are: they show a token
//! worlds = "/var/lib/kyocho"   # users' worlds: (save-image) keeps one there, his next session begins with it
//!
//! [limits]              # for everybody, where a user's own say nothing else
//! memory_mib = 64
//!
//! [user.ada]
//! uid = 1000            # who comes through the Unix socket
//! keys = ["ssh-ed25519 AAAA... ada@home"]   # who comes by SSH
//! memory_mib = 512
//! operator = true       # may install policies of the system
//!
//! [user.guest]
//!
//! [ssh]
//! connections = 1000
//! ```
//!
//! Without a file there is one user: whoever runs the server.
//!
//! **Invariant:** only the host's user who runs the server may have `files`. The server opens a session's files itself, with its own rights: these lead to
//! all users' worlds, to the keys of images and of the host, and to the server's own memory.
//! **Invariant:** the telnet user is nobody in particular: no number on the host, no key, no files, no say over policies.

use core::fmt;
use core::ops::Range;
use core::time::Duration;
use kyocho_lisp::account::Bounds;
use kyocho_microprocess::Priority;
use russh::keys::{Algorithm, PublicKey};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A configuration that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Where to listen, as written.
    pub(crate) listen: Vec<String>,
    /// Whose account a telnet connection has.
    pub(crate) telnet_user: Option<String>,
    /// Whose account an editor's connection has.
    pub(crate) nrepl_user: Option<String>,
    /// The folder of users' worlds.
    pub(crate) worlds: Option<PathBuf>,
    /// By name.
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) ssh: SshLimits,
}

/// How many SSH connections there may be, and for how long without a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SshLimits {
    pub(crate) connections_max: usize,
    pub(crate) connections_an_address_max: usize,
    pub(crate) login: Duration,
}

impl Default for SshLimits {
    fn default() -> Self {
        Self {
            connections_max: 1000,
            connections_an_address_max: 100,
            login: Duration::from_secs(20),
        }
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// His number on the host, where he has one.
    pub(crate) uid: Option<u32>,
    /// Public keys of his, for SSH.
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) bounds: Bounds,
}

/// What a user may have unless the file says otherwise.
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

/// Sockets of who runs the server, where there is no file.
const OWNER_SOCKETS_MAX: usize = 32;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    listen: Vec<String>,
    telnet_user: Option<Spanned<String>>,
    nrepl_user: Option<Spanned<String>>,
    worlds: Option<PathBuf>,
    #[serde(default)]
    limits: WrittenLimits,
    #[serde(default)]
    ssh: WrittenSsh,
    #[serde(default)]
    user: BTreeMap<Spanned<String>, WrittenUser>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenUser {
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
    #[serde(default)]
    operator: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLimits {
    memory_mib: Option<Spanned<usize>>,
    threads: Option<usize>,
    ports: Option<usize>,
    sockets: Option<usize>,
    sessions: Option<usize>,
    priority: Option<Spanned<u8>>,
    share: Option<Spanned<u32>>,
    files: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSsh {
    connections: Option<usize>,
    connections_an_address: Option<usize>,
    login_seconds: Option<Spanned<u64>>,
}

/// The longest that a client may take to prove who it is.
const LOGIN_SECONDS_MAX: u64 = 3600;

/// The least memory that a session does something useful with.
const MEMORY_MIB_MIN: usize = 4;

/// The largest share of the processors.
const SHARE_MAX: u32 = 1000;

/// What is wrong with a file, and where.
#[derive(Debug)]
pub(crate) struct Wrong {
    path: String,
    line: Option<usize>,
    message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Something wrong at a place in the text.
type Complaint = (Range<usize>, String);

impl Config {
    /// What holds without a file: the user who runs the server may come in.
    pub(crate) fn of_owner(uid: u32) -> Self {
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
        Self {
            listen: Vec::new(),
            telnet_user: None,
            nrepl_user: Some("owner".to_owned()),
            worlds: None,
            users,
            ssh: SshLimits::default(),
        }
    }

    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Wrong> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Wrong {
            path: name.clone(),
            line: None,
            message: error.to_string(),
        })?;
        Self::parse(&text, kyocho_sys::peer::own_user()).map_err(|(place, message)| {
            let before = text.get(..place.start).unwrap_or(&text);
            Wrong { path: name, line: Some(1 + before.matches('\n').count()), message }
        })
    }

    /// The configuration of a server that the host's user `own` runs.
    fn parse(text: &str, own: u32) -> Result<Self, Complaint> {
        let written: Written = toml::from_str(text)
            .map_err(|error| (error.span().unwrap_or_default(), error.message().to_owned()))?;
        let defaults = written.limits.bounds(DEFAULT)?;
        let mut users = BTreeMap::new();
        let mut uids = BTreeMap::new();
        for (name, user) in written.user {
            let has_files = written.worlds.is_some() || !user.keys.is_empty();
            if has_files && !is_file_name(name.get_ref()) {
                let message =
                    "with `worlds` or `keys`, a user's name is letters, digits, `_`, `-` and `.`";
                return Err((name.span(), message.to_owned()));
            }
            if let Some(uid) = &user.uid
                && let Some(other) = uids.insert(*uid.get_ref(), name.get_ref().clone())
            {
                return Err((uid.span(), format!("uid {} is {other}'s already", uid.get_ref())));
            }
            let uid = user.uid.as_ref().map(|uid| *uid.get_ref());
            let keys = user.keys.iter().map(public_key).collect::<Result<_, _>>()?;
            let operator = user.operator;
            let bounds = Bounds { operator, ..user.limits().bounds(defaults)? };
            if bounds.files && uid != Some(own) {
                let (place, user) = (name.span(), name.get_ref());
                return Err((place, only_the_server_has_files(user, own)));
            }
            users.insert(name.into_inner(), User { uid, keys, bounds });
        }
        for name in [&written.telnet_user, &written.nrepl_user].into_iter().flatten() {
            if !users.contains_key(name.get_ref()) {
                return Err((name.span(), format!("there is no [user.{}]", name.get_ref())));
            }
        }
        if let Some(name) = &written.telnet_user {
            let user = &users[name.get_ref()];
            if user.uid.is_some() || !user.keys.is_empty() || user.bounds.operator {
                let message = "anybody on this machine is the telnet_user: one without uid, keys, files and operator";
                return Err((name.span(), message.to_owned()));
            }
        }
        let telnet_user = written.telnet_user.map(Spanned::into_inner);
        let nrepl_user = written.nrepl_user.map(Spanned::into_inner);
        let (listen, worlds) = (written.listen, written.worlds);
        let ssh = written.ssh.limits()?;
        Ok(Self { listen, telnet_user, nrepl_user, worlds, users, ssh })
    }

    /// The user with this number on the host.
    pub(crate) fn user_of(&self, uid: u32) -> Option<&str> {
        let user = self.users.iter().find(|(_, user)| user.uid == Some(uid));
        user.map(|(name, _)| name.as_str())
    }
}

/// Why this user may not have files.
fn only_the_server_has_files(user: &str, own: u32) -> String {
    format!(
        "{user} may not have files: sessions use them with the rights of the server, which are those of \
         uid {own} alone; a user with `uid = {own}` may"
    )
}

/// A line as `ssh-keygen` writes it into a `.pub` file.
fn public_key(line: &Spanned<String>) -> Result<PublicKey, Complaint> {
    let wrong = |message: String| (line.span(), message);
    let key = PublicKey::from_openssh(line.get_ref())
        .map_err(|error| wrong(format!("no public key as in a .pub file: {error}")))?;
    if matches!(key.algorithm(), Algorithm::Rsa { .. } | Algorithm::Dsa) {
        let name = key.algorithm();
        return Err(wrong(format!(
            "{name} keys are not taken: make one with ssh-keygen -t ed25519"
        )));
    }
    Ok(key)
}

/// Whether files of a user's may be called so: his world, his history.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

impl WrittenUser {
    fn limits(self) -> WrittenLimits {
        let Self { memory_mib, threads, ports, sockets, sessions, priority, share, files, .. } =
            self;
        WrittenLimits { memory_mib, threads, ports, sockets, sessions, priority, share, files }
    }
}

impl WrittenSsh {
    fn limits(self) -> Result<SshLimits, Complaint> {
        let mut limits = SshLimits::default();
        if let Some(seconds) = self.login_seconds {
            if !(1..=LOGIN_SECONDS_MAX).contains(seconds.get_ref()) {
                let message = format!("login_seconds must be 1 to {LOGIN_SECONDS_MAX}");
                return Err((seconds.span(), message));
            }
            limits.login = Duration::from_secs(*seconds.get_ref());
        }
        limits.connections_max = self.connections.unwrap_or(limits.connections_max);
        limits.connections_an_address_max =
            self.connections_an_address.unwrap_or(limits.connections_an_address_max);
        Ok(limits)
    }
}

impl WrittenLimits {
    fn bounds(self, defaults: Bounds) -> Result<Bounds, Complaint> {
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
mod tests {
    use super::{Config, DEFAULT};
    use kyocho_lisp::account::Bounds;

    /// The number of the host's user who runs the server.
    const OWN: u32 = 7;

    fn line_and_message(text: &str) -> (usize, String) {
        let (place, message) = Config::parse(text, OWN).unwrap_err();
        (1 + text[..place.start].matches('\n').count(), message)
    }

    #[test]
    fn users_inherit_the_limits_of_everybody() {
        let config = Config::parse(
            "listen = ['unix:/tmp/s']\ntelnet_user = 'guest'\n[limits]\nmemory_mib = 16\n\
             [user.ada]\nuid = 7\nthreads = 3\nshare = 4\nfiles = true\noperator = true\n[user.guest]\n",
            OWN,
        )
        .unwrap();
        let limits = Bounds { memory_bytes_max: 16 << 20, ..DEFAULT };
        assert_eq!(config.users["guest"].bounds, limits);
        assert_eq!(
            config.users["ada"].bounds,
            Bounds { threads_max: 3, share: 4, files: true, operator: true, ..limits }
        );
        assert_eq!(config.user_of(7), Some("ada"));
        assert_eq!(config.user_of(8), None);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, part) in [
            ("[user.a]\nuid = 1\n[user.b]\nuid = 1\n", 4, "uid 1 is a's already"),
            ("\ntelnet_user = 'nobody'\n", 2, "there is no [user.nobody]"),
            ("nrepl_user = 'nobody'\n", 1, "there is no [user.nobody]"),
            ("[limits]\n\nmemory_mib = 1\n", 3, "at least 4"),
            ("[limits]\nthreads = -1\n", 2, ""),
            ("[user.a]\npriority = 64\n", 2, "0 to 63"),
            ("[user.a]\nfiles = true\nshare = 0\n", 3, "share must be 1 to 1000"),
            ("[user.b]\n[user.a]\nuid = 8\nfiles = true\n", 2, "a may not have files"),
            ("[user.a]\nfiles = true\n", 1, "uid 7 alone"),
            ("[limits]\nfiles = true\n[user.a]\nuid = 7\n[user.b]\n", 5, "b may not have files"),
            ("telnet_user = 'a'\n[user.a]\nuid = 7\n", 1, "anybody on this machine"),
            ("telnet_user = 'a'\n[user.a]\noperator = true\n", 1, "anybody on this machine"),
            (
                "telnet_user = 'a'\n[user.a]\nkeys = ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ x']\n",
                1,
                "anybody on this machine",
            ),
            ("[user.a]\nmemory = 64\n", 2, "unknown field `memory`"),
            ("[user.a\n", 1, ""),
            ("worlds = '/tmp'\n[user.'../../etc/x']\n", 2, "a user's name is letters"),
            ("[user.a]\nkeys = [\n'ssh-ed25519 AAAA x']\n", 3, "no public key as in a .pub file"),
            ("[user.'a/b']\nkeys = ['']\n", 1, "a user's name is letters"),
            ("[ssh]\nlogin_seconds = 0\n", 2, "login_seconds must be 1 to 3600"),
            ("[ssh]\nconnection = 1\n", 2, "unknown field `connection`"),
        ] {
            let (found, message) = line_and_message(text);
            assert_eq!(found, line, "{text}: {message}");
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
