//! `/proc` as clients see it: the host's files about the host and about the instance's own
//! processes, for reading.
//!
//! The host's `/proc` is also a way out: `mem`, `root`, `cwd` and `fd` of any process of the user.
//! So only the names in the two lists below exist, and `self`, `thread-self`, `mounts` and `net`. A
//! link that leads out of `/proc` is answered with its meaning inside the mounts.

use crate::clients::client::Client;
use crate::clients::tree::{is_client, status_field};
use crate::errors::{NOT_FOUND, THROUGH_LINK, host};
use crate::options::Network;
use crate::paths::walk::{Link, Node, Origin, beneath};
use crate::program::{launcher, running};
use crate::server::Server;
use crate::state::mounts::Source;
use kyocho_sys::error::Errno;
use rustix::fs::FileType;
use std::os::fd::OwnedFd;

/// The files about the host that exist.
const OF_HOST: [&str; 16] = [
    "cmdline",
    "cpuinfo",
    "devices",
    "diskstats",
    "filesystems",
    "loadavg",
    "meminfo",
    "misc",
    "partitions",
    "stat",
    "swaps",
    "sys",
    "uptime",
    "version",
    "vmstat",
    "zoneinfo",
];

/// The files about a process, or about one of its threads, that exist.
const OF_PROCESS: [&str; 27] = [
    "auxv",
    "cgroup",
    "cmdline",
    "comm",
    "cwd",
    "environ",
    "exe",
    "fd",
    "fdinfo",
    "io",
    "limits",
    "loginuid",
    "maps",
    "mountinfo",
    "mounts",
    "oom_score",
    "oom_score_adj",
    "personality",
    "root",
    "schedstat",
    "smaps",
    "smaps_rollup",
    "stat",
    "statm",
    "status",
    "task",
    "wchan",
];

impl Server {
    /// The node at `rest` of `/proc`.
    pub(crate) fn process_node(
        &self,
        client: &Client<'_>,
        root: &OwnedFd,
        path: &[u8],
        rest: &[u8],
    ) -> Result<Node, Errno> {
        let text = core::str::from_utf8(rest).map_err(|_| NOT_FOUND)?;
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let link = match parts.as_slice() {
            [] => Link::Host,
            ["self"] => Link::Text(client.process()?.to_string().into_bytes()),
            ["thread-self"] => {
                Link::Text(format!("{}/task/{}", client.process()?, client.thread()).into_bytes())
            }
            ["mounts"] => Link::Text(b"self/mounts".to_vec()),
            ["net"] => Link::Text(b"self/net".to_vec()),
            ["self" | "thread-self" | "net", ..] => return Err(THROUGH_LINK),
            [process, rest @ ..] if process.parse::<u32>().is_ok() => {
                self.check_process(client, process)?;
                self.process_link(process, rest)?
            }
            [name, ..] if OF_HOST.contains(name) => Link::Host,
            _ => return Err(NOT_FOUND),
        };
        let file = match parts.as_slice() {
            [process, ..] if process.parse::<u32>().is_ok() => {
                // This was opened before the check. So it is about the process that was checked, or
                // about one that has ended.
                let opened = beneath(root, process.as_bytes())?;
                self.check_process(client, process)?;
                let inner = text.split_once('/').map_or("", |(_, inner)| inner);
                if inner.is_empty() { opened } else { beneath(&opened, inner.as_bytes())? }
            }
            _ => beneath(root, rest)?,
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(host)?.st_mode);
        Ok(Node { file, kind, path: path.to_vec(), writable: false, origin: Origin::Path, link })
    }

    /// # Errors
    /// `NOENT`: `process` is not one that the client may know of.
    fn check_process(&self, client: &Client<'_>, process: &str) -> Result<(), Errno> {
        let number: u32 = process.parse().map_err(|_| NOT_FOUND)?;
        let of_instance =
            client.process()? == number || status_field(number, "Tgid:", 10).is_ok_and(is_client);
        if of_instance { Ok(()) } else { Err(NOT_FOUND) }
    }

    /// The text of the entry `rest` of `process`, if it is a link.
    fn process_link(&self, process: &str, rest: &[&str]) -> Result<Link, Errno> {
        let rest = match rest {
            ["task"] | ["task", _] => &[],
            ["task", _, rest @ ..] => rest,
            rest => rest,
        };
        match rest {
            [] => Ok(Link::Host),
            ["net", ..] if self.network == Network::Host => Ok(Link::Host),
            [name, ..] if !OF_PROCESS.contains(name) => Err(NOT_FOUND),
            ["root"] => Ok(Link::Text(b"/".to_vec())),
            ["exe"] => Ok(Link::Text(self.executable(process)?)),
            ["cwd"] => {
                let host_path = read_link(&format!("/proc/{process}/cwd"))?;
                self.mounts.to_virtual(&host_path).map(Link::Text).ok_or(NOT_FOUND)
            }
            ["fd", number] => {
                let number: i32 = number.parse().map_err(|_| NOT_FOUND)?;
                let text = read_link(&format!("/proc/{process}/fd/{number}"))?;
                // A client has this descriptor only while it enters a program.
                if running::is_mark(&text) {
                    return Err(NOT_FOUND);
                }
                let text = self.mounts.to_virtual(&text).unwrap_or(text);
                let process = process.parse().map_err(|_| NOT_FOUND)?;
                Ok(Link::Descriptor(text, process, number))
            }
            ["root" | "cwd", _, ..] | ["fd", _, _, ..] => Err(THROUGH_LINK),
            _ => Ok(Link::Host),
        }
    }

    /// The program that a process runs: the lowest of its mapped files above the launcher that is
    /// not a mark.
    fn executable(&self, process: &str) -> Result<Vec<u8>, Errno> {
        let maps = std::fs::read(format!("/proc/{process}/maps")).map_err(|_| NOT_FOUND)?;
        maps.split(|byte| *byte == b'\n')
            .filter_map(mapped_file)
            .find(|path| !running::is_mark(path) && !launcher::is_image(path))
            .and_then(|path| self.mounts.to_virtual(path))
            .ok_or(NOT_FOUND)
    }

    /// Whether `path` lies where clients can make nothing.
    pub(crate) fn is_synthetic(&self, path: &[u8]) -> bool {
        !path.starts_with(b"/") || !matches!(self.mounts.find(path).0.source, Source::Host { .. })
    }
}

/// The path at the end of a line of `maps`, if there is one.
fn mapped_file(line: &[u8]) -> Option<&[u8]> {
    let slash = line.iter().position(|byte| *byte == b'/')?;
    Some(&line[slash..])
}

fn read_link(path: &str) -> Result<Vec<u8>, Errno> {
    rustix::fs::readlink(path, Vec::new()).map(|text| text.into_bytes()).map_err(host)
}
