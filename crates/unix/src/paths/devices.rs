//! `/dev` as clients see it: harmless devices, the instance's own terminals, and links to
//! descriptors.

use crate::clients::client::Client;
use crate::errors::{NOT_FOUND, THROUGH_LINK, host};
use crate::paths::walk::{Link, Node, Origin, beneath};
use crate::server::Server;
use crate::state::mounts::Source;
use core::ffi::CStr;
use kyocho_sys::error::Errno;
use rustix::fs::{FileType, Mode, OFlags};
use std::ffi::CString;
use std::os::fd::OwnedFd;

/// Devices of the host that are harmless in the hands of any client.
const HARMLESS: [&str; 6] = ["full", "null", "ptmx", "random", "urandom", "zero"];
/// Links, as on Linux.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
const NO_TERMINAL: Errno = Errno::new(libc::ENXIO);

impl Server {
    /// The node at `rest` of `/dev`.
    pub(crate) fn device_node(
        &self,
        client: &Client<'_>,
        root: &OwnedFd,
        path: &[u8],
        rest: &[u8],
    ) -> Result<Node, Errno> {
        let name = core::str::from_utf8(rest).map_err(|_| NOT_FOUND)?;
        if let Some((_, text)) = LINKS.iter().find(|(link, _)| *link == name) {
            // The descriptor only supplies the attributes of a link; any link serves.
            let file = beneath(root, b"fd")?;
            let link = Link::Text(text.as_bytes().to_vec());
            let path = path.to_vec();
            let (kind, origin) = (FileType::Symlink, Origin::Path);
            return Ok(Node { file, kind, path, writable: false, origin, link });
        }
        if name.starts_with("fd/") {
            return Err(THROUGH_LINK);
        }
        let of_host = match name {
            "tty" => format!("pts/{}", controlling_terminal(client).ok_or(NO_TERMINAL)?),
            "" | "pts" => name.to_owned(),
            _ if HARMLESS.contains(&name) => name.to_owned(),
            _ if terminal_number(name).is_some() => name.to_owned(),
            _ => return Err(NOT_FOUND),
        };
        let file = match terminal_number(&of_host).and_then(|number| self.terminal(number)) {
            Some(terminal) => terminal,
            None => beneath(root, of_host.as_bytes())?,
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(host)?.st_mode);
        // The path under the host's name, so that one check covers all names of a device.
        let path = [b"/dev/", of_host.as_bytes()].concat();
        let path = if of_host.is_empty() { b"/dev".to_vec() } else { path };
        Ok(Node { file, kind, path, writable: false, origin: Origin::Path, link: Link::Host })
    }

    /// Terminal `number`, if it belongs to the instance and still exists. A later terminal may have
    /// the same number; its node differs.
    fn terminal(&self, number: u32) -> Option<OwnedFd> {
        let mut state = self.state();
        if !is_there(state.terminals.get(&number)?) {
            state.terminals.remove(&number);
        }
        state.terminals.get(&number)?.try_clone().ok()
    }

    /// # Errors
    /// `ACCES`: `node` is another device of the host, or a terminal outside the instance.
    pub(crate) fn check_device(&self, node: &Node) -> Result<(), Errno> {
        let refused = Errno::new(libc::EACCES);
        let in_devices = node.path.starts_with(b"/")
            && matches!(self.mounts.find(&node.path).0.source, Source::Devices(_));
        let name =
            node.path.strip_prefix(b"/dev/").and_then(|name| core::str::from_utf8(name).ok());
        match name.filter(|_| in_devices) {
            Some(name) if HARMLESS.contains(&name) => Ok(()),
            Some(name) => {
                let own = terminal_number(name).and_then(|number| self.terminal(number));
                let identity = |file: &OwnedFd| {
                    rustix::fs::fstat(file).map(|status| (status.st_dev, status.st_ino))
                };
                match own {
                    Some(own) if identity(&own) == identity(&node.file) => Ok(()),
                    _ => Err(refused),
                }
            }
            None => Err(refused),
        }
    }

    /// Records the other end of a pseudo-terminal that was just opened.
    pub(crate) fn note_terminal(&self, node: &Node, file: &OwnedFd) {
        if node.path != b"/dev/ptmx" {
            return;
        }
        // While `file` is open, this name belongs to its other end.
        if let Ok(name) = rustix::pty::ptsname(file, Vec::new()) {
            self.note_terminal_named(&name, &name);
        }
    }

    /// Records the terminals among the descriptors that an instance begins with.
    pub(crate) fn note_first_terminals(&self) {
        for number in 0..3 {
            let host_path = format!("/proc/self/fd/{number}");
            if let (Ok(name), Ok(host_path)) =
                (rustix::fs::readlink(host_path.as_str(), Vec::new()), CString::new(host_path))
            {
                self.note_terminal_named(&name, &host_path);
            }
        }
    }

    /// Records the terminal called `name`, which `place` leads to. Its node is recorded, not only
    /// its number, because another terminal gets the number once this one is gone.
    fn note_terminal_named(&self, name: &CStr, place: &CStr) {
        let number =
            name.to_str().ok().and_then(|name| terminal_number(name.strip_prefix("/dev/")?));
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let (Some(number), Ok(terminal)) = (number, rustix::fs::open(place, flags, Mode::empty()))
        else {
            return;
        };
        let terminals = &mut self.state().terminals;
        terminals.retain(|_, terminal| is_there(terminal));
        terminals.insert(number, terminal);
    }
}

/// Whether the other end of a terminal is still open. Otherwise its node has lost its name.
fn is_there(terminal: &OwnedFd) -> bool {
    rustix::fs::fstat(terminal).is_ok_and(|status| status.st_nlink > 0)
}

/// N in `pts/N`.
fn terminal_number(name: &str) -> Option<u32> {
    name.strip_prefix("pts/")?.parse().ok()
}

/// N of the pseudo-terminal that controls the session of the client.
fn controlling_terminal(client: &Client<'_>) -> Option<u32> {
    /// The major numbers of pseudo-terminals.
    const MAJORS: core::ops::Range<u32> = 136..144;
    // State, parent, group, session, terminal.
    let device: u64 = client.statistics().ok()?.get(4)?.parse().ok()?;
    let major = libc::major(device);
    MAJORS.contains(&major).then(|| (major - MAJORS.start) * 256 + libc::minor(device))
}
