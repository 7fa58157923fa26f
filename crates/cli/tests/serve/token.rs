//! The token of a server's port for editors.

use crate::server::Server;
use std::os::unix::fs::PermissionsExt;

/// Reads the token. Call this before the line with the address is read.
pub(crate) fn await_token(server: &mut Server) -> String {
    let line = server.await_line("nrepl token");
    let path = line.trim_end().rsplit_once(' ').unwrap().1;
    let mode = std::fs::metadata(path).expect("the token is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "its owner alone may read it");
    std::fs::read_to_string(path).expect("it can be read").trim().to_owned()
}
