//! The maker: a kernel thread that makes the others ahead of need.
//!
//! Whoever needs one cannot make it: the sentinel's would be of its own low class, and who has events masked must not allocate.
//! The maker keeps some waiting, more after a time when many were needed at once, and dismisses what is not needed for long.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::{CpuSet, set_affinity};
use kyocho_sys::task::ThreadId;

use crate::kernel_thread::{ANY_CPU, Role};
use crate::shared::Shared;
use crate::vp::Vp;

/// Kernel threads kept waiting for each virtual processor: at least, and at most.
const SPARES_MIN: u32 = 2;
const SPARES_MAX: u32 = 64;
/// How long a surplus is kept; then half of it is dismissed.
const TRIM_NS: u64 = 2_000_000_000;

/// What others tell the maker.
#[derive(Debug)]
pub(crate) struct Maker {
    /// A futex word: 1 when there is something to look at.
    word: AtomicU32,
    /// Kernel threads to keep waiting for each virtual processor.
    wanted: AtomicU32,
}

impl Maker {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(0), wanted: AtomicU32::new(SPARES_MIN) }
    }

    /// Makes it look now. Neither allocates nor waits.
    pub(crate) fn poke(&self) {
        if self.word.swap(1, Ordering::SeqCst) == 0 {
            futex::wake(&self.word, 1);
        }
    }

    /// A pool is empty, or will be soon.
    #[cold]
    pub(crate) fn ask(&self) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        self.wanted.store((wanted * 2).min(SPARES_MAX), Ordering::Relaxed);
        self.poke();
    }

    /// A spare of `vp` was used.
    pub(crate) fn expect_use(&self, vp: &Vp) {
        if vp.pool.size() < self.wanted.load(Ordering::Relaxed) / 2 {
            self.ask();
        }
    }
}

/// The maker's life.
pub(crate) fn run(shared: &'static Shared) {
    let maker = &shared.maker;
    let mut trim_ns = None;
    loop {
        // Before the look at anything that a poke may announce.
        maker.word.store(0, Ordering::SeqCst);
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        make(shared);
        let now_ns = monotonic_ns();
        if trim_ns.is_some_and(|trim_ns| trim_ns <= now_ns) {
            trim(shared);
            trim_ns = None;
        }
        if shared.vps().iter().any(|vp| vp.pool.size() > SPARES_MIN) {
            trim_ns = trim_ns.or(Some(now_ns + TRIM_NS));
        }
        futex::wait(&maker.word, 0, trim_ns);
    }
}

/// Confines the calling thread to `cpu`.
fn move_to(cpu: usize) {
    if cpu != ANY_CPU {
        // Refused: then the new ones move themselves.
        let _elsewhere = set_affinity(ThreadId::current(), &CpuSet::single(cpu));
    }
}

/// Makes as many as are wanted, in turn for each virtual processor.
fn make(shared: &'static Shared) {
    for vp in shared.vps() {
        // The new ones inherit the CPU. Moving each of them there afterwards takes as long as making it.
        move_to(vp.cpu());
        loop {
            // Those on their way into the pool count.
            let waiting = vp.pool.size() + vp.starting.load(Ordering::SeqCst);
            let enough = waiting >= shared.maker.wanted.load(Ordering::Relaxed);
            if enough || shared.stopping.load(Ordering::SeqCst) {
                break;
            }
            if shared.start_thread(vp, Role::Spare).is_err() {
                // Whoever needs one asks again, or does without.
                break;
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
    shared.join_finished();
}
