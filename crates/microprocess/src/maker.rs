//! The maker: a kernel thread that makes the others ahead of need.
//!
//! Whoever needs one cannot make it: the sentinel's would be of its own low class, and who has events masked must not allocate.
//! The maker keeps some waiting, more after a time when many were needed at once, and dismisses what is not needed for long. It also gives
//! the stacks of free slots back to the host that nobody has needed for long.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::prim::thread::JoinHandle;
use kyocho_sys::scheduling::{affinity, set_affinity, yield_to_host};
use kyocho_sys::task::{ThreadId, is_only_thread, reserve_descriptors};
use kyocho_sys::thread::start;

use crate::kernel_thread::ANY_CPU;
use crate::runtime::Detection;
use crate::shared::Shared;
use crate::slot::free;
use crate::vp::Vp;

/// Kernel threads kept waiting for each virtual processor: at least, and at most.
const SPARES_MIN: u32 = 2;
const SPARES_MAX: u32 = 64;
/// So many that have not begun yet go before starting more.
const UNBORN_MAX: u32 = 4;
/// Descriptors to make room for: 64 KiB of kernel memory.
const DESCRIPTORS: u32 = 8192;
/// How long a surplus is kept; then half of it is dismissed.
const TRIM_NS: u64 = 2_000_000_000;

/// When to see whether those who were dismissed have exited.
const JOIN_NS: u64 = 50_000_000;

/// What others tell the maker.
#[derive(Debug)]
pub(crate) struct Maker {
    /// A futex word: 1 when there is something to look at.
    word: AtomicU32,
    /// Kernel threads to keep waiting for each virtual processor.
    wanted: AtomicU32,
    /// Its number; 0 before it runs.
    tid: AtomicU32,
    /// The host runs it, and the monitor, before everybody.
    pub(crate) is_raised: AtomicBool,
}

impl Maker {
    pub(crate) const fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            wanted: AtomicU32::new(SPARES_MIN),
            tid: AtomicU32::new(0),
            is_raised: AtomicBool::new(false),
        }
    }

    /// Its number, once it runs.
    pub(crate) fn id(&self) -> Option<ThreadId> {
        Some(self.tid.load(Ordering::Acquire)).filter(|tid| *tid != 0).map(ThreadId::new)
    }

    /// Makes it look now. Neither allocates nor waits.
    pub(crate) fn poke(&self) {
        if self.word.swap(1, Ordering::SeqCst) == 0 {
            futex::wake(&self.word, 1);
        }
    }

    /// The pool of `vp` is empty, or will be soon.
    #[cold]
    pub(crate) fn ask(&self, vp: &Vp) {
        let wanted = (self.wanted.load(Ordering::Relaxed) * 2).min(SPARES_MAX);
        self.wanted.store(wanted, Ordering::Relaxed);
        // Waking it again and again keeps those from beginning that it has started.
        if coming(vp) < wanted {
            self.poke();
        }
    }

    /// A spare of `vp` was used.
    pub(crate) fn expect_use(&self, vp: &Vp) {
        if vp.pool.size() < self.wanted.load(Ordering::Relaxed) / 2 {
            self.ask(vp);
        }
    }
}

/// Makes room for a descriptor of each kernel thread that will be looked at, before there are any; the thread that does it, if it takes
/// long.
///
/// Where a process has several threads the host takes some 15 ms for it. The maker must not wait for that: it could make nothing meanwhile.
pub(crate) fn make_room(detection: Detection) -> Option<JoinHandle<()>> {
    const STACK_BYTES: usize = 64 << 10;
    let reserve = || {
        // Refused: then some kernel threads begin later.
        let _later = reserve_descriptors(DESCRIPTORS);
    };
    if detection == Detection::Off {
        None
    } else if is_only_thread() {
        reserve();
        None
    } else {
        start("descriptors", STACK_BYTES, reserve).ok()
    }
}

/// How many wait for `vp`, or will soon.
fn coming(vp: &Vp) -> u32 {
    vp.pool.size() + vp.starting.load(Ordering::SeqCst)
}

/// The maker's life.
pub(crate) fn run(shared: &'static Shared) {
    let maker = &shared.maker;
    maker.tid.store(ThreadId::current().number(), Ordering::Release);
    step_aside(shared);
    make(shared);
    let (mut trim_ns, mut join_ns) = (None, None);
    loop {
        // Before the look at anything that a poke may announce.
        maker.word.store(0, Ordering::SeqCst);
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        make(shared);
        let now_ns = monotonic_ns();
        let is_over = |end_ns: Option<u64>| end_ns.is_some_and(|end_ns| end_ns <= now_ns);
        let soon_ns = Some(now_ns + JOIN_NS);
        if is_over(trim_ns) {
            trim(shared);
            free::trim();
            (trim_ns, join_ns) = (None, soon_ns);
        } else if is_over(join_ns) {
            join_ns = if shared.join_finished() { None } else { soon_ns };
        }
        if free::has_surplus() || shared.vps().iter().any(|vp| vp.pool.size() > SPARES_MIN) {
            trim_ns = trim_ns.or(Some(now_ns + TRIM_NS));
        }
        futex::wait(&maker.word, 0, trim_ns.into_iter().chain(join_ns).min());
    }
}

/// Keeps the calling thread, and those it will start, off the CPUs of virtual processors, if there are others: beginning takes a
/// thread as long as ten hand-overs.
fn step_aside(shared: &'static Shared) {
    let Ok(mut others) = affinity(ThreadId::current()) else { return };
    shared.vps().iter().filter(|vp| vp.cpu() != ANY_CPU).for_each(|vp| others.remove(vp.cpu()));
    if others.iter().next().is_some() {
        // Refused: then they compete.
        let _beside = set_affinity(ThreadId::current(), &others);
    }
}

/// Makes as many as are wanted, in turn for each virtual processor.
fn make(shared: &'static Shared) {
    for vp in shared.vps() {
        loop {
            let enough = coming(vp) >= shared.maker.wanted.load(Ordering::Relaxed);
            if enough || shared.stopping.load(Ordering::SeqCst) {
                break;
            }
            if shared.start_spare(vp).is_err() {
                // Whoever needs one asks again, or does without.
                break;
            }
            if vp.starting.load(Ordering::SeqCst) >= UNBORN_MAX {
                yield_to_host();
            }
        }
    }
}

/// Dismisses half of what is more than the least.
fn trim(shared: &'static Shared) {
    shared.maker.wanted.store(SPARES_MIN, Ordering::Relaxed);
    for vp in shared.vps() {
        let excess = vp.pool.size().saturating_sub(SPARES_MIN);
        for thread in (0..excess.div_ceil(2)).map_while(|_| vp.pool.take()) {
            thread.dismiss();
        }
    }
}
