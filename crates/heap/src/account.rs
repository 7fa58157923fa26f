//! Accounts: what one user has of the system, and how much he may have.
//!
//! ```text
//!  memory   live at the last collection + taken since  <= memory_bytes_max     charged at each refill
//!  processors                 in proportion to shares; who has had more runs behind     [`share`]
//!  threads, ports, sessions   held: counted in and out  <= ..._max             charged when made
//! ```
//!
//! **Live bytes** are known by marking: the collector marks the roots of one account after the other, the system's first, and
//! what a part of the marking added is that account's. No object and no block carries an owner, so a cell costs what it
//! did, and an idle user's cells need no block of their own. Accounts share nothing but what the system has, so who
//! is marked first makes no difference; were a value shared, who is marked first would pay for it. What Rust objects hold outside the heap
//! (ports, channels, stacks) is charged when it grows, and counted again while they are marked.
//!
//! **Symbols** stay while the process does, and are charged to who made them: a thread that makes more, where its account's take a quarter of its
//! memory, has it raised that memory is out.
//!
//! **What waits** outside of the heap, as requests that have come and are not served yet, is [`Reserved`]: it counts as what no collection gives back.
//!
//! Between two collections an account pays for all it takes, garbage included: only a collection can tell. One that runs into
//! its bound asks for a collection before anything is raised (`may_collect` says how often).

pub mod share;

use crate::raise::OutOfMemory;
use core::fmt;
use kyocho_microprocess::Priority;
use kyocho_syntax::world::User;
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much an account may have. What is beyond is refused to who asks, as an error that names the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of its objects, its threads' stacks and its ports' buffers.
    pub memory_bytes_max: usize,
    /// Threads that have been started and have not ended; those that evaluate what a session's user types do not count.
    pub threads_max: usize,
    /// Ports over files that are open, programs that run.
    pub ports_max: usize,
    /// Sockets at a time: those that listen, and connections.
    pub sockets_max: usize,
    /// Sessions at a time.
    pub sessions_max: usize,
    /// The most urgent priority its threads may have.
    pub priority_max: Priority,
    /// Its part of the processors where users want more than there is, in proportion to those of others; 1 or more.
    pub share: u32,
    /// Whether it may touch the host's files and see the process's environment.
    pub files: bool,
    /// Whether it may decide for all: install policies of the scheduler and the collector.
    pub operator: bool,
}

impl Bounds {
    /// None: for the owner of the process.
    pub const NONE: Self = Self {
        memory_bytes_max: usize::MAX,
        threads_max: usize::MAX,
        ports_max: usize::MAX,
        sockets_max: usize::MAX,
        sessions_max: usize::MAX,
        priority_max: Priority::HIGHEST,
        share: 1,
        files: true,
        operator: true,
    };
}

/// Something of which an account holds a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Countable {
    /// Started threads.
    Threads,
    /// Open ports over files.
    Ports,
    /// Network sockets.
    Sockets,
    /// Sessions.
    Sessions,
}

impl fmt::Display for Countable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "threads",
            Self::Ports => "open ports",
            Self::Sockets => "sockets",
            Self::Sessions => "sessions",
        })
    }
}

/// A bound is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    what: Countable,
    account: String,
    max: usize,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too many {}: {} may have {}", self.what, self.account, self.max)
    }
}

impl core::error::Error for Exceeded {}

/// What an account holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that survived the last collection.
    pub live_bytes: usize,
    /// Bytes taken since, garbage included.
    pub taken_bytes: usize,
    /// Started threads.
    pub threads: usize,
    /// Open ports over files.
    pub ports: usize,
    /// Network sockets.
    pub sockets: usize,
    /// Sessions.
    pub sessions: usize,
}

/// One user's account.
#[derive(Debug)]
pub struct Account {
    name: String,
    bounds: Mutex<Bounds>,
    live_bytes: AtomicUsize,
    taken_bytes: AtomicUsize,
    /// Of symbols that it made, which stay.
    symbol_bytes: AtomicUsize,
    /// Outside of the heap: see [`Reserved`].
    reserved_bytes: AtomicUsize,
    held: [AtomicUsize; 4],
    /// Before this time on the monotonic clock it has no collection.
    collects_from_ns: AtomicU64,
    /// What its threads have run, by its share.
    virtual_ns: AtomicU64,
}

/// Memory kept for small requests of an account that has used the rest up, so that its handlers run.
const RESERVE_BYTES_MAX: usize = 8 << 20;

/// Symbols may take this part of an account's memory.
const SYMBOLS_PART: usize = 4;

/// What is reserved outside of the heap may take this part of it.
const RESERVED_PART: usize = 4;

/// How many times the length of a collection must lie between two that one account is the cause of: so it stops the others
/// for a tenth of the time at most.
const COLLECTION_SPACING: u64 = 9;

/// One more thing that an account holds, until it is dropped.
#[derive(Debug)]
pub struct Held {
    account: Arc<Account>,
    what: Countable,
}

impl Held {
    /// Whether this account holds it.
    pub fn is_of(&self, account: &Arc<Account>) -> bool {
        Arc::ptr_eq(&self.account, account)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.counter(self.what).fetch_sub(1, Ordering::AcqRel);
    }
}

/// More was to be reserved than an account may have reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdrawn {
    account: String,
    bytes_max: usize,
}

impl fmt::Display for Overdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, bytes_max } = self;
        write!(f, "out of memory: what waits for {account} may take {bytes_max} bytes")
    }
}

impl core::error::Error for Overdrawn {}

/// Bytes outside of the heap that an account pays for until this is dropped.
#[derive(Debug)]
pub struct Reserved {
    account: Arc<Account>,
    bytes: usize,
}

impl Reserved {
    /// Makes it so many bytes.
    ///
    /// # Errors
    /// They would be more than the account may have reserved: it is as before.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Overdrawn> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            self.account.take_reserved(more)?;
        } else {
            self.account.reserved_bytes.fetch_sub(self.bytes - bytes, Ordering::AcqRel);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.account.reserved_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl User for Account {
    fn may_read_files(&self) -> bool {
        self.bounds().files
    }
}

impl Account {
    /// An account that holds nothing.
    #[must_use]
    pub fn new(name: impl Into<String>, bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            bounds: Mutex::new(bounds),
            live_bytes: AtomicUsize::new(0),
            taken_bytes: AtomicUsize::new(0),
            symbol_bytes: AtomicUsize::new(0),
            reserved_bytes: AtomicUsize::new(0),
            held: Default::default(),
            collects_from_ns: AtomicU64::new(0),
            virtual_ns: AtomicU64::new(0),
        })
    }

    /// Whose it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it may have.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        *self.lock_bounds()
    }

    /// Changes what it may have. It keeps what it has beyond that, and gets no more.
    pub fn set_bounds(&self, bounds: Bounds) {
        *self.lock_bounds() = bounds;
    }

    fn lock_bounds(&self) -> MutexGuard<'_, Bounds> {
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it holds.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let held = |what| self.counter(what).load(Ordering::Acquire);
        Usage {
            live_bytes: self.live_bytes.load(Ordering::Relaxed),
            taken_bytes: self.taken_bytes.load(Ordering::Relaxed),
            threads: held(Countable::Threads),
            ports: held(Countable::Ports),
            sockets: held(Countable::Sockets),
            sessions: held(Countable::Sessions),
        }
    }

    fn counter(&self, what: Countable) -> &AtomicUsize {
        &self.held[what as usize]
    }

    /// Holds one more.
    ///
    /// # Errors
    /// The bound is reached.
    pub fn hold(self: &Arc<Self>, what: Countable) -> Result<Held, Exceeded> {
        let bounds = self.bounds();
        let max = match what {
            Countable::Threads => bounds.threads_max,
            Countable::Ports => bounds.ports_max,
            Countable::Sockets => bounds.sockets_max,
            Countable::Sessions => bounds.sessions_max,
        };
        let more = |held| (held < max).then_some(held + 1);
        match self.counter(what).fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => Ok(Held { account: Arc::clone(self), what }),
            Err(_) => Err(Exceeded { what, account: self.name.clone(), max }),
        }
    }

    /// Reserves bytes outside of the heap: a quarter of its memory at most, however much of it is alive. So a user
    /// whose memory is used up can still be heard, and what he has in all is at most a quarter more than his memory.
    ///
    /// # Errors
    /// They are more than that.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reserved, Overdrawn> {
        self.take_reserved(bytes)?;
        Ok(Reserved { account: Arc::clone(self), bytes })
    }

    fn take_reserved(&self, bytes: usize) -> Result<(), Overdrawn> {
        let bytes_max = self.bounds().memory_bytes_max / RESERVED_PART;
        let more =
            |reserved: usize| reserved.checked_add(bytes).filter(|&reserved| reserved <= bytes_max);
        let taken = self.reserved_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        let overdrawn = |_| Overdrawn { account: self.name.clone(), bytes_max };
        taken.map(drop).map_err(overdrawn)
    }

    /// Bytes that it may still take before the next collection.
    pub(crate) fn room_bytes(&self) -> usize {
        self.attainable_bytes().saturating_sub(self.taken_bytes.load(Ordering::Relaxed))
    }

    /// Bytes that it may have taken beside what was alive at the last collection.
    pub fn attainable_bytes(&self) -> usize {
        self.bounds().memory_bytes_max.saturating_sub(self.kept_bytes())
    }

    /// What is kept of its memory for its handlers of a shortage.
    fn reserve_bytes(&self) -> usize {
        (self.bounds().memory_bytes_max / 16).min(RESERVE_BYTES_MAX)
    }

    /// Bytes that it may still take while memory is not short: a quarter of the reserve may be, so that the collection after the first
    /// refusal finds the account exhausted.
    pub(crate) fn room_for_all_bytes(&self) -> usize {
        self.room_bytes().saturating_sub(self.reserve_bytes() / 4 * 3)
    }

    /// Takes `bytes` that are not of the reserve, unless it `spends_reserve`.
    ///
    /// # Errors
    /// They are more than it has room for. Threads that charge at the same time may pass the bound by what they
    /// take at a time.
    pub fn charge(&self, bytes: usize, spends_reserve: bool) -> Result<(), OutOfMemory> {
        let room = if spends_reserve { self.room_bytes() } else { self.room_for_all_bytes() };
        if bytes > room {
            return Err(OutOfMemory);
        }
        self.take(bytes);
        Ok(())
    }

    /// Has taken `bytes`: who gave them has looked at the room before.
    pub(crate) fn take(&self, bytes: usize) {
        self.taken_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back what was taken and not used.
    pub(crate) fn refund(&self, bytes: usize) {
        let less = |taken: usize| Some(taken.saturating_sub(bytes));
        let _ = self.taken_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// A collection has found so much alive of what was there when `taken_bytes` were taken. The world is stopped.
    pub fn settle(&self, live_bytes: usize, taken_bytes: usize) {
        self.live_bytes.store(live_bytes, Ordering::Relaxed);
        self.refund(taken_bytes);
    }

    /// It has made symbols of `bytes`, which stay. Whether they are more than a quarter of its memory, or of the `heap_bytes_max` of all.
    pub(crate) fn take_symbols(&self, bytes: usize, heap_bytes_max: usize) -> bool {
        let all = self.symbol_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        all > self.bounds().memory_bytes_max.min(heap_bytes_max) / SYMBOLS_PART
    }

    /// Bytes that no collection gives back: what the last one found to be its own, symbols, and what is reserved.
    fn kept_bytes(&self) -> usize {
        let outside = [&self.symbol_bytes, &self.reserved_bytes];
        let outside = outside.map(|bytes| bytes.load(Ordering::Relaxed));
        outside.into_iter().fold(self.live_bytes(), usize::saturating_add)
    }

    /// Whether its memory has a bound of its own.
    pub fn is_bounded(&self) -> bool {
        self.bounds().memory_bytes_max < usize::MAX
    }

    /// Bytes that the last collection found to be its own.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// Whether the last collection left it so little that only small requests are worth while.
    pub fn is_exhausted(&self) -> bool {
        self.kept_bytes().saturating_add(self.reserve_bytes()) > self.bounds().memory_bytes_max
    }

    /// One of its threads has run for `ran_ns`.
    pub fn run(&self, ran_ns: u64, floor_ns: u64) {
        let share = self.bounds().share;
        let after = |virtual_ns| Some(share::after(virtual_ns, floor_ns, ran_ns, share));
        let _ = self.virtual_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
    }

    /// Its virtual time: what [`share`] tells of.
    pub fn virtual_ns(&self) -> u64 {
        self.virtual_ns.load(Ordering::Relaxed)
    }

    /// The priority that its lead leaves a thread of its own.
    pub fn priority_within_share(&self, own: Priority, floor_ns: u64) -> Priority {
        share::priority(own, self.virtual_ns(), floor_ns)
    }

    /// Whether a collection may be made because of its shortage alone; otherwise the time from when on.
    ///
    /// # Errors
    /// The time, on the monotonic clock.
    pub fn may_collect(&self, now_ns: u64, pause_ns: u64) -> Result<(), u64> {
        let from = self.collects_from_ns.load(Ordering::Relaxed);
        if now_ns < from {
            return Err(from);
        }
        let next = now_ns.saturating_add(pause_ns.saturating_mul(COLLECTION_SPACING));
        self.collects_from_ns.store(next, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
