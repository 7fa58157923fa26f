//! The supply of cells for the deep-binding evaluator, and its cost.
//!
//! The evaluator requests cells when its cache is empty. The policy determines how many; the
//! `exchange` is the function that answers, by a message to the system-call thread. Times are
//! defined as in the paper (figures 3 and 4). Real time is elapsed time. System time is the time
//! between requests and answers. User time is the rest.

use core::fmt;
use core::time::Duration;
use kyocho_heap::heap::cache_size::{self, CacheSize};
use kyocho_heap::heap::{CellCache, Cells, Collection, Kind, OutOfMemory};
use kyocho_heap::value::Value;
use kyocho_sys::prim::clock::Instant;

/// One round trip to the owner of the free cells: adds this many cells to the evaluator's cache.
pub(super) type Exchange = Box<dyn FnMut(usize) -> Result<(), OutOfMemory> + Send>;

/// Reading the clock twice takes longer than a message. For requests of fewer cells than this, that
/// would distort the result (5 % of the total at 100 cells). So only one in [`SAMPLE`] of them is
/// timed, and counts for all.
const SAMPLED_BELOW_CELLS: usize = 512;
const SAMPLE: u64 = 16;
/// A request that takes longer, a hundred times the duration of a message, was delayed by the host.
const OUTLIER: Duration = Duration::from_micros(20);
/// Maximum number of requests until an object of two cells finds two adjacent ones.
const OBJECT_REQUESTS_MAX: usize = 8;

/// The cost of taking cells so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemCallStatistics {
    /// The policy.
    pub cell_cache: CellCache,
    /// Cells requested and received.
    pub cells: u64,
    /// Messages that requested them.
    pub messages: u64,
    /// Time of the program's thread, without collections.
    pub user: Duration,
    /// Time between requests and answers.
    pub system: Duration,
    /// The sum of user and system time.
    pub real: Duration,
    /// Number of collections. Their time is in none of the times above.
    pub collections: u64,
    /// Time of the collections.
    pub collection: Duration,
    /// Cells that were unused in the cache when a collection began.
    pub stranded_cells: u64,
}

/// The policy, the exchange, and the statistics.
pub(super) struct Supply {
    cell_cache: CellCache,
    size: CacheSize,
    exchange: Exchange,
    started: Instant,
    /// Cells that the last request brought, and those that collections have taken back since.
    last_given: u64,
    given_back: u64,
    clock_cost: Duration,
    account: SystemCallStatistics,
}

impl Supply {
    pub(super) fn new(cell_cache: CellCache, exchange: Exchange) -> Self {
        Self {
            cell_cache,
            size: CacheSize::new(0),
            exchange,
            started: Instant::now(),
            last_given: 0,
            given_back: 0,
            clock_cost: clock_cost(),
            account: SystemCallStatistics { cell_cache, ..SystemCallStatistics::default() },
        }
    }

    /// Resets the statistics when the program starts.
    pub(super) fn start(&mut self) {
        self.account =
            SystemCallStatistics { cell_cache: self.cell_cache, ..SystemCallStatistics::default() };
        self.started = Instant::now();
        self.size = CacheSize::new(0);
    }

    /// Requests as many cells for `cells` as the policy says.
    #[cold]
    pub(super) fn request(&mut self, cells: &Cells) -> Result<(), OutOfMemory> {
        let want = match self.cell_cache {
            CellCache::Off => 1,
            CellCache::Fixed(cells) => cells.max(1) as usize,
            CellCache::Auto => self.adapted(cells),
        };
        let before = cells.taken();
        let result = self.exchange_timed(want);
        (self.last_given, self.given_back) = (cells.taken() - before, 0);
        self.account.cells += self.last_given;
        result
    }

    fn adapted(&mut self, cells: &Cells) -> usize {
        let now_ns = self.started.elapsed().as_nanos() as u64;
        let given = self.last_given;
        let used = given.saturating_sub(self.given_back + cells.remaining() as u64);
        self.size.next(now_ns, used as usize, cache_size::INTERVAL_NS)
    }

    fn exchange_timed(&mut self, want: usize) -> Result<(), OutOfMemory> {
        let weight = if want < SAMPLED_BELOW_CELLS { SAMPLE as u32 } else { 1 };
        let timed = self.account.messages.is_multiple_of(u64::from(weight));
        self.account.messages += 1;
        if !timed {
            return (self.exchange)(want);
        }
        let begin = Instant::now();
        let result = (self.exchange)(want);
        let spent = begin.elapsed().saturating_sub(self.clock_cost);
        // The host preempted this thread in between. The other fifteen requests of the sample were
        // not delayed, so this time counts once.
        let counts_for = if spent > OUTLIER { 1 } else { weight };
        self.account.system += spent * counts_for;
        result
    }

    /// Allocates an object of two or more cells, with at most [`OBJECT_REQUESTS_MAX`] requests.
    #[cold]
    pub(super) fn object(
        &mut self,
        cells: &mut Cells,
        kind: Kind,
        words: usize,
    ) -> Result<Value, OutOfMemory> {
        for _ in 0..OBJECT_REQUESTS_MAX {
            self.request(cells)?;
            if let Some(object) = cells.try_object(kind, 0, words) {
                return Ok(object);
            }
        }
        Err(OutOfMemory)
    }

    pub(super) fn note_collection(&mut self, done: Collection) {
        self.account.collections += 1;
        self.given_back += done.stranded_cells as u64;
        self.account.collection += done.pause;
        self.account.stranded_cells += done.stranded_cells as u64;
    }

    /// The statistics up to now.
    pub(super) fn statistics(&self) -> SystemCallStatistics {
        let real = self.started.elapsed().saturating_sub(self.account.collection);
        let system = self.account.system.min(real);
        SystemCallStatistics { real, system, user: real - system, ..self.account }
    }
}

/// The difference of two consecutive readings of the clock.
fn clock_cost() -> Duration {
    let costs = (0..100).map(|_| Instant::now().elapsed());
    costs.min().unwrap_or_default()
}

impl SystemCallStatistics {
    /// One JSON object. Times are in nanoseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!(
            "{{\"cell_cache\":\"{}\",\"cells\":{},\"messages\":{},\"user_ns\":{},\"system_ns\":{},\
             \"real_ns\":{},\"collections\":{},\"collection_ns\":{},\"stranded_cells\":{}}}",
            self.cell_cache,
            self.cells,
            self.messages,
            self.user.as_nanos(),
            self.system.as_nanos(),
            self.real.as_nanos(),
            self.collections,
            self.collection.as_nanos(),
            self.stranded_cells,
        )
    }
}

impl fmt::Display for SystemCallStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cell cache {}: {} cells in {} messages; user {:.6} s + system {:.6} s = real {:.6} s; \
             {} collections, {:.6} s, {} cells stranded",
            self.cell_cache,
            self.cells,
            self.messages,
            self.user.as_secs_f64(),
            self.system.as_secs_f64(),
            self.real.as_secs_f64(),
            self.collections,
            self.collection.as_secs_f64(),
            self.stranded_cells,
        )
    }
}
