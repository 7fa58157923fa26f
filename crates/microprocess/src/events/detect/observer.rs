//! The BPF program in the host's scheduler, and the threads that are registered with it. One for
//! each process, made when a runtime wants it.

use core::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use kyocho_sys::bpf::{Attachment, Map, Program, Refused, Ring, Words};
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::Ordering;

use super::program::{self, Maps, OUT};
use super::watcher::MapEntry;
use crate::data::statistics::Statistics;
use crate::data::view::{View, ViewWords, WORDS};
use crate::processor::kernel_thread::KernelThread;
use crate::processor::shared::KERNEL_THREADS_MAX;

/// The most virtual processors that are watched at a time.
const MAP_ENTRIES_MAX: u32 = 1024;

/// The BPF program in the host's scheduler, with its maps.
#[derive(Debug)]
pub(crate) struct Observer {
    views: Words<WORDS>,
    counters: Words<WORDS>,
    rings: Map,
    /// The program that a thread runs to register itself.
    enlist: Program,
    _attachment: Attachment,
    in_use: Mutex<InUse>,
}

/// The views and map entries that are in use.
#[derive(Debug, Default)]
struct InUse {
    views: usize,
    map_entries: u32,
    /// Map entries that are not in use.
    free: Vec<&'static MapEntry>,
}

static OBSERVER: OnceLock<Observer> = OnceLock::new();
/// Locked while the observer is made.
static MAKING: Mutex<()> = Mutex::new(());

impl Observer {
    /// The observer of this process. The first call makes it, which takes some milliseconds.
    ///
    /// # Errors
    /// The host does not permit it, or lacks a feature.
    pub(crate) fn get() -> Result<&'static Self, Refused> {
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(observer) = OBSERVER.get() {
            return Ok(observer);
        }
        let made = Self::make()?;
        Ok(OBSERVER.get_or_init(|| made))
    }

    /// The observer, if it has been made.
    pub(crate) fn made() -> Option<&'static Self> {
        OBSERVER.get()
    }

    fn make() -> Result<Self, Refused> {
        let refused = |errno| Refused { errno, log: String::new() };
        let threads = Map::hash(8, 4, KERNEL_THREADS_MAX).map_err(refused)?;
        let views = Words::new(KERNEL_THREADS_MAX).map_err(refused)?;
        let counters = Words::new(MAP_ENTRIES_MAX).map_err(refused)?;
        let example = Ring::new().map_err(refused)?;
        let rings = Map::table_of(example.map(), MAP_ENTRIES_MAX).map_err(refused)?;
        let maps =
            Maps { threads: &threads, views: views.map(), counters: counters.map(), rings: &rings };
        let enlist = Program::load(&program::enlist(&threads))?;
        let observe = Program::load(&program::observe(&maps))?;
        let attachment = observe.attach(c"sched_switch").map_err(refused)?;
        let in_use = Mutex::default();
        Ok(Self { views, counters, rings, enlist, _attachment: attachment, in_use })
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the host report on the calling thread, whose record this is, from now on. The view
    /// then belongs to the record for good. If the thread cannot be registered, for example because
    /// there are too many, the monitor watches it.
    pub(crate) fn enlist(&'static self, thread: &'static KernelThread) {
        let Some(view) = thread.view().or_else(|| self.new_view(thread)) else { return };
        view.belong_to(ptr::from_ref(thread).expose_provenance() as u64);
        if self.enlist.run([self.number(view.0)]) != Ok(0) {
            view.belong_to(0);
        }
    }

    /// Registers the calling thread as the sentinel of the virtual processor with `map_entry`. If
    /// that fails, the watcher is sometimes woken in vain.
    pub(super) fn enlist_sentinel(&'static self, map_entry: &MapEntry) {
        let _woken_in_vain = self.enlist.run([self.number(map_entry.sentinel().0)]);
    }

    /// Called when the sentinel, which is the calling thread, ends.
    pub(super) fn delist_sentinel(&self) {
        let _was_not_entered = self.enlist.run([OUT]);
    }

    /// Called when the calling thread, whose record this is, ends.
    pub(crate) fn delist(&self, thread: &KernelThread) {
        let _was_not_entered = self.enlist.run([OUT]);
        if let Some(view) = thread.view() {
            view.belong_to(0);
        }
    }

    fn new_view(&'static self, thread: &'static KernelThread) -> Option<View> {
        let words = self.new_words(&mut self.in_use())?;
        thread.set_view(words);
        Some(View::new(words))
    }

    fn new_words(&'static self, in_use: &mut InUse) -> Option<&'static ViewWords> {
        let words = self.views.entries().get(in_use.views)?;
        in_use.views += 1;
        Some(words)
    }

    /// The index of a view.
    fn number(&self, words: &'static ViewWords) -> u64 {
        let first = self.views.entries().as_ptr();
        ((ptr::from_ref(words).addr() - first.addr()) / size_of::<ViewWords>()) as u64
    }

    /// A map entry for the watcher of a virtual processor.
    ///
    /// # Errors
    /// The host gives no more memory or descriptors, or too many virtual processors are watched.
    pub(crate) fn map_entry(&'static self) -> Result<&'static MapEntry, Errno> {
        let mut in_use = self.in_use();
        if let Some(map_entry) = in_use.free.pop() {
            map_entry.reset();
            return Ok(map_entry);
        }
        let counters =
            self.counters.entries().get(in_use.map_entries as usize).ok_or(Errno::NOMEM)?;
        let sentinel = View::new(self.new_words(&mut in_use).ok_or(Errno::NOMEM)?);
        sentinel.guard(in_use.map_entries);
        let map_entry = MapEntry::new(in_use.map_entries, counters, sentinel)?;
        self.rings.put(in_use.map_entries, map_entry.ring().map())?;
        in_use.map_entries += 1;
        Ok(Box::leak(Box::new(map_entry)))
    }

    /// What the host did to the holders of the virtual processor with map entry `number`.
    pub(crate) fn counted(&self, number: u32) -> Statistics {
        let Some(counters) = self.counters.entries().get(number as usize) else {
            return Statistics::default();
        };
        let count =
            |offset: i16| counters[offset as usize / size_of::<u64>()].load(Ordering::Relaxed);
        Statistics {
            host_preempted: count(program::PREEMPTED),
            host_resumed: count(program::RESUMED),
            ..Statistics::default()
        }
    }

    /// Returns a map entry for use by the next virtual processor.
    pub(crate) fn give_back(&self, map_entry: &'static MapEntry) {
        self.in_use().free.push(map_entry);
    }
}
