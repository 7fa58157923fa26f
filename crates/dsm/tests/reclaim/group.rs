//! A memory control group below that of this process, in either version of the host's interface.

use std::fs;
use std::path::{Path, PathBuf};

use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

/// The first attempts spare pages that were just used.
const ATTEMPTS_MAX: usize = 200;

/// Many times the size of a CPU's batch of new pages.
const BALLAST_PAGES: usize = 256;

/// A control group. It is removed when dropped, once its processes have ended.
pub(crate) struct Group {
    folder: PathBuf,
    /// The file that holds the limit, and the value that means no limit.
    limit: PathBuf,
    none: &'static str,
}

impl Group {
    /// Creates a group, or tells why this process may not.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        let (parent, limit, none) = parent()?;
        let folder = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let group = Self { limit: folder.join(limit), folder, none };
        if !group.limit.exists() {
            return Err(format!("{} does not exist", group.limit.display()));
        }
        Ok(group)
    }

    /// The same one, in another process.
    pub(crate) fn existing(folder: &Path) -> Result<Self, String> {
        let (_, limit, none) = parent()?;
        Ok(Self { folder: folder.to_owned(), limit: folder.join(limit), none })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Moves the calling process into it.
    pub(crate) fn enter(&self) -> Result<(), String> {
        let processes = self.folder.join("cgroup.procs");
        fs::write(&processes, "0").map_err(|why| format!("{}: {why}", processes.display()))
    }

    /// Makes the host reclaim pages by a limit that is far too low, until `is_enough` returns true
    /// or many attempts have failed. Then removes the limit. Returns whether it was enough.
    pub(crate) fn squeeze(&self, is_enough: impl Fn() -> bool) -> bool {
        let enough = (0..ATTEMPTS_MAX).any(|_| {
            // New pages reach the kernel's lists in batches per CPU: these pages complete the batch
            // that others may be in.
            let ballast = TwoViews::new(BALLAST_PAGES * PAGE_BYTES, None).expect("there is memory");
            (0..BALLAST_PAGES).for_each(|page| ballast.write(page * PAGE_BYTES, &[1]));
            // Version 1 rejects a limit below what could not be reclaimed, after the attempt.
            let _refused = fs::write(&self.limit, "4096");
            is_enough()
        });
        fs::write(&self.limit, self.none).expect("no limit is always permitted");
        enough
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It fails in a process of the group; the process outside removes the group.
        let _left = fs::remove_dir(&self.folder);
    }
}

/// The folder of this process's own group, and how a limit is set in a group below it.
fn parent() -> Result<(PathBuf, &'static str, &'static str), String> {
    let read = |file: &str| fs::read_to_string(file).map_err(|why| format!("{file}: {why}"));
    let (groups, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
    };
    let groups: Vec<_> = groups.lines().filter_map(of_line).collect();
    let path = |is_it: &dyn Fn(&str) -> bool| groups.iter().find(|(name, _)| is_it(name));
    let first = path(&|names| names.split(',').any(|name| name == "memory"));
    if let Some((_, path)) = first {
        let folder = folder(&mounts, "cgroup", "memory", path)?;
        return Ok((folder, "memory.limit_in_bytes", "-1"));
    }
    let (_, path) = path(&str::is_empty).ok_or("this process is in no control group")?;
    // Above the high mark the host reclaims pages and slows the group down, but ends no process.
    Ok((folder(&mounts, "cgroup2", "", path)?, "memory.high", "max"))
}

/// The folder of a group in the file system of this version.
fn folder(mounts: &str, kind: &str, option: &str, path: &str) -> Result<PathBuf, String> {
    let found = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_kind = after.next() == Some(kind);
        let options = after.next_back().unwrap_or("");
        let has = option.is_empty() || options.split(',').any(|one| one == option);
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root.trim_end_matches('/'))?;
        (is_kind && has).then(|| Path::new(point).join(below.trim_start_matches('/')))
    });
    found.ok_or_else(|| format!("no file system of control groups shows {path}"))
}
