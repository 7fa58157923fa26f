//! Accounts: the resources that one user holds, and their bounds.
//!
//! ```text
//!  memory       live at the last collection + taken since + symbols + reserved
//!               <= memory_bytes_max; charged at each refill, and for each large object
//!  processors   in proportion to shares; the threads of an account over its share have a lower
//!               priority (module `share`)
//!  threads, ports, sockets, sessions
//!               held: counted in and out  <= ..._max; charged when made
//! ```
//!
//! **Live bytes** are measured by marking. The collector marks the system's roots first, then those
//! of one account after the other. What it marks for an account's roots is charged to that account.
//! No object and no block records its owner, so ownership costs no memory per cell, and an idle
//! user needs no block. Accounts share only what belongs to the system, so their order makes no
//! difference. If they shared a value, the account marked first would pay for it. Memory that Rust
//! objects hold outside the heap (ports, channels, stacks) is charged when it grows, and counted
//! again while the objects are marked.
//!
//! **Symbols** live as long as the process, and are charged to the account that made them. If they
//! take more than a quarter of its memory, making another one raises an out-of-memory error.
//!
//! **Reserved** memory is outside the heap: for example requests that have arrived and are not
//! served yet. It counts as memory that no collection frees; see [`Reserved`].
//!
//! Between two collections an account pays for all memory it takes, garbage included, because only
//! a collection can tell them apart. An account that reaches its bound requests a collection before
//! an error is raised; `may_collect` limits how often.

pub mod share;

use crate::raise::OutOfMemory;
use core::fmt;
use kyocho_microprocess::Priority;
use kyocho_syntax::world::User;
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bounds of an account. A request beyond a bound fails with an error that names the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of its objects, its threads' stacks and its ports' buffers.
    pub memory_bytes_max: usize,
    /// Threads that have started and not ended. The threads that evaluate a session's input do not
    /// count.
    pub threads_max: usize,
    /// Open ports over files, and running programs.
    pub ports_max: usize,
    /// Open sockets: listening ones and connections.
    pub sockets_max: usize,
    /// Concurrent sessions.
    pub sessions_max: usize,
    /// The most urgent priority of its threads.
    pub priority_max: Priority,
    /// Its share of the processors, in proportion to the shares of other accounts, when demand
    /// exceeds supply; at least 1.
    pub share: u32,
    /// Whether it may use the host's files and read the process's environment.
    pub files: bool,
    /// Whether it may install policies of the scheduler and the collector, which affect all users.
    pub operator: bool,
}

impl Bounds {
    /// No bounds: for the owner of the process.
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

/// Resources that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Countable {
    /// Started threads.
    Threads,
    /// Open ports over files, and running programs.
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
    /// Open ports over files, and running programs.
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
    /// Bytes of symbols that it made. They are never freed.
    symbol_bytes: AtomicUsize,
    /// Bytes reserved outside the heap: see [`Reserved`].
    reserved_bytes: AtomicUsize,
    held: [AtomicUsize; 4],
    /// The account may cause no collection before this time on the monotonic clock.
    collects_from_ns: AtomicU64,
    /// Running time of its threads divided by its share.
    virtual_ns: AtomicU64,
}

/// Maximum memory kept for small requests of an account that has used up the rest, so that its
/// handlers can run.
const RESERVE_BYTES_MAX: usize = 8 << 20;

/// Divisor: symbols may take this part of an account's memory.
const SYMBOLS_PART: usize = 4;

/// Divisor: memory reserved outside the heap may be this part of its memory.
const RESERVED_PART: usize = 4;

/// Least time between two collections that one account requests, as a multiple of the last
/// collection's pause. So these collections stop the other accounts for about a tenth of the time.
const COLLECTION_SPACING: u64 = 9;

/// One unit of a counted resource, held until this is dropped.
#[derive(Debug)]
pub struct Held {
    account: Arc<Account>,
    what: Countable,
}

impl Held {
    /// Whether `account` holds it.
    pub fn is_of(&self, account: &Arc<Account>) -> bool {
        Arc::ptr_eq(&self.account, account)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.counter(self.what).fetch_sub(1, Ordering::AcqRel);
    }
}

/// The reservation exceeds what the account may reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdrawn {
    account: String,
    bytes_max: usize,
}

impl fmt::Display for Overdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, bytes_max } = self;
        write!(f, "out of memory: pending requests of {account} may take {bytes_max} bytes")
    }
}

impl core::error::Error for Overdrawn {}

/// Memory outside the heap, charged to an account until this is dropped.
#[derive(Debug)]
pub struct Reserved {
    account: Arc<Account>,
    bytes: usize,
}

impl Reserved {
    /// Changes the reservation to `bytes`.
    ///
    /// # Errors
    /// The account may not reserve that much. The reservation is unchanged.
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

    /// The name of its user.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its bounds.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        *self.lock_bounds()
    }

    /// Changes its bounds. The account keeps what it holds beyond them, and gets no more.
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

    /// Holds one more unit of `what`.
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

    /// Reserves bytes outside the heap: at most a quarter of its memory, even if the rest is in
    /// use. So requests of a user can still be received when the user's memory is used up. The
    /// total is at most a quarter above the memory bound.
    ///
    /// # Errors
    /// The account may not reserve that much.
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

    /// Bytes that the account may take before the next collection.
    pub(crate) fn room_bytes(&self) -> usize {
        self.attainable_bytes().saturating_sub(self.taken_bytes.load(Ordering::Relaxed))
    }

    /// Bytes that the account could take if a collection freed everything taken since the last one.
    pub fn attainable_bytes(&self) -> usize {
        self.bounds().memory_bytes_max.saturating_sub(self.kept_bytes())
    }

    /// Bytes kept for handlers of an out-of-memory error.
    fn reserve_bytes(&self) -> usize {
        (self.bounds().memory_bytes_max / 16).min(RESERVE_BYTES_MAX)
    }

    /// Bytes that may be taken without the right to use the reserve. They include a quarter of the
    /// reserve, so that a collection after the first refusal finds the account exhausted.
    pub(crate) fn room_for_all_bytes(&self) -> usize {
        self.room_bytes().saturating_sub(self.reserve_bytes() / 4 * 3)
    }

    /// Takes `bytes`. Uses the reserve only if `spends_reserve`.
    ///
    /// # Errors
    /// The room is too small. Threads that charge at the same time may exceed the bound, by at most
    /// one request each.
    pub fn charge(&self, bytes: usize, spends_reserve: bool) -> Result<(), OutOfMemory> {
        let room = if spends_reserve { self.room_bytes() } else { self.room_for_all_bytes() };
        if bytes > room {
            return Err(OutOfMemory);
        }
        self.take(bytes);
        Ok(())
    }

    /// Records that `bytes` were taken. The caller has checked the room.
    pub(crate) fn take(&self, bytes: usize) {
        self.taken_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns bytes that were taken and not used.
    pub(crate) fn refund(&self, bytes: usize) {
        let less = |taken: usize| Some(taken.saturating_sub(bytes));
        let _ = self.taken_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Records the result of a collection: bytes found alive, and `taken_bytes` that had been taken
    /// when it began. The world is stopped.
    pub fn settle(&self, live_bytes: usize, taken_bytes: usize) {
        self.live_bytes.store(live_bytes, Ordering::Relaxed);
        self.refund(taken_bytes);
    }

    /// Records new symbols of `bytes`. Returns whether the account's symbols exceed a quarter of
    /// its memory or of `heap_bytes_max`.
    pub(crate) fn take_symbols(&self, bytes: usize, heap_bytes_max: usize) -> bool {
        let all = self.symbol_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        all > self.bounds().memory_bytes_max.min(heap_bytes_max) / SYMBOLS_PART
    }

    /// Bytes that no collection frees: the live bytes of the last collection, symbols, and reserved
    /// memory.
    fn kept_bytes(&self) -> usize {
        let outside = [&self.symbol_bytes, &self.reserved_bytes];
        let outside = outside.map(|bytes| bytes.load(Ordering::Relaxed));
        outside.into_iter().fold(self.live_bytes(), usize::saturating_add)
    }

    /// Whether its memory is bounded.
    pub fn is_bounded(&self) -> bool {
        self.bounds().memory_bytes_max < usize::MAX
    }

    /// Live bytes at the last collection.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// Whether the last collection left so little room that only small requests should be granted.
    pub fn is_exhausted(&self) -> bool {
        self.kept_bytes().saturating_add(self.reserve_bytes()) > self.bounds().memory_bytes_max
    }

    /// Records that one of its threads has run for `ran_ns`.
    pub fn run(&self, ran_ns: u64, floor_ns: u64) {
        let share = self.bounds().share;
        let after = |virtual_ns| Some(share::after(virtual_ns, floor_ns, ran_ns, share));
        let _ = self.virtual_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
    }

    /// Its virtual time; see [`share`].
    pub fn virtual_ns(&self) -> u64 {
        self.virtual_ns.load(Ordering::Relaxed)
    }

    /// The priority that a thread of priority `own` gets at the account's lead.
    pub fn priority_within_share(&self, own: Priority, floor_ns: u64) -> Priority {
        share::priority(own, self.virtual_ns(), floor_ns)
    }

    /// Whether a collection may run because of this account's shortage alone. If so, sets the
    /// earliest time of the next one.
    ///
    /// # Errors
    /// The time on the monotonic clock from which one may run.
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
