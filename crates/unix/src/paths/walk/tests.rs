//! A walk arrives where the host would, confined to the same directory (`openat2` with `IN_ROOT`).

use super::FinalLink;
use crate::clients::client::Client;
use crate::errors::host;
use crate::options::{Network, Personality};
use crate::server::Server;
use crate::state::admission::Admission;
use crate::state::memory_files::MemoryFiles;
use crate::state::mounts::{Mount, Mounts, Source};
use crate::state::objects::{Objects, PersistentObjects};
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A folder with a few files, removed when dropped.
struct Tree {
    path: PathBuf,
}

impl Tree {
    fn new(links: &[(&str, String)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kyocho-walk-{}-{number}", std::process::id());
        let tree = Self { path: std::env::temp_dir().join(name) };
        std::fs::create_dir_all(tree.path.join("a/b")).unwrap();
        std::fs::create_dir(tree.path.join("c")).unwrap();
        for file in ["f", "a/f", "a/b/f"] {
            std::fs::write(tree.path.join(file), file).unwrap();
        }
        for (index, (folder, text)) in links.iter().enumerate() {
            symlink(text, tree.path.join(folder).join(format!("l{index}"))).unwrap();
        }
        tree
    }

    fn open(&self) -> OwnedFd {
        OwnedFd::from(std::fs::File::open(&self.path).unwrap())
    }

    fn server(&self) -> Server {
        let path = self.path.clone().into_os_string().into_encoded_bytes();
        let source = Source::Host { root: self.open(), path };
        let mounts = Mounts::new(vec![Mount { at: b"/".to_vec(), source, writable: true }]);
        let (admission, objects) =
            (Admission::new(None), Objects::new(PersistentObjects::new().unwrap().into(), None));
        let files = MemoryFiles::OfHost;
        Server::new(mounts, Network::Host, Personality::Linux, None, admission, objects, files)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The identity of the file behind a descriptor.
fn identity(file: impl AsFd) -> (u64, u64) {
    let status = fstat(file).unwrap();
    (status.st_dev, status.st_ino)
}

fn by_host(tree: &Tree, path: &str, last: FinalLink) -> Result<(u64, u64), Errno> {
    let stay = if last == FinalLink::Stay { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::PATH | OFlags::CLOEXEC | stay;
    openat2(tree.open(), path, flags, Mode::empty(), ResolveFlags::IN_ROOT)
        .map(identity)
        .map_err(host)
}

fn by_walk(server: &Server, path: &str, last: FinalLink) -> Result<(u64, u64), Errno> {
    let client = Client::own_process();
    let node = server.walk(&client, b"/", path.as_bytes(), last)?;
    // The path in the node leads to the same file, and through no link.
    let again = server.node(&client, &node.path).unwrap();
    assert_eq!(identity(&again.file), identity(&node.file), "{path} is not {:?}", node.path);
    Ok(identity(node.file))
}

fn path() -> impl Strategy<Value = String> {
    const NAMES: &[&str] =
        &["a", "a", "b", "b", "c", "f", "l0", "l1", "l2", "l3", "..", "..", ".", "none", ""];
    let parts = proptest::collection::vec(select(NAMES), 1..7);
    let start = prop_oneof![Just(""), Just("/")];
    (start, parts).prop_map(|(start, parts)| start.to_owned() + &parts.join("/"))
}

fn links() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let text = path().prop_filter("a link says something", |text| !text.is_empty());
    proptest::collection::vec((select(&["", "a", "a/b"][..]), text), 4)
}

proptest! {
    #[test]
    fn a_walk_arrives_where_the_host_would(
        links in links(),
        paths in proptest::collection::vec((path(), any::<bool>()), 64),
    ) {
        let tree = Tree::new(&links);
        let server = tree.server();
        for (path, stay) in paths {
            let last = if stay { FinalLink::Stay } else { FinalLink::Follow };
            assert_eq!(
                by_walk(&server, &path, last),
                by_host(&tree, &path, last),
                "{path:?} with {last:?} among {links:?}"
            );
        }
    }
}

#[test]
fn links_are_followed_up_to_a_bound() {
    let links: Vec<(&str, String)> =
        (0..41).map(|index| ("", format!("l{}", index + 1))).chain([("", "f".into())]).collect();
    let tree = Tree::new(&links);
    let server = tree.server();
    for path in ["l2", "l1", "l0"] {
        assert_eq!(
            by_walk(&server, path, FinalLink::Follow),
            by_host(&tree, path, FinalLink::Follow)
        );
    }
    assert!(by_walk(&server, "l2", FinalLink::Follow).is_ok());
    assert_eq!(by_walk(&server, "l0", FinalLink::Follow), Err(super::TOO_MANY_LINKS));
}
