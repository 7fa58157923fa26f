use super::{DirectoryEntry, listen};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Barrier;

/// A folder of one test, removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kyocho-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<_> = std::fs::read_dir(&self.0).unwrap().map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the folder belongs to the test");
    }
}

fn refusal(path: &Path) -> String {
    listen(path).unwrap_err().to_string()
}

#[test]
fn files_that_are_not_sockets_are_kept() {
    let folder = Folder::new("no-socket");
    let path = folder.0.join("s");
    std::fs::write(&path, "precious").unwrap();
    assert!(refusal(&path).contains("not a socket of this user, and is not replaced"));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(refusal(&link).contains("is not replaced"));
    let socket = folder.0.join("socket");
    drop(UnixListener::bind(&socket).unwrap());
    let to_socket = folder.0.join("to-socket");
    std::os::unix::fs::symlink(&socket, &to_socket).unwrap();
    assert!(refusal(&to_socket).contains("is not replaced"), "a link to a socket is not a socket");
    std::fs::create_dir(folder.0.join("folder")).unwrap();
    assert!(refusal(&folder.0.join("folder")).contains("is not replaced"));
    assert_eq!(folder.names(), ["folder", "link", "s", "socket", "to-socket"]);
}

#[test]
fn a_dead_servers_socket_is_replaced_and_a_live_ones_is_not() {
    let folder = Folder::new("dead-server");
    // The longest path that a socket may have.
    let path = folder.0.join("s".repeat(106 - folder.0.as_os_str().len()));
    drop(UnixListener::bind(&path).unwrap());
    let (_listener, file) = listen(&path).unwrap();
    UnixStream::connect(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666, "every user may connect");
    assert!(refusal(&path).contains("listens here already"));
    UnixStream::connect(&path).unwrap();
    assert_eq!(folder.names().len(), 1);
    drop(file);
    assert!(folder.names().is_empty(), "the name is removed with the socket");
}

#[test]
fn a_name_that_now_refers_to_another_file_is_kept() {
    let folder = Folder::new("anothers");
    let path = folder.0.join("s");
    let (_listener, file) = listen(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    drop(file);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::remove_file(&path).unwrap();
    let (_one, file) = listen(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (_other, _kept) = listen(&path).unwrap();
    drop(file);
    UnixStream::connect(&path).expect("another server's socket keeps its name");
}

#[test]
fn of_servers_that_start_together_exactly_one_gets_the_name() {
    const SERVERS: usize = 4;
    let folder = Folder::new("same-time");
    let path = folder.0.join("s");
    for _ in 0..50 {
        drop(UnixListener::bind(&path).unwrap());
        let barrier = Barrier::new(SERVERS);
        let started: Vec<_> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                listen(&path)
            };
            let all: Vec<_> = (0..SERVERS).map(|_| scope.spawn(start)).collect();
            all.into_iter().map(|server| server.join().unwrap()).collect()
        });
        let listening = started.iter().filter(|result| result.is_ok()).count();
        assert_eq!(listening, 1, "{started:?}");
        UnixStream::connect(&path).expect("the name is that server's");
        drop(started);
        assert!(folder.names().is_empty(), "{:?}", folder.names());
    }
}

#[test]
fn a_file_that_took_the_name_meanwhile_gets_it_back() {
    let folder = Folder::new("in-between");
    let path = folder.0.join("s");
    drop(UnixListener::bind(&path).unwrap());
    let entry = DirectoryEntry::of(&path).unwrap();
    // As if another process had created this file after the first check.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let error = entry.take_over().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert_eq!(folder.names(), ["s"]);
}
