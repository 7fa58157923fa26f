//! The token of editors that connect by TCP, where no kernel reports the user. It is in a file that
//! only the user who runs the server may read, like Jupyter's key.

use core::net::SocketAddr;
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const TOKEN_BYTES: usize = 32;

/// A token. Each listening server makes a new one.
#[derive(Debug)]
pub(crate) struct Token(Sha256Hash);

type Sha256Hash = [u8; 32];

/// The file with the token. Removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TokenFile(PathBuf);

impl Token {
    /// Makes a token for a server that listens on `address`, and writes its file in the user's own
    /// folder.
    ///
    /// # Errors
    /// There is no such folder, or the host has no random numbers.
    pub(crate) fn make(address: SocketAddr) -> io::Result<(Self, TokenFile)> {
        let mut secret = [0; TOKEN_BYTES];
        getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
        let text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("nrepl-{}-{}.token", address.ip(), address.port());
        let path = kyocho_sys::directory::of_user()?.join(name);
        write(&path, &text)?;
        Ok((Self(Sha256::digest(text).into()), TokenFile(path)))
    }

    /// Whether `presented` is the token. Hashes are compared, so the time of the comparison reveals
    /// nothing.
    pub(super) fn is(&self, presented: &str) -> bool {
        let presented: Sha256Hash = Sha256::digest(presented.trim()).into();
        self.0 == presented
    }
}

/// Writes a file that only its owner may read, in a folder that only its owner may enter.
fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        // Removes the file of a dead server that listened on this port.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")
}

impl TokenFile {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // The file may be gone already, which is as good.
        let _ = fs::remove_file(&self.0);
    }
}
