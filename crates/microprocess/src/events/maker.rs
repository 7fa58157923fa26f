//! The maker: a kernel thread that makes the others ahead of need.
//!
//! The thread that needs a kernel thread cannot make it. A thread made by a sentinel would be of
//! the sentinel's low class, and a thread with events masked must not allocate. The maker allocates
//! to make a thread. So it may wait for a microprocess that was preempted inside the allocator,
//! which must be able to continue without the maker (see [`pool`](crate::processor::pool)).
//!
//! The maker keeps some kernel threads waiting, more after many were needed at once. It dismisses
//! those that were not needed for some time. It also returns the stacks of free slots to the host
//! if they were not needed for some time.

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

/// The most threads that have been started and not begun; then the maker yields before it starts
/// more.
const UNBORN_MAX: u32 = 4;
/// The number of descriptors to reserve: 64 KiB of kernel memory.
const DESCRIPTORS: u32 = 8192;
/// How long a surplus is kept before half of it is dismissed.
const TRIM_NS: u64 = 2_000_000_000;

/// How long after a dismissal to check whether the dismissed threads have exited.
const JOIN_NS: u64 = 50_000_000;

/// Reserves descriptors for the kernel threads that will be observed, before there are any. Returns
/// the thread that does so, if there is one.
///
/// In a process with several threads this takes the host some 15 ms. The maker must not wait for
/// it, since it could make no threads meanwhile.
pub(crate) fn make_room(detection: Detection) -> Option<JoinHandle<()>> {
    const STACK_BYTES: usize = 64 << 10;
    let reserve = || {
        // If the host refuses, some kernel threads take longer to begin.
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

/// What the maker runs, until the runtime stops.
pub(crate) fn run(shared: &'static Shared) {
    let maker = &shared.maker;
    maker.tid.store(ThreadId::current().number(), Ordering::Release);
    avoid_virtual_processors(shared);
    make(shared);
    let (mut trim_ns, mut join_ns) = (None, None);
    loop {
        // Before the check of anything that a poke may announce.
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

/// Keeps the calling thread, and those that it will start, off the CPUs of virtual processors, if
/// there are others. The start of a thread takes as long as ten hand-overs.
fn avoid_virtual_processors(shared: &'static Shared) {
    let Ok(mut others) = affinity(ThreadId::current()) else { return };
    shared.vps().iter().filter(|vp| vp.cpu() != ANY_CPU).for_each(|vp| others.remove(vp.cpu()));
    if others.iter().next().is_some() {
        // If the host refuses, they compete with the virtual processors.
        let _beside = set_affinity(ThreadId::current(), &others);
    }
}

/// Starts as many spare threads as are wanted, for one virtual processor after the other.
fn make(shared: &'static Shared) {
    for vp in shared.vps() {
        loop {
            let enough = coming(vp) >= shared.maker.wanted.load(Ordering::Relaxed);
            if enough || shared.stopping.load(Ordering::SeqCst) {
                break;
            }
            if shared.start_spare(vp).is_err() {
                // A thread that needs a spare thread asks again, or does without.
                break;
            }
            if vp.starting.load(Ordering::SeqCst) >= UNBORN_MAX {
                yield_to_host();
            }
        }
    }
}

/// Dismisses half of the spare threads beyond the least number.
fn trim(shared: &'static Shared) {
    shared.maker.wanted.store(SPARES_MIN, Ordering::Relaxed);
    for vp in shared.vps() {
        let excess = vp.pool.size().saturating_sub(SPARES_MIN);
        for thread in (0..excess.div_ceil(2)).map_while(|_| vp.pool.take()) {
            thread.dismiss();
        }
    }
}
