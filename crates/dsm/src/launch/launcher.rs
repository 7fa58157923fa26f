//! The pipe from a launcher to a node. The launcher holds it open as long as it lives.
//!
//! ```text
//!   ended 3\n      node 3 has ended: a node that is joining need not wait for it
//!   end of file    the launcher has ended, for whatever reason: the nodes end as well
//! ```

use std::os::fd::OwnedFd;

use kyocho_sys::descriptor;
use kyocho_sys::signal::{self, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::address::NodeId;

/// Longest line that is accepted.
const LINE_BYTES_MAX: usize = 64;

/// What a launcher writes to the pipes of the other nodes when a node has ended.
#[must_use]
pub fn ended(rank: u16) -> String {
    format!("ended {rank}\n")
}

/// The signal that a launcher asks the kernel to send to a node when the launcher ends. It ends a
/// program that has not joined. One that has joined ignores it and watches its pipe.
#[must_use]
pub fn end_signal() -> Signal {
    Signal::realtime(12)
}

/// An event that the launcher reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LauncherEvent {
    /// The node of this rank has ended.
    Ended(NodeId),
    /// The launcher has ended.
    Gone,
}

/// The node's end of the pipe.
#[derive(Debug)]
pub(crate) struct Launcher {
    line: OwnedFd,
    text: Vec<u8>,
    is_gone: bool,
    first: Option<LauncherEvent>,
}

impl Launcher {
    /// From now on the end of the pipe means that the launcher has ended, and [`end_signal`] is
    /// ignored.
    ///
    /// The request for the signal cannot be withdrawn: the kernel keeps it per thread, and the
    /// thread that joins may not be the one that started the program.
    pub(crate) fn new(line: OwnedFd) -> Self {
        // If this fails, the signal ends the node with the launcher, and the node's counters
        // remain.
        let _ignored = signal::ignore(end_signal());
        Self { line, text: Vec::new(), is_gone: false, first: None }
    }

    /// The first event, at each call. Never waits.
    ///
    /// A joining node checks repeatedly. It may continue after an event, because a peer's message
    /// that has arrived says more. The ends of other nodes, which the first one causes, must not
    /// replace it.
    pub(crate) fn first_event(&mut self) -> Option<LauncherEvent> {
        if self.first.is_none() {
            self.first = self.next_event();
        }
        self.first
    }

    /// The next event, also after [`first_event`](Self::first_event) has shown it. Never waits.
    pub(crate) fn next_event(&mut self) -> Option<LauncherEvent> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                // An unknown line of a later version of the launcher.
                match parse(&line[..end]) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            if self.is_gone {
                return Some(LauncherEvent::Gone);
            }
            if !self.read() {
                return None;
            }
        }
    }

    /// Reads once, if there is something to read. Returns whether there was.
    fn read(&mut self) -> bool {
        let mut polled = [PollFd::new(&self.line, PollFlags::IN)];
        if !poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let mut bytes = [0; LINE_BYTES_MAX];
        match descriptor::read(std::os::fd::AsFd::as_fd(&self.line), &mut bytes) {
            Ok(0) => self.is_gone = true,
            Ok(count) if self.text.len() < LINE_BYTES_MAX => {
                self.text.extend_from_slice(&bytes[..count]);
            }
            // A line without end: not one of ours.
            Ok(_) => self.text.clear(),
            Err(why) if why.number() == Errno::INTR.raw_os_error() => {}
            Err(_) => self.is_gone = true,
        }
        true
    }
}

fn parse(line: &[u8]) -> Option<LauncherEvent> {
    let rank = core::str::from_utf8(line).ok()?.strip_prefix("ended ")?;
    rank.parse().ok().map(NodeId).map(LauncherEvent::Ended)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Launcher, LauncherEvent, ended};
    use crate::address::NodeId;

    #[test]
    fn events_are_returned_one_by_one_and_the_end_repeatedly() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut launcher = Launcher::new(reader.into());
        assert_eq!(launcher.next_event(), None);
        writer.write_all(format!("{}{}", ended(3), ended(400)).as_bytes()).unwrap();
        writer.write_all(b"hello\nended x\nended 5").unwrap();
        assert_eq!(launcher.next_event(), Some(LauncherEvent::Ended(NodeId(3))));
        assert_eq!(launcher.next_event(), Some(LauncherEvent::Ended(NodeId(400))));
        assert_eq!(launcher.next_event(), None, "what is unknown or incomplete");
        writer.write_all(b"\n").unwrap();
        assert_eq!(launcher.next_event(), Some(LauncherEvent::Ended(NodeId(5))));
        writer.write_all(&[b'x'; 1000]).unwrap();
        assert_eq!(launcher.next_event(), None);
        drop(writer);
        assert_eq!(
            (launcher.next_event(), launcher.next_event()),
            (Some(LauncherEvent::Gone), Some(LauncherEvent::Gone))
        );
    }

    #[test]
    fn the_first_event_is_neither_replaced_by_a_later_one_nor_lost() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut launcher = Launcher::new(reader.into());
        assert_eq!(launcher.first_event(), None);
        writer.write_all(format!("{}{}", ended(2), ended(0)).as_bytes()).unwrap();
        drop(writer);
        for _ in 0..3 {
            assert_eq!(launcher.first_event(), Some(LauncherEvent::Ended(NodeId(2))));
        }
        // A node that has joined is told of both.
        let rest = [launcher.next_event(), launcher.next_event()];
        assert_eq!(rest, [2, 0].map(|node| Some(LauncherEvent::Ended(NodeId(node)))));
    }
}
