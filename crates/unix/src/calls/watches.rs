//! Watching files and directories (`inotify`). The server adds watches, because they name files.
//! Reading events and removing watches are native.

use crate::errors::host;
use crate::paths::walk::Node;
use crate::server::{Answer, Request};
use kyocho_sys::error::Errno;
use rustix::fs::FileType;
use rustix::fs::inotify::{WatchFlags, add_watch};

impl Request<'_> {
    /// `inotify_add_watch`: adds the file at a path to the client's queue.
    pub(crate) fn watch(&self) -> Result<Answer, Errno> {
        let asked = WatchFlags::from_bits_retain(self.word(2) as u32);
        let stay = asked.contains(WatchFlags::DONT_FOLLOW);
        let queue = self.client.descriptor(self.int(0))?;
        let links = if stay { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
        let node = self.find(libc::AT_FDCWD, 1, links)?;
        self.must_be_watchable(&node, asked)?;
        // The path below is a link of the host's that leads to this very node.
        let watched = asked.difference(WatchFlags::DONT_FOLLOW);
        let number = add_watch(&queue, node.descriptor_path(), watched).map_err(host)?;
        Ok(Answer::Value(i64::from(number)))
    }

    fn must_be_watchable(&self, node: &Node, asked: WatchFlags) -> Result<(), Errno> {
        if asked.contains(WatchFlags::ONLYDIR) && node.kind != FileType::Directory {
            return Err(crate::errors::NOT_A_DIRECTORY);
        }
        // Names that appear in the host's own `/dev` and `/proc` are hidden from clients.
        if self.server.is_synthetic(&node.path) {
            return Err(Errno::new(libc::EACCES));
        }
        Ok(())
    }
}
