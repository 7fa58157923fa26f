//! The event Blocked with the BPF source: a sentinel reads the holder's view in memory, and a
//! watcher serves if the sentinel gets no turn.
//!
//! The sentinel is the faster of the two: the host switches to it when the holder stops, and its
//! check costs no system call. But it is of the lowest class, and waits for its turn on a core that
//! other programs want. The BPF program in the host's scheduler sees which thread comes after the
//! holder. If that is not the sentinel, it wakes the *watcher*, a thread of the normal class on the
//! same core, which sleeps otherwise. That wake needs an interrupt of the core to itself, so it
//! takes twice as long.

use core::time::Duration;
use std::os::fd::AsFd;

use kyocho_sys::bpf::Ring;
use kyocho_sys::error::Errno;
use kyocho_sys::event::Event;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::scheduling::{CpuSet, set_affinity, set_timer_slack_ns};
use kyocho_sys::task::ThreadId;

use super::observer::Observer;
use crate::data::view::{View, ViewWords};
use crate::events::sentinel;
use crate::processor::kernel_thread::ANY_CPU;
use crate::processor::taking::{Look, take_from_sleeper};
use crate::processor::vp::Vp;

/// How soon a sleeping holder is checked again if its virtual processor could not be taken. Either
/// there was no spare thread, or it sleeps for a page in the middle of a restartable sequence.
const AGAIN: Duration = Duration::from_micros(100);

/// Where the watcher of a virtual processor waits.
#[derive(Debug)]
pub(crate) struct MapEntry {
    number: u32,
    ring: Ring,
    /// Signalled when the runtime stops.
    stop: Event,
    /// The counters of the BPF program.
    counters: &'static ViewWords,
    /// The view of the sentinel.
    sentinel: View,
}

impl MapEntry {
    pub(super) fn new(
        number: u32,
        counters: &'static ViewWords,
        sentinel: View,
    ) -> Result<Self, Errno> {
        Ok(Self { number, ring: Ring::new()?, stop: Event::new()?, counters, sentinel })
    }

    /// Clears the counters.
    pub(super) fn reset(&self) {
        self.counters.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(super) fn sentinel(&self) -> &View {
        &self.sentinel
    }

    /// The number by which the BPF program finds it.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Wakes the watcher to stop, since the runtime stops.
    pub(crate) fn wake(&self) {
        let _cannot_fail = self.stop.notify();
    }
}

/// The body of the watcher of `vp`.
pub(crate) fn watch(vp: &'static Vp, map_entry: &'static MapEntry) {
    if vp.cpu() != ANY_CPU {
        // If refused, it works on another core, with more delay.
        let _anywhere = set_affinity(ThreadId::current(), &CpuSet::single(vp.cpu()));
    }
    let _late = set_timer_slack_ns(1);
    let mut timeout = None;
    while !vp.shared().stopping.load(Ordering::SeqCst) {
        // After an interrupted wait, or one for which there was no memory, an extra check does no
        // harm.
        let _told = map_entry.ring.wait(map_entry.stop.as_fd(), timeout);
        let is_asleep = || vp.look_at_holder(|holder| holder.asleep().is_some());
        let sleeps_on = take_from_sleeper(vp) != Look::Taken && is_asleep();
        timeout = sleeps_on.then_some(AGAIN);
    }
    let _was_told = map_entry.stop.drain();
}

/// The body of the sentinel of `vp`, if the host reports where the holder sleeps.
pub(crate) fn guard(vp: &'static Vp, map_entry: &'static MapEntry) {
    let observer = Observer::made();
    observer.inspect(|observer| observer.enlist_sentinel(map_entry));
    sentinel::start(vp);
    observer.inspect(|observer| observer.delist_sentinel());
}
