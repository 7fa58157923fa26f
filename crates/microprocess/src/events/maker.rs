//! The maker: a kernel thread that makes the others ahead of need.
//!
//! Whoever needs one cannot make it: the sentinel's would be of its own low class, and who has events masked must not allocate.
//! It allocates to make one, so it may wait for a microprocess that was preempted inside the
//! allocator: nobody depends on it for that one to go on (see [`pool`](crate::processor::pool)).
//!
//! The maker keeps some waiting, more after a time when many were needed at once, and dismisses what is not needed for long. It also gives
//! the stacks of free slots back to the host that nobody has needed for long.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::prim::thread::JoinHandle;
use kyocho_sys::scheduling::{affinity, set_affinity, yield_to_host};
use kyocho_sys::task::{ThreadId, is_only_thread, reserve_descriptors};
use kyocho_sys::thread::start;

use crate::data::detection::Detection;
use crate::processor::kernel_thread::ANY_CPU;
use crate::processor::requests::{SPARES_MIN, coming};
use crate::processor::shared::Shared;
use crate::processor::slot::free;

/// So many that have not begun yet go before starting more.
const UNBORN_MAX: u32 = 4;
/// Descriptors to make room for: 64 KiB of kernel memory.
const DESCRIPTORS: u32 = 8192;
/// How long a surplus is kept; then half of it is dismissed.
const TRIM_NS: u64 = 2_000_000_000;

/// When to see whether those who were dismissed have exited.
const JOIN_NS: u64 = 50_000_000;

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
