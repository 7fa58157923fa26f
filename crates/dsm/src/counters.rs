//! Counters of nodes that other processes can read: a small file per node, in the user's directory
//! ([`kyocho_sys::directory`]).
//!
//! ```text
//!   dsm-RUN-RANK:  rank 1            one figure a line: a name, a number
//!                  nodes 4
//!                  process 4711
//!                  born 8812345      start time of the process as the kernel counts it, because
//!                                    process ids are reused
//!                  bytes_sent 65697
//!                  waits_for lock 3  words; only while the program waits
//! ```
//!
//! The service thread writes the file twice a second. It writes another file and renames it, so a
//! reader finds it complete. A node removes its file when it ends. The launcher of the run removes
//! the file of a node that was killed; so does the next reader.

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kyocho_sys::directory;
use kyocho_sys::prim::clock::Instant;

use crate::address::NodeId;
use crate::interface::Subject;

/// Interval between two writes of the file.
const EVERY: Duration = Duration::from_millis(500);
const PREFIX: &str = "dsm-";
/// Longest name of a run.
const RUN_BYTES_MAX: usize = 64;
/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The file of one node.
#[derive(Debug)]
pub(crate) struct Counters {
    path: PathBuf,
    next: PathBuf,
    head: String,
    due: Instant,
}

/// Whether this can be the name of a run: letters, digits and hyphens, at most 64.
pub(crate) fn is_run(name: &str) -> bool {
    let permitted = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    (1..=RUN_BYTES_MAX).contains(&name.len()) && name.chars().all(permitted)
}

/// The path of a node's file, and the path under which it is written.
fn paths(directory: &Path, run: &str, node: NodeId) -> [PathBuf; 2] {
    let name = format!("{PREFIX}{run}-{}", node.0);
    [directory.join(&name), directory.join(format!(".{name}"))]
}

/// Removes the files that nodes of a finished run have left on this host, as killed nodes do.
///
/// # Errors
/// The user's directory is not available.
pub fn forget(run: &str, nodes: u16) -> io::Result<()> {
    let directory = directory::of_user()?;
    for path in (0..nodes).flat_map(|rank| paths(&directory, run, NodeId(rank))) {
        // Most nodes have removed their own.
        let _gone = fs::remove_file(path);
    }
    Ok(())
}

impl Counters {
    /// Prepares the file of a node of the run with this name. [`Self::write`] creates it.
    pub(crate) fn new(run: &str, me: NodeId, nodes: u16) -> io::Result<Self> {
        let directory = directory::of_user()?;
        let process = std::process::id();
        let born =
            born(process).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        let head = format!("rank {}\nnodes {nodes}\nprocess {process}\nborn {born}\n", me.0);
        let [path, next] = paths(&directory, run, me);
        Ok(Self { path, next, head, due: Instant::now() })
    }

    /// Whether the next write is due.
    pub(crate) fn are_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Writes the counters.
    pub(crate) fn write(
        &mut self,
        figures: &[(&str, u64)],
        waits_for: Option<Subject>,
    ) -> io::Result<()> {
        self.due = Instant::now() + EVERY;
        let mut text = self.head.clone();
        figures.iter().for_each(|(name, figure)| text.push_str(&format!("{name} {figure}\n")));
        waits_for.iter().for_each(|subject| text.push_str(&format!("waits_for {subject}\n")));
        fs::write(&self.next, text)?;
        fs::rename(&self.next, &self.path)
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // This fails if the file was never written, or if another process has removed it.
        for path in [&self.path, &self.next] {
            let _gone = fs::remove_file(path);
        }
    }
}

/// The counters of one node.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NodeCounters {
    /// The name of the run: all nodes that one launcher has started.
    pub run: String,
    /// Its rank.
    pub rank: u16,
    /// Number of nodes of its run. Nodes on other hosts have their files there.
    pub nodes: u16,
    /// Its process on this host.
    pub process: u32,
    /// What its program waits for, if it waits: a lock, a page, the barrier.
    pub waits_for: Option<String>,
    /// All figures, by name. Times are in nanoseconds, and their names say so.
    pub figures: BTreeMap<String, u64>,
}

impl NodeCounters {
    /// The figure of this name; 0 if the node has none.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        self.figures.get(name).copied().unwrap_or(0)
    }
}

/// The counters of all nodes of this user on this host, by run and rank.
///
/// # Errors
/// The user's directory cannot be read.
pub fn of_this_host() -> io::Result<Vec<NodeCounters>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory::of_user()?)? {
        let path = entry?.path();
        // A file of another kind is not touched. A file that has just been removed is skipped.
        let Some((counted, born_then)) = read(&path) else { continue };
        if born(counted.process) == Some(born_then) {
            found.push(counted);
        } else {
            let _gone = fs::remove_file(&path);
        }
    }
    found.sort_by(|one, other| (&one.run, one.rank).cmp(&(&other.run, other.rank)));
    Ok(found)
}

/// The counters in a node's file, and the start time of the process.
fn read(path: &Path) -> Option<(NodeCounters, u64)> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let (run, rank) = name.rsplit_once('-').filter(|(run, _)| is_run(run))?;
    let short = fs::symlink_metadata(path)
        .is_ok_and(|about| about.is_file() && about.len() <= FILE_BYTES_MAX);
    let text = if short { fs::read_to_string(path).ok()? } else { return None };
    let mut waits_for = None;
    let mut figures: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        match line.split_once(' ')? {
            ("waits_for", subject) => waits_for = Some(subject.to_owned()),
            (name, figure) => drop(figures.insert(name.to_owned(), figure.parse().ok()?)),
        }
    }
    let mut take = |name: &str| figures.remove(name);
    let (said, nodes) = (take("rank")?, take("nodes")?.try_into().ok()?);
    let (process, born) = (take("process")?.try_into().ok()?, take("born")?);
    let rank = rank.parse().ok().filter(|rank: &u16| u64::from(*rank) == said)?;
    Some((NodeCounters { run: run.to_owned(), rank, nodes, process, waits_for, figures }, born))
}

/// The start time of a process, in the kernel's ticks since it booted; `None` if there is no such
/// process.
fn born(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may contain anything. Behind it, the state is the third field and the start time the
    // 22nd.
    text.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Counters, born, is_run, of_this_host};
    use crate::address::{LockId, NodeId};
    use crate::interface::Subject;
    use std::fs;

    #[test]
    fn counters_are_found_while_their_node_lives() {
        let run = format!("test-{}", std::process::id());
        let mine = || -> Vec<_> {
            let all = of_this_host().unwrap();
            all.into_iter().filter(|counted| counted.run == run).collect()
        };
        let mut counters = Counters::new(&run, NodeId(3), 4).unwrap();
        assert!(counters.are_due() && mine().is_empty());
        counters.write(&[("locks", 7)], Some(Subject::Lock(LockId(5)))).unwrap();
        assert!(!counters.are_due());
        let found = &mine()[0];
        assert_eq!((found.rank, found.nodes, found.process), (3, 4, std::process::id()));
        assert_eq!((found.figure("locks"), found.figure("barriers")), (7, 0));
        assert_eq!(found.waits_for.as_deref(), Some("lock 5"));
        counters.write(&[("locks", 8)], None).unwrap();
        assert_eq!((mine()[0].figure("locks"), mine()[0].waits_for.as_deref()), (8, None));
        // The file of an earlier process with this process id.
        let (path, head) = (counters.path.clone(), counters.head.clone());
        fs::write(&path, head.replace(&born(found.process).unwrap().to_string(), "1")).unwrap();
        assert!(mine().is_empty() && !path.exists(), "what a dead node left is taken away");
        fs::write(&path, "nonsense").unwrap();
        assert!(mine().is_empty() && path.exists(), "what is no node's is left alone");
        drop(counters);
        assert!(!path.exists());
    }

    #[test]
    fn names_of_runs_are_plain() {
        assert!(is_run("host-4711"));
        for wrong in ["", "a/b", "..", "a b", &"x".repeat(65)] {
            assert!(!is_run(wrong), "{wrong}");
        }
    }
}
