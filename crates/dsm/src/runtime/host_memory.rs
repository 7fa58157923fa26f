//! How much shared memory a node may have: half of the available memory, because it keeps two
//! copies, divided by the number of nodes on its host. The host or a control group limits what is
//! available.

use std::path::Path;

/// Bytes for one of so many nodes on this host.
pub(super) fn share(nodes: usize) -> usize {
    part(available(|path| std::fs::read_to_string(path).ok()), nodes)
}

/// Bytes for one of so many nodes, out of `available`.
fn part(available: usize, nodes: usize) -> usize {
    available / 2 / nodes.max(1)
}

/// Memory that this process may use, according to files that `read` returns; if they tell nothing,
/// 2^46 bytes.
fn available(read: impl Fn(&Path) -> Option<String>) -> usize {
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits_of(line, &read));
    limits.chain(total(&read)).min().unwrap_or(1 << 46)
}

fn total(read: &impl Fn(&Path) -> Option<String>) -> Option<usize> {
    let text = read(Path::new("/proc/meminfo"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok()?.checked_mul(1024)
}

/// The limits of a control group and of its ancestors. The line is `4:memory:/a/b`, or `0::/a/b` in
/// version 2. Inside a container, its own group is the root.
fn limits_of(line: &str, read: &impl Fn(&Path) -> Option<String>) -> Vec<usize> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        names if names.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(path).ancestors();
    let limit = |group: &Path| {
        let below = group.strip_prefix("/").unwrap_or(group);
        // No limit is a word, or a number larger than any memory.
        read(&Path::new(root).join(below).join(file))?.trim().parse().ok()
    };
    groups.filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{available, part};

    /// What is available if these are the contents of the files.
    fn found(files: &[(&str, &str)]) -> usize {
        available(|path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
        })
    }

    const HOST: (&str, &str) = ("/proc/meminfo", "MemFree: 1 kB\nMemTotal:    4096 kB\n");

    #[test]
    fn half_of_the_memory_is_parted_among_the_nodes_of_a_host() {
        assert_eq!([0, 1, 4].map(|nodes| part(4 << 20, nodes)), [2 << 20, 2 << 20, 1 << 19]);
    }

    #[test]
    fn the_least_of_host_and_groups_is_available() {
        assert_eq!(found(&[HOST]), 4 << 20);
        assert_eq!(found(&[]), 1 << 46);
        let second = ("/proc/self/cgroup", "0::/a/b\n");
        assert_eq!(found(&[HOST, second]), 4 << 20);
        assert_eq!(found(&[HOST, second, ("/sys/fs/cgroup/a/b/memory.max", "max\n")]), 4 << 20);
        assert_eq!(found(&[HOST, second, ("/sys/fs/cgroup/a/memory.max", "65536\n")]), 65536);
        assert_eq!(found(&[HOST, second, ("/sys/fs/cgroup/memory.max", "8192\n")]), 8192);
        let first = ("/proc/self/cgroup", "5:cpu:/x\n4:memory:/a\n0::/\n");
        let none = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(found(&[HOST, first, none]), 4 << 20);
        let less = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
        assert_eq!(found(&[HOST, first, less]), 1 << 20);
    }
}
