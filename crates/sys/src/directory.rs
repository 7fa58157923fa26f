//! The directory in which the Kyocho processes of one user find each other: shared files, sockets.
//!
//! `$KYOCHO_DIR`, else `$XDG_RUNTIME_DIR/kyocho`, else `/dev/shm/kyocho-UID`. It must be a
//! directory of the user that no other user may enter: in `/dev/shm` any user could have created
//! the name first.
#![expect(unsafe_code, reason = "asks for the user's number")]

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The directory of the calling user, created if it is missing. Allocates; about ten system calls.
///
/// # Errors
/// It cannot be created; or the path is not a directory, belongs to another user, or is open to
/// others. The error names the path.
pub fn of_user() -> io::Result<PathBuf> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let path = choose(|name| env::var_os(name), user);
    make_own(&path, user).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{}: {error} (set KYOCHO_DIR to another)", path.display()),
        )
    })?;
    Ok(path)
}

/// The path of the directory.
fn choose(variable: impl Fn(&str) -> Option<OsString>, user: u32) -> PathBuf {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("KYOCHO_DIR")
        .or_else(|| absolute("XDG_RUNTIME_DIR").map(|path| path.join("kyocho")))
        .unwrap_or_else(|| PathBuf::from(format!("/dev/shm/kyocho-{user}")))
}

/// Ensures that `path` is a directory of `user` that no other user may enter.
fn make_own(path: &Path, user: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let refuse = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let found = fs::symlink_metadata(path)?;
    match () {
        () if !found.is_dir() => refuse("is no directory"),
        () if found.uid() != user => refuse("belongs to another user"),
        () if found.mode() & 0o077 != 0 => refuse("is open to other users"),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests;
