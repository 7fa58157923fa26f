//! The choice of the directory, and the directories that are refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use super::{choose, make_own};

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kyocho-directory-{}-{name}", std::process::id()));
    fs::create_dir(&path).unwrap();
    path
}

#[test]
fn first_variable_wins_and_relative_paths_are_ignored() {
    let both = |name: &str| Some(if name == "KYOCHO_DIR" { "/a" } else { "/b" }.into());
    assert_eq!(choose(both, 7), PathBuf::from("/a"));
    let session = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/b".into());
    assert_eq!(choose(session, 7), PathBuf::from("/b/kyocho"));
    assert_eq!(choose(|_| Some("relative".into()), 7), PathBuf::from("/dev/shm/kyocho-7"));
    assert_eq!(choose(|_| None, 7), PathBuf::from("/dev/shm/kyocho-7"));
}

#[test]
fn new_directory_is_private_and_found_again() {
    let folder = scratch("made");
    let user = fs::metadata(&folder).unwrap().uid();
    let path = folder.join("inner");
    make_own(&path, user).unwrap();
    make_own(&path, user).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn links_files_and_directories_of_or_open_to_others_are_refused() {
    let folder = scratch("refused");
    let user = fs::metadata(&folder).unwrap().uid();
    let refusal = |path: &PathBuf, user| make_own(path, user).unwrap_err().to_string();
    let own = folder.join("own");
    make_own(&own, user).unwrap();
    assert_eq!(refusal(&own, user + 1), "belongs to another user");
    let link = folder.join("link");
    symlink(&own, &link).unwrap();
    assert_eq!(refusal(&link, user), "is no directory");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(refusal(&own, user), "is open to other users");
    assert!(make_own(&folder.join("no/where"), user).is_err());
    fs::remove_dir_all(folder).unwrap();
}
