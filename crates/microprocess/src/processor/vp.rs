//! Virtual processors: what a kernel thread must hold to run microprocesses.
//!
//! A virtual processor is a role, not a thread. Only its *holder* uses its run queue, timers and
//! free slots, with events masked. So they need no lock and no atomic instruction. All other
//! threads have two ways to reach it:
//!
//! ```text
//!   any thread ── post ──► inbox (lock-free stack of records) ─┐
//!   monitor, kernel ─────► attention (bits) ◄──────────────────┘ loaded at every scheduling point
//! ```
//!
//! **Invariant:** nothing allocates or frees while events are masked. A microprocess of this
//! virtual processor may have been preempted inside the allocator, and hold its lock.
//!
//! **Invariant:** `attention` holds exactly [`IDLE`](attention::IDLE), apart from
//! [`CLAIMED`](attention::CLAIMED), while the holder sleeps because it has no work. The thread that
//! clears the bit wakes the holder. Another holder uses data of the sleeping one only under a
//! [claim](ClaimedIdle).
#![expect(
    unsafe_code,
    reason = "follows pointers to records and kernel threads, which are never freed"
)]

use core::fmt;
use core::ptr;

use kyocho_sys::holder_only::HolderOnly;
use kyocho_sys::prim::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use kyocho_sys::prim::clock::monotonic_ns;

use crate::data::priority::Priority;
use crate::data::statistics::Counters;
use crate::processor::bell::Bell;
use crate::processor::kernel_thread::{ANY_CPU, KernelThread};
use crate::processor::pool::Pool;
use crate::processor::port::Port;
use crate::processor::published::Current;
use crate::processor::ready::QueueControl;
use crate::processor::record::{Record, State};
use crate::processor::reflection::Reflected;
use crate::processor::scheduler::{Runs, Slice};
use crate::processor::sentinel::Sentinel;
use crate::processor::shared::Shared;
use crate::processor::space::Listing;
use crate::processor::trace::{Trace, What};
pub(crate) use crate::protocol::attention;
use crate::protocol::attention::Sleeper;
use crate::protocol::bias::{Member, Presence};
use crate::protocol::inbox::{self, Inbox, Link};

mod home;
mod idle;
mod masked;
mod messages;
mod spread;
mod timers;

pub(crate) use home::Home;
pub(crate) use idle::ClaimedIdle;
pub(crate) use masked::{Masked, Own};

/// What the attention `bits` say of the time slice of the running microprocess.
pub(crate) fn slice(bits: u32) -> Slice {
    if bits & attention::PREEMPT != 0 { Slice::Over } else { Slice::Left }
}

/// Means "no deadline".
pub(crate) const NEVER_NS: u64 = u64::MAX;

/// The virtual processor has no watcher.
pub(crate) const NO_MAP_ENTRY: u32 = u32::MAX;

/// A busy virtual processor checks for completed I/O once in this many switches, and at the end of
/// a time slice. An idle one does so at once.
const SWITCHES_PER_REAP: u64 = 64;

/// A virtual processor. Never freed.
#[repr(C, align(128))]
pub(crate) struct Vp {
    // Written by the holder, read by any thread.
    pub(crate) current: Current,
    /// Used by the holder.
    own: HolderOnly<Own>,
    pub(crate) counters: Counters,
    pub(crate) trace: Trace,
    // Used by any thread.
    pub(crate) index: usize,
    shared: AtomicPtr<Shared>,
    pub(crate) holder: AtomicPtr<KernelThread>,
    /// Not later than the earliest timer.
    pub(crate) next_deadline_ns: AtomicU64,
    pub(crate) attention: AtomicU32,
    inbox: Inbox<Record>,
    /// Set by a thread that is taking the virtual processor; there is one at a time.
    pub(crate) taking: AtomicBool,
    /// How many threads are looking at its holder, to interrupt it.
    pub(crate) looking: AtomicU32,
    /// Whether it is retired, and runs nothing: see [`set_concurrency`](crate::set_concurrency()).
    retired: AtomicBool,
    /// 1 after the last holder has left for good.
    pub(crate) stopped: AtomicU32,
    port: AtomicPtr<Port>,
    cpu: AtomicUsize,
    /// Kernel threads that wait for this virtual processor, or for any.
    pub(crate) pool: Pool,
    /// Kernel threads on their way into the pool.
    pub(crate) starting: AtomicU32,
    pub(crate) sentinel: Sentinel,
    /// The number of its watcher's map entry; [`NO_MAP_ENTRY`] without a watcher.
    pub(crate) map_entry: AtomicU32,
    /// Whether the monitor is to be called when a microprocess begins to wait here while others are
    /// idle. If not set, the monitor checks at its own time.
    offers: AtomicBool,
    /// Whether a microprocess has begun to wait here since the monitor's last check.
    offered: AtomicBool,
    /// Its membership among the virtual processors that are awake.
    presence: Presence<Self>,
    /// Its entry among those of all processes.
    pub(crate) listing: Listing,
    /// The bell that other processes ring.
    pub(crate) bell: Bell,
    /// The level that the host knows for it.
    pub(crate) reflected: Reflected,
}

// SAFETY: cells are reached only through `Masked`, which only the holder has. Everything else is
// atomic.
unsafe impl Sync for Vp {}

impl fmt::Debug for Vp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vp").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Member for Vp {
    fn presence(&self) -> &Presence<Self> {
        &self.presence
    }

    fn may_be_in_section(&self) -> bool {
        let has_yielded = self.attention.load(Ordering::SeqCst) & attention::CPU_YIELDED != 0;
        !has_yielded && self.holder().is_masked()
    }
}

/// The virtual processor that threads outside any runtime seem to hold. It owns no record, so all
/// they do is post.
pub(crate) static FOREIGN: Vp = Vp::new(usize::MAX, ptr::null_mut());

/// A virtual processor takes ids in blocks, so that they are unique in the address space and still
/// small. The first id of each block is not used.
const IDS_PER_BLOCK: u64 = 1024;
static NEXT_ID_BLOCK: AtomicU64 = AtomicU64::new(0);

impl Vp {
    pub(crate) const fn new(index: usize, shared: *mut Shared) -> Self {
        Self {
            current: Current::new(),
            own: HolderOnly::new(Own::new()),
            counters: Counters::new(),
            trace: Trace::new(),
            index,
            shared: AtomicPtr::new(shared),
            holder: AtomicPtr::new(ptr::null_mut()),
            next_deadline_ns: AtomicU64::new(NEVER_NS),
            attention: AtomicU32::new(0),
            inbox: Inbox::new(),
            taking: AtomicBool::new(false),
            looking: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            stopped: AtomicU32::new(0),
            port: AtomicPtr::new(ptr::null_mut()),
            cpu: AtomicUsize::new(ANY_CPU),
            pool: Pool::new(),
            starting: AtomicU32::new(0),
            sentinel: Sentinel::new(),
            map_entry: AtomicU32::new(NO_MAP_ENTRY),
            offers: AtomicBool::new(false),
            offered: AtomicBool::new(false),
            presence: Presence::new(),
            listing: Listing::new(),
            bell: Bell::new(),
            reflected: Reflected::new(),
        }
    }

    pub(crate) fn belong_to(&self, shared: &'static Shared, cpu: usize) {
        self.shared.store(ptr::from_ref(shared).cast_mut(), Ordering::Relaxed);
        self.cpu.store(cpu, Ordering::Relaxed);
    }

    /// Resets a virtual processor that has stopped, for the next run. No thread holds it, and its
    /// inbox is closed until this returns.
    ///
    /// Kernel threads outside any run may still have a reference to it, and set a bit of
    /// `attention` at any time. Such a late bit makes the next holder check in vain.
    pub(crate) fn renew(&'static self) {
        // SAFETY: no holder is there.
        unsafe { Masked::assume(self) }.own().renew();
        self.current.set(None);
        self.counters.reset();
        self.trace.turn_off();
        self.next_deadline_ns.store(NEVER_NS, Ordering::SeqCst);
        self.attention.store(0, Ordering::SeqCst);
        self.taking.store(false, Ordering::SeqCst);
        self.stopped.store(0, Ordering::SeqCst);
        self.starting.store(0, Ordering::SeqCst);
        self.sentinel.renew();
        self.map_entry.store(NO_MAP_ENTRY, Ordering::SeqCst);
        self.offers.store(false, Ordering::SeqCst);
        self.offered.store(false, Ordering::SeqCst);
        self.listing.renew();
        self.bell.renew();
        self.reflected.renew();
        self.inbox.reopen();
    }

    /// The CPU that its holders are pinned to, or [`ANY_CPU`].
    pub(crate) fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed)
    }

    /// Sets the CPU to which its holders are pinned. The present holder moves when it next serves
    /// [`RANK`](attention::RANK).
    pub(crate) fn move_to(&self, cpu: usize) {
        self.cpu.store(cpu, Ordering::Relaxed);
    }

    /// A spare kernel thread from its own pool, or from another one of the runtime.
    pub(crate) fn take_spare(&self) -> Option<&'static KernelThread> {
        let others = || self.shared().vps().iter().find_map(|vp| vp.pool.take());
        self.pool.take().or_else(others)
    }

    /// Its runtime.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    #[inline]
    pub(crate) fn shared(&self) -> &'static Shared {
        let shared = self.shared.load(Ordering::Relaxed);
        // SAFETY: null only for `FOREIGN`, otherwise the shared part of a runtime, which is never
        // freed.
        unsafe { shared.as_ref() }
            .expect("this works inside a microprocess only: see `kyocho_microprocess::run`")
    }

    /// Whether it and `other` belong to the same runtime.
    #[inline]
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.shared.load(Ordering::Relaxed) == other.shared.load(Ordering::Relaxed)
    }

    /// The part of its run queue that any thread may read or write.
    #[inline]
    pub(crate) fn queue_control(&self) -> &QueueControl {
        // SAFETY: all of it is atomic.
        unsafe { self.own.get_shared() }.queue.control()
    }

    /// Whether it represents kernel threads outside any runtime.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        ptr::eq(self, &raw const FOREIGN)
    }

    /// The microprocess that runs on it.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    #[inline]
    pub(crate) fn running(&self) -> &'static Record {
        self.current
            .get()
            .expect("this works inside a microprocess only: see `kyocho_microprocess::run`")
    }

    /// Its I/O port, once one was opened.
    #[inline]
    pub(crate) fn port(&self) -> Option<&'static Port> {
        // SAFETY: null, or set by `attach_port` to a port that is never freed.
        unsafe { self.port.load(Ordering::Acquire).as_ref() }
    }

    /// Gives `port` to this virtual processor, unless it has one; returns the one it has now.
    #[cfg(feature = "io")]
    pub(crate) fn attach_port(&self, port: &'static Port) -> &'static Port {
        if self.port().is_none() {
            self.port.store(ptr::from_ref(port).cast_mut(), Ordering::Release);
        }
        self.port().unwrap_or(port)
    }

    /// Removes the port of a virtual processor that has stopped.
    pub(crate) fn detach_port(&self) -> Option<&'static Port> {
        let port = self.port();
        self.port.store(ptr::null_mut(), Ordering::Release);
        port
    }

    // ----- called from outside -----------------------------------------------------------------

    /// Puts the message to a record into this inbox; if this one is closed, into the inbox of the
    /// record's home.
    pub(crate) fn receive(&self, link: Link<Record>) {
        let record = link.record();
        if let Err(link) = self.inbox.put(link) {
            return forward(link);
        }
        self.alert(attention::INBOX);
        if record.effective_level() > Priority::NORMAL.level() {
            // It may outrank the running microprocess. The monitor makes sure that it is noticed,
            // and informs the host.
            self.reflected.announce(record.effective_level());
            self.shared().monitor.poke();
        }
    }

    /// Closes the inbox of a virtual processor that has stopped. A message that is left there is
    /// for a microprocess that ended with this run, or for the next user of its slot, which has
    /// another home.
    pub(crate) fn close_inbox(&self) {
        self.inbox.close(forward);
    }

    /// Sets bits of `attention`; ends the idling of the holder.
    pub(crate) fn alert(&self, bits: u32) {
        match attention::raise(&self.attention, bits) {
            None => {}
            Some(Sleeper::CpuYielded) => self.rouse_from_cpu_yield(),
            Some(Sleeper::Idle) => match self.port() {
                _ if self.bell.rouse() => {}
                Some(port) => port.wake(),
                None => self.holder().rouse(),
            },
        }
    }

    /// Whether a bit was set since `attention` was served. A kill that has not taken effect does
    /// not count.
    #[inline]
    pub(crate) fn wants_more(&self) -> bool {
        self.attention.load(Ordering::Relaxed) & !attention::ORDERS != 0
    }

    /// The kernel thread that holds it, or held it last.
    pub(crate) fn holder(&self) -> &'static KernelThread {
        // SAFETY: set before the runtime starts, to records that are never freed.
        unsafe { &*self.holder.load(Ordering::Acquire) }
    }

    /// Calls `look` with its holder, whose record and descriptors stay valid meanwhile: see
    /// [`join_finished`](Shared::join_finished).
    pub(crate) fn look_at_holder<T>(&self, look: impl FnOnce(&'static KernelThread) -> T) -> T {
        self.looking.fetch_add(1, Ordering::SeqCst);
        let seen = look(self.holder());
        self.looking.fetch_sub(1, Ordering::SeqCst);
        seen
    }

    /// Whether it is retired: microprocesses that become runnable here are sent elsewhere.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    pub(crate) fn set_retired(&self, retired: bool) {
        self.retired.store(retired, Ordering::SeqCst);
    }

    /// Whether it has nothing to do and may be given work.
    fn is_free(&self) -> bool {
        self.is_idle() && !self.is_retired()
    }

    /// Whether the holder sleeps because it has no work, and no thread is about to wake it.
    pub(crate) fn is_idle(&self) -> bool {
        attention::is_idle(self.attention.load(Ordering::SeqCst))
    }

    /// Whether the holder sleeps, masked but in no section: it has no work, or has yielded its CPU.
    pub(crate) fn rests(&self) -> bool {
        attention::is_at_rest(self.attention.load(Ordering::SeqCst))
    }
}

/// Forwards a message from the inbox of a virtual processor that has stopped to the record's home,
/// unless the home has stopped as well.
#[cold]
fn forward(link: Link<Record>) {
    let record = link.record();
    if let Some(link) = inbox::reconsider(link, || record.home().inbox.is_closed()) {
        record.home().receive(link);
    }
}

impl Masked<'_> {
    /// A new id, which no other microprocess of the address space has or had.
    #[inline]
    pub(crate) fn new_id(self) -> u64 {
        let id = self.own().next_id.get();
        if id.is_multiple_of(IDS_PER_BLOCK) {
            return self.new_id_block();
        }
        self.own().next_id.set(id + 1);
        id
    }

    /// The first id of a new block.
    #[cold]
    fn new_id_block(self) -> u64 {
        let id = NEXT_ID_BLOCK.fetch_add(1, Ordering::Relaxed) * IDS_PER_BLOCK + 1;
        self.own().next_id.set(id + 1);
        id
    }

    /// Records that `next` runs from now on.
    #[inline]
    pub(crate) fn begin(self, next: &'static Record) {
        self.current.set(Some(next));
        if next.level() != self.listing.published() {
            self.publish(Some(next.level()));
        }
        next.switches.bump();
        self.trace.note(What::Runs, Some(next));
        if self.counters.switches.bump().is_multiple_of(SWITCHES_PER_REAP) {
            self.reap();
        }
    }

    /// Serves the bits of `attention`, and returns them.
    #[cold]
    pub(crate) fn serve(self) -> u32 {
        let bits = attention::take(&self.attention);
        self.counters.served.bump();
        if bits & attention::INSTALL != 0 {
            self.queue().install();
        }
        if bits & attention::INBOX != 0 {
            self.drain();
        }
        if bits & attention::TIMERS != 0 {
            self.fire(monotonic_ns());
        }
        if bits & (attention::TIMERS | attention::PREEMPT) != 0 {
            self.reap();
        }
        if bits & (attention::PREEMPT | attention::SPREAD) != 0 {
            self.share(Runs::Long);
        } else if bits & attention::SHARE != 0 {
            self.share(Runs::Short);
        }
        if bits & attention::PREEMPT != 0 {
            self.resample_cpu();
        }
        if bits & attention::RANK != 0 && bits & attention::STOP == 0 {
            self.yield_cpu();
        }
        bits
    }

    /// Makes waiters runnable whose I/O is complete, or whose words other processes have changed.
    #[cold]
    pub(crate) fn reap(self) {
        if let Some(port) = self.port() {
            port.reap();
        }
        self.bell.look(self);
    }

    /// Handles the messages in the inbox, oldest first.
    fn drain(self) {
        self.vp().inbox.drain(|link| self.handle(link));
    }

    /// Takes a free slot of `class`; `None` if there is no memory for more.
    #[inline]
    pub(crate) fn take_slot(self, class: u8) -> Option<&'static Record> {
        self.own().free.take(class)
    }

    /// Returns the slot of a microprocess that has ended and has no handle.
    #[inline]
    pub(crate) fn put_slot(self, record: &'static Record) {
        record.state.set(State::Free);
        if self.own().free.put(record) {
            self.shared().maker.poke();
        }
    }
}

#[cfg(test)]
mod simulation;
