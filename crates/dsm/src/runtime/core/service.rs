//! The service thread: processes messages while no thread of the program waits, writes counters,
//! and notices the end of the launcher.

use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use kyocho_sys::error::Errno;
use kyocho_sys::prim::clock::Instant;
use rustix::process::{Signal, getpid, kill_process};

use super::{Core, EPROTO, LOOK_EVERY};
use crate::address::NodeId;
use crate::counters::Counters;
use crate::launch::{Launcher, LauncherEvent};
use crate::runtime::last_words;
use crate::transport::Waiter;

/// Shortest interval between two checks of the launcher's pipe.
const LOOK_AT_LAUNCHER_EVERY: Duration = Duration::from_millis(200);

/// What a node has to do with other processes than nodes.
#[derive(Debug)]
pub(in crate::runtime) struct OtherProcesses {
    pub(in crate::runtime) counters: Option<Counters>,
    pub(in crate::runtime) launcher: Option<Launcher>,
    /// Shared memory of the node, at most.
    pub(in crate::runtime) memory_bytes_max: usize,
}

impl Core {
    /// The work of the service thread, until this node ends.
    pub(in crate::runtime) fn serve(&self, me: NodeId, mut outside: OtherProcesses) {
        let _report = ReportPanic(self);
        let mut look_next = Instant::now();
        while self.lock().is_ok_and(|state| !state.ended) {
            self.transport.wait(Waiter::Service, LOOK_EVERY);
            let Ok(mut state) = self.lock() else { return };
            self.take(&mut state);
            drop(state);
            if outside.launcher.is_some() && Instant::now() >= look_next {
                look_next = Instant::now() + LOOK_AT_LAUNCHER_EVERY;
                outside = end_with_launcher(me, outside);
            }
            if let Some(counted) = outside.counters.as_mut().filter(|counters| counters.are_due())
                && let Err(why) = self.show_counters(counted)
            {
                last_words(&format!("kyocho-dsm: counters can no longer be written: {why}"));
                outside.counters = None;
            }
        }
    }

    /// The work of the heartbeat thread: sends heartbeats until the other end of `stopped` is
    /// dropped. It never locks the node, so a long step delays no heartbeat.
    pub(in crate::runtime) fn send_heartbeats(&self, stopped: &Receiver<()>) {
        while let Some(every) = self.transport.send_heartbeats() {
            if stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Whether the other nodes expect heartbeats.
    pub(in crate::runtime) fn needs_heartbeats(&self) -> bool {
        self.transport.send_heartbeats().is_some()
    }

    fn show_counters(&self, counters: &mut Counters) -> std::io::Result<()> {
        let (pages, waits_for) = {
            let state = self.lock_to_end();
            (state.watch.visible_count() as u64, state.node.waits_for())
        };
        let mut figures = vec![("pages", pages)];
        figures.extend(self.statistics().figures());
        counters.write(&figures, waits_for)
    }
}

/// Ends this process if its launcher has ended: no other process would.
///
/// It uses a signal, because this is not the program's thread, and exit handlers belong to the
/// program.
fn end_with_launcher(me: NodeId, mut outside: OtherProcesses) -> OtherProcesses {
    let launcher = outside.launcher.as_mut();
    // The end of a node is noticed by its connections.
    let is_gone = launcher.is_some_and(|launcher| {
        core::iter::from_fn(|| launcher.next_event())
            .take(EVENTS_MAX)
            .any(|event| event == LauncherEvent::Gone)
    });
    if is_gone {
        last_words(&format!("kyocho-dsm: node {}: its launcher has ended, so it ends", me.0));
        drop(outside.counters.take());
        // It cannot fail: a process may always end itself.
        let _ended = kill_process(getpid(), Signal::KILL);
    }
    outside
}

/// Events read at once: more than there are nodes.
const EVENTS_MAX: usize = 8192;

/// Reports a panic of the service thread to threads that wait.
struct ReportPanic<'a>(&'a Core);

impl Drop for ReportPanic<'_> {
    fn drop(&mut self) {
        if kyocho_sys::prim::thread::panicking() {
            let mut state = self.0.lock_to_end();
            state.refused = Some(Errno::new(EPROTO));
            self.0.wake_all(&state);
            drop(state);
            self.0.transport.close();
        }
    }
}
