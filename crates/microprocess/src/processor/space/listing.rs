//! A virtual processor among those of all processes: it publishes the level that it wants to run,
//! and yields the CPU.
//!
//! ```text
//!   switch to another level ──► publish ──┬─ lower: RANK ──► next scheduling point ──► yield
//!                                         └─ higher: nothing; others notice it by their monitors
//!   monitor's tick ──► beat, contested? ──┬─ outranked: RANK, interrupt ──► handler ──► yield
//!                                         └─ a CPU is free: move there
//!   yield: yielded = 1, check again, sleep ◄── rouse: by one that becomes idle or less urgent, or by an attention bit
//! ```
//!
//! **Invariant:** a holder that has yielded its CPU has events masked and holds no lock. It is
//! between two sections, as an idle holder is.
//!
//! **Invariant:** no wake is lost. A holder sets its `yielded` before it reads the others' entries.
//! The others store their entry before they read `yielded`. All these accesses are sequentially
//! consistent. The holder changes its attention word from 0 to
//! [`CPU_YIELDED`](attention::CPU_YIELDED) in one step, and a thread that sets a bit there wakes
//! it. A process that overwrites the table can delay a wake by [`LOOK_AGAIN_NS`], no more.

use core::cell::Cell;

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::current_cpu;

use super::rank::{Patience, Rank, better_cpu, rank_of};
use super::table::{Claim, Entry};
use super::{Space, space};
use crate::processor::kernel_thread::{ANY_CPU, KernelThread};
use crate::processor::vp::{Masked, Vp, attention};

/// How often a holder that has yielded its CPU checks whether it still must: the more urgent
/// process may have died.
const LOOK_AGAIN_NS: u64 = 20_000_000;
/// A value of `published`: nothing to run.
pub(crate) const NOTHING: u8 = u8::MAX;
/// A value of `index`: no entry.
const NO_ENTRY: u32 = u32::MAX;

/// The state of a virtual processor in the shared file.
#[derive(Debug)]
pub(crate) struct Listing {
    index: AtomicU32,
    /// The level that was published last. Stored by the holder.
    published: AtomicU8,
    /// Whether others wanted this CPU at the last check.
    contested: AtomicBool,
    /// Used by the holder.
    patience: Cell<Patience>,
    /// Whether the last tick found a better CPU. Used by the monitor.
    restless: Cell<bool>,
}

impl Listing {
    pub(crate) const fn new() -> Self {
        Self {
            index: AtomicU32::new(NO_ENTRY),
            published: AtomicU8::new(NOTHING),
            contested: AtomicBool::new(false),
            patience: Cell::new(Patience::NEW),
            restless: Cell::new(false),
        }
    }

    /// As it was at first: it has no entry, and no holder.
    pub(crate) fn renew(&self) {
        self.published.store(NOTHING, Ordering::Relaxed);
        self.contested.store(false, Ordering::Relaxed);
        self.patience.set(Patience::NEW);
        self.restless.set(false);
    }

    /// Takes the entry of this index, before the virtual processor runs.
    pub(super) fn occupy(&self, index: usize, cpu: usize) {
        if let Ok(space) = space() {
            space.table.entry(index).move_to(cpu);
            self.index.store(index as u32, Ordering::Release);
        }
    }

    /// Leaves the entry after the virtual processor has stopped; returns its index.
    pub(super) fn vacate(&self) -> Option<usize> {
        match self.index.swap(NO_ENTRY, Ordering::AcqRel) {
            NO_ENTRY => None,
            index => Some(index as usize),
        }
    }

    /// The level that others see for this virtual processor; [`NOTHING`] means none.
    #[inline(always)]
    pub(crate) fn published(&self) -> u8 {
        self.published.load(Ordering::Relaxed)
    }

    fn entry(&self) -> Option<(&'static Space, usize, &'static Entry)> {
        let index = self.index.load(Ordering::Acquire);
        let space = if index == NO_ENTRY { None } else { space().ok() }?;
        Some((space, index as usize, space.table.entry(index as usize)))
    }
}

impl Masked<'_> {
    /// Publishes a changed level; `None` means that there is nothing to run. Call as the holder,
    /// with events masked.
    #[cold]
    #[inline(never)]
    pub(crate) fn publish(self, level: Option<u8>) {
        let listing = &self.listing;
        let code = level.unwrap_or(NOTHING);
        let before = listing.published.swap(code, Ordering::Relaxed);
        let Some((space, index, entry)) = listing.entry() else { return };
        if before == NOTHING {
            let now_ns = monotonic_ns();
            entry.beat(now_ns);
            self.sample_cpu(entry);
            let claim = Claim { index, level: 0, cpu: entry.cpu() };
            let alone = rank_of(claim, space.table.claims(index, now_ns)) == Rank::Alone;
            listing.contested.store(!alone, Ordering::Relaxed);
        }
        entry.want(level);
        let sank = before != NOTHING && level.is_none_or(|level| level < before);
        if sank && listing.contested.load(Ordering::Relaxed) {
            space.table.rouse_above(entry.cpu(), level);
            if level.is_some() {
                self.attention.fetch_or(attention::RANK, Ordering::Relaxed);
            }
        }
    }

    /// The highest level that could run here now.
    fn wanted(self) -> Option<u8> {
        let running = self.current.get().map(|record| record.level());
        let chosen = self.own().chosen.get().map(|record| record.level());
        running.max(chosen).max(self.queue().highest())
    }

    /// Yields the CPU while another virtual processor has a greater right to the CPU, but not
    /// longer than the bound. Call as the holder, with events masked, outside any lock.
    #[cold]
    pub(crate) fn yield_cpu(self) {
        let listing = &self.listing;
        let Some((space, index, entry)) = listing.entry() else { return };
        KernelThread::current().pin(self.cpu());
        self.sample_cpu(entry);
        let bound_ns = self.shared().limits.cpu_yield_max_ns;
        let mut patience = listing.patience.get();
        let outranked = |claim: Claim, now_ns| {
            rank_of(claim, space.table.claims(index, now_ns)) == Rank::Outranked
        };
        let mut rested = false;
        while let Some(level) = self.wanted() {
            listing.published.store(level, Ordering::Relaxed);
            entry.want(Some(level));
            let claim = Claim { index, level, cpu: entry.cpu() };
            entry.yielded.store(1, Ordering::SeqCst);
            let now_ns = monotonic_ns();
            let until_ns = patience.yield_until(outranked(claim, now_ns), now_ns, bound_ns);
            let spent_ns = self.shared().spent_until_ns.load(Ordering::SeqCst);
            let spent_until_ns = Some(spent_ns).filter(|&spent_ns| now_ns < spent_ns);
            let Some(until_ns) = until_ns.max(spent_until_ns) else { break };
            if !self.begin_cpu_yield() {
                // An attention bit must be served first. Rank is checked again afterwards.
                self.attention.fetch_or(attention::RANK, Ordering::Relaxed);
                break;
            }
            if !core::mem::replace(&mut rested, true) {
                self.counters.cpu_yields.bump();
            }
            futex::wait_shared(&entry.yielded, 1, Some(until_ns.min(now_ns + LOOK_AGAIN_NS)));
            attention::rise(&self.attention, attention::CPU_YIELDED);
        }
        entry.yielded.store(0, Ordering::SeqCst);
        listing.patience.set(patience);
        if rested {
            entry.beat(monotonic_ns());
            self.sentinel.wake();
            self.shared().monitor.expect_work();
        }
    }

    fn begin_cpu_yield(self) -> bool {
        let yielded = attention::CPU_YIELDED;
        attention::rest(&self.attention, yielded)
    }
}

impl Vp {
    /// Stores the present CPU if the virtual processor is not pinned to one.
    fn sample_cpu(&self, entry: &Entry) {
        if self.cpu() == ANY_CPU {
            entry.move_to(current_cpu());
        }
    }

    /// Wakes the holder, which has yielded its CPU, because of a bit in `attention`. May be called
    /// by any thread.
    #[cold]
    pub(crate) fn rouse_from_cpu_yield(&self) {
        if let Some((_, _, entry)) = self.listing.entry() {
            entry.rouse();
        }
    }

    /// Renews the beat of a busy virtual processor; returns whether it is outranked. Called by the
    /// monitor.
    pub(crate) fn tick(&self, now_ns: u64) -> bool {
        let listing = &self.listing;
        let Some((space, index, entry)) = listing.entry() else { return false };
        entry.beat(now_ns);
        let level = listing.published();
        if level == NOTHING {
            return false;
        }
        let claim = Claim { index, level, cpu: entry.cpu() };
        let claims = space.table.claims(index, now_ns);
        let rank = rank_of(claim, claims.clone());
        listing.contested.store(rank != Rank::Alone, Ordering::Relaxed);
        let better = better_cpu(claim, &self.shared().cpus(), claims);
        // Moves only if two ticks in a row found a better CPU: a rival may be about to move away.
        let moves = better.filter(|_| listing.restless.replace(better.is_some()));
        if let Some(cpu) = moves {
            self.move_to(cpu);
            entry.move_to(cpu);
            listing.restless.set(false);
        }
        rank == Rank::Outranked || moves.is_some()
    }

    /// Called when a microprocess has run for a slice, since the host may have moved the thread.
    pub(crate) fn resample_cpu(&self) {
        if self.cpu() == ANY_CPU
            && let Some((_, _, entry)) = self.listing.entry()
        {
            self.sample_cpu(entry);
        }
    }
}
