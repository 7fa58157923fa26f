//! The host directory that a client's path lies in, and the way back. Pure, except that it owns
//! descriptors.
//!
//! Paths of clients are *virtual*. A canonical virtual path is absolute and has no `.`, no `..`, no
//! empty component and no symbolic link.
//!
//! **Invariant:** every mount is at a canonical path, and one is at the root.

use std::os::fd::OwnedFd;

/// Where the files of a mount come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A directory of the host: its descriptor, and its canonical host path.
    Host { root: OwnedFd, path: Vec<u8> },
    /// The host's `/proc`, of which the instance's processes are shown.
    Processes(OwnedFd),
    /// The host's `/dev`, of which harmless devices are shown.
    Devices(OwnedFd),
}

/// One mount.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) at: Vec<u8>,
    pub(crate) source: Source,
    pub(crate) writable: bool,
}

/// All mounts of an instance.
#[derive(Debug)]
pub(crate) struct Mounts {
    list: Vec<Mount>,
}

/// The part of `path` after `prefix`, without the slash between. `None` if `path` is neither
/// `prefix` nor below it.
fn behind<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    match path.strip_prefix(prefix) {
        Some([]) => Some(&[]),
        Some(rest) if prefix.ends_with(b"/") => Some(rest),
        Some([b'/', rest @ ..]) => Some(rest),
        _ => None,
    }
}

/// Appends `rest` to `prefix`.
fn join(prefix: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut path = prefix.to_vec();
    if rest.is_empty() {
        return path;
    }
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend(rest);
    path
}

impl Mounts {
    /// A later mount hides an earlier one at the same place.
    pub(crate) fn new(list: Vec<Mount>) -> Self {
        assert!(list.iter().any(|mount| mount.at == b"/"), "there is a root");
        Self { list }
    }

    /// The mount that canonical `path` lies in, and the path inside it.
    pub(crate) fn find<'a>(&self, path: &'a [u8]) -> (&Mount, &'a [u8]) {
        let found = self
            .list
            .iter()
            .filter_map(|mount| behind(path, &mount.at).map(|rest| (mount, rest)))
            .max_by_key(|(mount, _)| mount.at.len());
        found.expect("the root holds every absolute path")
    }

    /// Whether a mount is at `path` or below.
    pub(crate) fn holds_mount(&self, path: &[u8]) -> bool {
        self.list.iter().any(|mount| behind(&mount.at, path).is_some())
    }

    /// The canonical virtual path for the host path that a client's descriptor shows.
    pub(crate) fn to_virtual(&self, host: &[u8]) -> Option<Vec<u8>> {
        let of_mount = |mount: &Mount| {
            let (source, at): (&[u8], &[u8]) = match &mount.source {
                Source::Host { path, .. } => (path, &mount.at),
                Source::Processes(_) => (b"/proc", &mount.at),
                Source::Devices(_) => (b"/dev", &mount.at),
            };
            behind(host, source).map(|rest| (source.len(), join(at, rest)))
        };
        self.list
            .iter()
            .filter_map(of_mount)
            .max_by_key(|(length, _)| *length)
            .map(|(_, path)| path)
    }
}

/// The directory that contains canonical `path`. The root contains itself.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) | None => b"/",
        Some(slash) => &path[..slash],
    }
}

/// Canonical `path` with one more component.
pub(crate) fn child(path: &[u8], name: &[u8]) -> Vec<u8> {
    join(path, name)
}

#[cfg(test)]
mod tests {
    use super::{Mount, Mounts, Source, child, parent};
    use std::os::fd::OwnedFd;

    fn host(at: &str, path: &str) -> Mount {
        let root = OwnedFd::from(std::fs::File::open("/").unwrap());
        let source = Source::Host { root, path: path.into() };
        Mount { at: at.into(), source, writable: true }
    }

    fn mounts() -> Mounts {
        let root = OwnedFd::from(std::fs::File::open("/proc").unwrap());
        let proc = Mount { at: b"/proc".into(), source: Source::Processes(root), writable: false };
        Mounts::new(vec![host("/", "/srv/root"), host("/data/in", "/home/me"), proc])
    }

    #[test]
    fn the_longest_mount_wins_at_component_borders() {
        let mounts = mounts();
        let found = |path: &'static str| {
            let (mount, rest) = mounts.find(path.as_bytes());
            (String::from_utf8(mount.at.clone()).unwrap(), rest)
        };
        assert_eq!(found("/data/in/a/b"), ("/data/in".to_owned(), &b"a/b"[..]));
        assert_eq!(found("/data/inside"), ("/".to_owned(), &b"data/inside"[..]));
        assert_eq!(found("/data/in"), ("/data/in".to_owned(), &b""[..]));
        assert!(mounts.holds_mount(b"/data") && mounts.holds_mount(b"/data/in"));
        assert!(!mounts.holds_mount(b"/dat") && !mounts.holds_mount(b"/data/in/a"));
    }

    #[test]
    fn host_paths_lead_back_and_those_outside_lead_nowhere() {
        let mounts = mounts();
        assert_eq!(mounts.to_virtual(b"/srv/root"), Some(b"/".to_vec()));
        assert_eq!(mounts.to_virtual(b"/srv/root/x"), Some(b"/x".to_vec()));
        assert_eq!(mounts.to_virtual(b"/home/me/y"), Some(b"/data/in/y".to_vec()));
        assert_eq!(mounts.to_virtual(b"/home/meadow"), None);
        assert_eq!(mounts.to_virtual(b"/etc"), None);
    }

    #[test]
    fn parents_and_children_are_canonical() {
        assert_eq!(parent(b"/"), b"/");
        assert_eq!(parent(b"/a"), b"/");
        assert_eq!(parent(b"/a/b"), b"/a");
        assert_eq!(child(b"/", b"a"), b"/a");
        assert_eq!(child(b"/a", b"b"), b"/a/b");
    }
}
