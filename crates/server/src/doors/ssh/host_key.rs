//! The key by which clients recognise this host: Ed25519, made on first use, readable by its owner
//! only.

use crate::state;
use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::ssh_key::{HashAlg, LineEnding};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

const NAME: &str = "ssh_host_ed25519_key";
/// The rights of group and others.
const OTHERS: u32 = 0o077;

/// Reads the key, or makes it.
///
/// # Errors
/// There is no folder for it, the file is not a key, or other users may read it.
pub(super) fn get() -> io::Result<PrivateKey> {
    let folder = state::folder().ok_or_else(|| {
        io::Error::other("no folder for the host key: set XDG_STATE_HOME or HOME")
    })?;
    let path = folder.join(NAME);
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("the host key {}: {error}", path.display()))
    };
    match read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(&path).and_then(|()| read(&path)).map_err(named)
        }
        result => result.map_err(named),
    }
}

/// The fingerprint, as clients show it to their users.
pub(super) fn fingerprint(key: &PrivateKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

fn read(path: &Path) -> io::Result<PrivateKey> {
    let text = fs::read(path)?;
    if fs::metadata(path)?.permissions().mode() & OTHERS != 0 {
        return Err(io::Error::other("other users may read it: chmod 600"));
    }
    PrivateKey::from_openssh(text).map_err(io::Error::other)
}

fn make(path: &Path) -> io::Result<()> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    let key = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
    let text = key.to_openssh(LineEnding::LF).map_err(io::Error::other)?;
    // The file appears complete or not at all. If another server starts at the same time, the first
    // key stays.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let linked = file.write_all(text.as_bytes()).and_then(|()| fs::hard_link(&new, path));
    // The key has its own name now. If it was not linked, another server's key is used.
    let _ = fs::remove_file(&new);
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}
