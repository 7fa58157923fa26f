//! From a path that a client gave to the file that it names, within the mounts.
//!
//! A walk uses canonical virtual paths and one primitive: open the node at a canonical path without
//! following a link ([`Server::node`]). A link on the way is read, and its text is walked in turn.
//! So `..` and mounts are handled as text, and the host never resolves a path across the border of
//! a mount. If something changes in between, `openat2` with `BENEATH` and `NO_SYMLINKS` refuses.
//!
//! Most paths contain neither links nor `..`, and one `openat2` resolves them. After a link, the
//! rest is tried in one call again.

use crate::clients::client::{Client, PATH_BYTES_MAX, descriptor_in};
use crate::errors::{NOT_A_DIRECTORY, NOT_FOUND, THROUGH_LINK, host};
use crate::server::Server;
use crate::state::filesystems::{FileSystemAccess, permitted};
use crate::state::mounts::{self, Source};
use kyocho_sys::error::Errno;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, openat2};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

/// Most links of one path, as on Linux.
const LINKS_MAX: usize = 40;
const TOO_MANY_LINKS: Errno = Errno::new(libc::ELOOP);

/// What a path names, as a descriptor for naming alone (`O_PATH`).
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) file: OwnedFd,
    pub(crate) kind: FileType,
    /// Its virtual path; empty if no path leads to it.
    pub(crate) path: Vec<u8>,
    pub(crate) writable: bool,
    pub(crate) origin: Origin,
    pub(crate) link: Link,
}

/// How the client can reach a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// By a path inside, whose mount says what may be done with it.
    Path,
    /// Only by a descriptor. `readable`: whether the descriptor permits reading.
    Descriptor { readable: bool },
}

/// The text of a symbolic link, if it differs from the host's.
#[derive(Debug)]
pub(crate) enum Link {
    /// The host's text.
    Host,
    /// This text.
    Text(Vec<u8>),
    /// This text if it is read. If it is followed, it leads to what a process has open under a
    /// number.
    Descriptor(Vec<u8>, u32, i32),
}

/// What happens to a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLink {
    Follow,
    Stay,
}

/// A place in a directory where something is or could be.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) directory: Node,
    pub(crate) name: Vec<u8>,
    /// The path ended in a slash, so only a directory is acceptable.
    pub(crate) wants_directory: bool,
}

impl Slot {
    pub(crate) fn path(&self) -> Vec<u8> {
        mounts::child(&self.directory.path, &self.name)
    }
}

fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// Whether the end of `path` requires a directory: a slash or a dot.
fn wants_directory(path: &[u8]) -> bool {
    path.ends_with(b"/") || path.ends_with(b"/.") || path == b"."
}

/// A walk in progress.
struct Walk {
    /// The canonical path of the directory that it has reached.
    at: Vec<u8>,
    /// The components that remain.
    rest: VecDeque<Vec<u8>>,
    /// How many links it has followed.
    links: usize,
    /// Only a directory is acceptable, because of the path or of a link at its end.
    wants_directory: bool,
}

impl Walk {
    fn new(base: &[u8], path: &[u8]) -> Self {
        let start = if path.starts_with(b"/") { b"/" } else { base };
        Self {
            at: start.to_vec(),
            rest: components(path).map(<[u8]>::to_vec).collect(),
            links: 0,
            wants_directory: wants_directory(path),
        }
    }
}

impl Server {
    /// The node that `path` names, seen from directory `base`.
    ///
    /// # Errors
    /// `NOENT`, `NOTDIR`, `LOOP`, `ACCES`, as on Linux.
    pub(crate) fn walk(
        &self,
        client: &Client<'_>,
        base: &[u8],
        path: &[u8],
        last: FinalLink,
    ) -> Result<Node, Errno> {
        if path.is_empty() {
            return Err(NOT_FOUND);
        }
        let mut walk = Walk::new(base, path);
        let last = if walk.wants_directory { FinalLink::Follow } else { last };
        let node = loop {
            let arrived = match self.straight(client, &walk) {
                Ok(node) if node.kind == FileType::Symlink && last == FinalLink::Follow => {
                    walk.at = mounts::parent(&node.path).to_vec();
                    walk.rest.clear();
                    self.follow(client, &mut walk, node)?
                }
                Err(THROUGH_LINK) => self.over_link(client, &mut walk, last)?,
                other => Some(other?),
            };
            if let Some(node) = arrived {
                break node;
            }
        };
        if walk.wants_directory && node.kind != FileType::Directory {
            return Err(NOT_A_DIRECTORY);
        }
        Ok(node)
    }

    /// Resolves the rest of a walk in one step. `THROUGH_LINK` if it contains a link or `..`.
    fn straight(&self, client: &Client<'_>, walk: &Walk) -> Result<Node, Errno> {
        if walk.rest.iter().any(|part| part == b"..") {
            return Err(THROUGH_LINK);
        }
        let all = walk.rest.iter().fold(walk.at.clone(), |at, part| mounts::child(&at, part));
        self.node(client, &all)
    }

    /// Walks component by component until a link has been followed. Returns the node at the end if
    /// there was no link.
    fn over_link(
        &self,
        client: &Client<'_>,
        walk: &mut Walk,
        last: FinalLink,
    ) -> Result<Option<Node>, Errno> {
        let mut here = None;
        while let Some(part) = walk.rest.pop_front() {
            if here.as_ref().is_some_and(|node: &Node| node.kind != FileType::Directory) {
                return Err(NOT_A_DIRECTORY);
            }
            if part == b".." {
                walk.at = mounts::parent(&walk.at).to_vec();
                here = None;
                continue;
            }
            let next = mounts::child(&walk.at, &part);
            let node = self.node(client, &next)?;
            let follow = node.kind == FileType::Symlink
                && (last == FinalLink::Follow || !walk.rest.is_empty());
            if follow {
                return self.follow(client, walk, node);
            }
            walk.at = next;
            here = Some(node);
        }
        here.map_or_else(|| self.node(client, &walk.at), Ok).map(Some)
    }

    /// Follows `link`, which is in the directory that `walk` has reached: puts its text before the
    /// remaining components. A link to a descriptor instead leads to the node of the descriptor,
    /// which is returned if no components remain.
    fn follow(
        &self,
        client: &Client<'_>,
        walk: &mut Walk,
        link: Node,
    ) -> Result<Option<Node>, Errno> {
        walk.links += 1;
        if walk.links > LINKS_MAX {
            return Err(TOO_MANY_LINKS);
        }
        if let Link::Descriptor(_, process, number) = link.link {
            let node = self.node_of(client, descriptor_in(process, number)?)?;
            return match node.kind {
                _ if walk.rest.is_empty() => Ok(Some(node)),
                FileType::Directory if node.path.is_empty() => Err(NOT_FOUND),
                FileType::Directory => {
                    walk.at = node.path;
                    Ok(None)
                }
                _ => Err(NOT_A_DIRECTORY),
            };
        }
        let text = link.read_link()?;
        walk.wants_directory |= walk.rest.is_empty() && wants_directory(&text);
        if text.starts_with(b"/") {
            walk.at = b"/".to_vec();
        }
        for part in components(&text).rev() {
            walk.rest.push_front(part.to_vec());
        }
        Ok(None)
    }

    /// The directory and the name at the end of `path`. A link there is not followed.
    ///
    /// # Errors
    /// As for [`Server::walk`], for the directory.
    pub(crate) fn slot(
        &self,
        client: &Client<'_>,
        base: &[u8],
        path: &[u8],
    ) -> Result<Slot, Errno> {
        let trimmed = without_slashes(path);
        if trimmed.is_empty() {
            return Err(if path.is_empty() { NOT_FOUND } else { Errno::new(libc::EEXIST) });
        }
        let (above, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&trimmed[..=slash], &trimmed[slash + 1..]),
            None => (&b"."[..], trimmed),
        };
        let directory = self.walk(client, base, above, FinalLink::Follow)?;
        if directory.kind != FileType::Directory {
            return Err(NOT_A_DIRECTORY);
        }
        let wants_directory = trimmed.len() < path.len();
        Ok(Slot { directory, name: name.to_vec(), wants_directory })
    }

    /// The node at a canonical path. A link there is returned itself.
    pub(crate) fn node(&self, client: &Client<'_>, path: &[u8]) -> Result<Node, Errno> {
        if path.len() >= PATH_BYTES_MAX {
            return Err(Errno::new(libc::ENAMETOOLONG));
        }
        let (mount, rest) = self.mounts.find(path);
        match &mount.source {
            Source::Host { root, .. } => {
                let file = beneath(root, rest)?;
                let status = rustix::fs::fstat(&file).map_err(host)?;
                let kind = FileType::from_raw_mode(status.st_mode);
                let writable = mount.writable && permitted(&file)? == FileSystemAccess::All;
                let (path, link) = (path.to_vec(), Link::Host);
                Ok(Node { file, kind, path, writable, origin: Origin::Path, link })
            }
            Source::Processes(root) => self.process_node(client, root, path, rest),
            Source::Devices(root) => self.device_node(client, root, path, rest),
        }
    }

    /// The node of something that a client has open. If no path of the instance leads to it, the
    /// descriptor decides what is permitted: it was opened outside, or has no name.
    pub(crate) fn node_of(&self, client: &Client<'_>, file: OwnedFd) -> Result<Node, Errno> {
        let status = rustix::fs::fstat(&file).map_err(host)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        let host_path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let text = rustix::fs::readlink(host_path.as_str(), Vec::new()).map_err(host)?;
        let modes = rustix::fs::fcntl_getfl(&file).map_err(host)?;
        let (flags, link) = (OFlags::PATH | OFlags::CLOEXEC, Link::Host);
        let file = rustix::fs::open(host_path.as_str(), flags, Mode::empty()).map_err(host)?;
        // Another file may be at this path inside: one that is mounted there, or was made since.
        let named = self.mounts.to_virtual(text.as_bytes());
        let named = named.and_then(|path| self.node(client, &path).ok());
        if let Some(named) = named
            && is_same(&named.file, &status)?
        {
            let (path, writable) = (named.path, named.writable);
            return Ok(Node { file, kind, path, writable, origin: Origin::Path, link });
        }
        let permits = |modes_of: [OFlags; 2]| {
            !modes.contains(OFlags::PATH) && modes_of.contains(&(modes & OFlags::RWMODE))
        };
        let readable = permits([OFlags::RDONLY, OFlags::RDWR]);
        let writable = permits([OFlags::WRONLY, OFlags::RDWR]);
        let origin = Origin::Descriptor { readable };
        Ok(Node { file, kind, path: Vec::new(), writable, origin, link })
    }
}

fn is_same(file: &OwnedFd, status: &Stat) -> Result<bool, Errno> {
    let other = rustix::fs::fstat(file).map_err(host)?;
    Ok((other.st_dev, other.st_ino) == (status.st_dev, status.st_ino))
}

/// The node at `rest` below `root`. Refuses to cross a link.
pub(crate) fn beneath(root: &OwnedFd, rest: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let rest = if rest.is_empty() { b"." } else { rest };
    openat2(root, rest, flags, Mode::empty(), resolve).map_err(host)
}

impl Node {
    /// The text of a symbolic link.
    ///
    /// # Errors
    /// `INVAL`: it is not a link.
    pub(crate) fn read_link(&self) -> Result<Vec<u8>, Errno> {
        match &self.link {
            Link::Text(text) | Link::Descriptor(text, ..) => Ok(text.clone()),
            Link::Host if self.kind != FileType::Symlink => Err(Errno::INVAL),
            Link::Host => rustix::fs::readlinkat(&self.file, "", Vec::new())
                .map(|text| text.into_bytes())
                .map_err(host),
        }
    }

    /// A path by which this server reaches the node even if its name has changed. For a link it is
    /// the link's own node.
    pub(crate) fn descriptor_path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// # Errors
    /// `ROFS`: its mount is for reading. `ACCES`: the descriptor that leads to it is for reading.
    pub(crate) fn must_be_writable(&self) -> Result<(), Errno> {
        match self.origin {
            _ if self.writable => Ok(()),
            Origin::Path => Err(Errno::new(libc::EROFS)),
            Origin::Descriptor { .. } => Err(Errno::new(libc::EACCES)),
        }
    }

    /// # Errors
    /// `ACCES`: the descriptor that leads to it is for writing or naming alone.
    pub(crate) fn must_be_readable(&self) -> Result<(), Errno> {
        match self.origin {
            Origin::Descriptor { readable: false } => Err(Errno::new(libc::EACCES)),
            _ => Ok(()),
        }
    }

    /// Whether it may get a name or other attributes. It may if a path inside leads to it. It also
    /// may if it has no name at all and its descriptor permits writing, as a file that was made
    /// without a name. A file that has a name outside belongs there.
    ///
    /// # Errors
    /// As for [`Node::must_be_writable`]. `PERM`: it has a name outside.
    pub(crate) fn must_be_own(&self) -> Result<(), Errno> {
        self.must_be_writable()?;
        let nameless = || Ok(rustix::fs::fstat(&self.file).map_err(host)?.st_nlink == 0);
        if self.origin == Origin::Path || nameless()? { Ok(()) } else { Err(Errno::PERM) }
    }
}

/// `path` without the slashes at its end.
fn without_slashes(path: &[u8]) -> &[u8] {
    let kept = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    &path[..kept]
}

#[cfg(test)]
mod tests;
