//! Watching files and directories (`inotify`). What to watch is named here; reading what happened, and giving up a watch, are the host's.

use crate::errors::host;
use crate::paths::walk::Node;
use crate::server::{Answer, Request};
use kyocho_sys::error::Errno;
use rustix::fs::FileType;
use rustix::fs::inotify::{WatchFlags, add_watch};

impl Request<'_> {
    /// `inotify_add_watch`: the client's queue, and the file that its path names here.
    pub(crate) fn watch(&self) -> Result<Answer, Errno> {
        let asked = WatchFlags::from_bits_retain(self.word(2) as u32);
        let stay = asked.contains(WatchFlags::DONT_FOLLOW);
        let queue = self.client.descriptor(self.int(0))?;
        let links = if stay { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
        let node = self.find(libc::AT_FDCWD, 1, links)?;
        self.must_be_watchable(&node, asked)?;
        // The path below is a link of the host's, which leads to the very node.
        let watched = asked.difference(WatchFlags::DONT_FOLLOW);
        let number = add_watch(&queue, node.shown(), watched).map_err(host)?;
        Ok(Answer::Value(i64::from(number)))
    }

    fn must_be_watchable(&self, node: &Node, asked: WatchFlags) -> Result<(), Errno> {
        if asked.contains(WatchFlags::ONLYDIR) && node.kind != FileType::Directory {
            return Err(crate::errors::NOT_A_DIRECTORY);
        }
        // The names that come and go in the host's own `/dev` and `/proc` are nobody's business inside.
        if self.server.is_synthetic(&node.path) {
            return Err(Errno::new(libc::EACCES));
        }
        Ok(())
    }
}
