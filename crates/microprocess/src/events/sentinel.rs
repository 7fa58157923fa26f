//! The sentinel: a kernel thread that notices when the holder of a virtual processor sleeps in the
//! kernel.
//!
//! It is a thread of the host's lowest class, pinned to the core of the virtual processor. The host
//! runs it when no other thread wants the core, so it runs as soon as the holder stops in the
//! kernel. It then checks whether the holder sleeps, and wakes a spare thread, which takes the
//! virtual processor. While the holder runs, the sentinel gets a few thousandths of the core; while
//! the virtual processor is idle, it sleeps.
//!
//! # No critical section in the lowest class
//! The host may keep a thread of the lowest class off its core at any time, for seconds. Only a
//! privileged process may raise such a thread to the normal class again. So the sentinel never
//! claims. It takes a spare from the pool, *nominates* it, and wakes it. The spare is of the normal
//! class. It claims and checks, and then holds the virtual processor itself or returns to the pool.
//!
//! ```text
//!   nomination:  NONE ── sentinel ──► PENDING ── spare ──┬─ the holder slept ──► TAKEN
//!                  ▲                                     └─ it did not ────────► REFUSED
//!                  └──────────────── sentinel ──────────────────────────────────────┘
//! ```
//! A sentinel that is kept off its core in the middle of a nomination occupies one spare, but
//! delays no virtual processor.
//!
//! The paper's kernel makes the upcall at the moment of sleep (§3.1.2). Linux offers no such upcall
//! to an unprivileged program; a thread that is next in line for the core comes close.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::scheduling::{
    Class, CpuSet, set_affinity, set_class, set_timer_slack_ns, yield_to_host,
};
use kyocho_sys::task::ThreadId;

use crate::processor::kernel_thread::ANY_CPU;
use crate::processor::sentinel::nomination;
use crate::processor::taking::sleeps;
use crate::processor::vp::Vp;
use crate::protocol::pause::pause;

/// How often an idle virtual processor is checked before the sentinel sleeps: some 20 µs.
const IDLE_LOOKS: u32 = 40;

/// How many checks may find nothing before the sentinel pauses, and for how long. Only for a holder
/// whose priority the host knows to be above or below normal.
const LOOKS: u32 = 4;
const PAUSE_NS: u64 = 250_000;

/// The start of the sentinel of `vp`: it pins itself to the core and enters the lowest class.
pub(crate) fn start(vp: &'static Vp) {
    let me = ThreadId::current();
    // On another core or in a higher class it still works, with more delay or more CPU time.
    let _any_class = set_class(me, Class::Idle);
    let _longer = set_timer_slack_ns(1);
    vp.sentinel.tid.store(me.number(), Ordering::Release);
    run(vp);
}

/// Follows `vp` to the CPU to which that is pinned.
fn follow(vp: &'static Vp, cpu: &mut usize) {
    if *cpu != vp.cpu() && vp.cpu() != ANY_CPU {
        *cpu = vp.cpu();
        let _anywhere = set_affinity(ThreadId::current(), &CpuSet::single(*cpu));
    }
}

/// The body of the sentinel.
fn run(vp: &'static Vp) {
    let shared = vp.shared();
    let asleep = &vp.sentinel.asleep;
    let (mut idle_looks, mut vain_looks, mut cpu) = (0, 1, ANY_CPU);
    while !shared.stopping.load(Ordering::SeqCst) {
        follow(vp, &mut cpu);
        if !vp.rests() {
            idle_looks = 0;
            match vp.sentinel.nomination.load(Ordering::Acquire) {
                // The spare has not answered yet.
                nomination::PENDING => {}
                // The spare has left the core, or the sentinel would not run.
                nomination::TAKEN if nominate(vp, Expected::Asleep) => vain_looks = 0,
                _ if nominate(vp, Expected::Nothing) => vain_looks = 0,
                _ => vain_looks += 1,
            }
            if vain_looks >= LOOKS && vp.reflected.asks_for_pauses() {
                vain_looks = 0;
                pause(PAUSE_NS);
            }
        } else if idle_looks < IDLE_LOOKS {
            idle_looks += 1;
        } else {
            asleep.store(1, Ordering::SeqCst);
            if vp.rests() && !shared.stopping.load(Ordering::SeqCst) {
                futex::wait(asleep, 1, None);
            }
            asleep.store(0, Ordering::SeqCst);
        }
        yield_to_host();
    }
}

/// What a check is expected to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Nothing,
    /// The holder sleeps. A check before the claim would only repeat the one behind it, at some 2
    /// µs.
    Asleep,
}

/// Nominates a spare thread to take `vp`, if the holder seems to sleep; returns whether it did.
/// Called by the sentinel.
fn nominate(vp: &'static Vp, expected: Expected) -> bool {
    let outcome = &vp.sentinel.nomination;
    outcome.store(nomination::NONE, Ordering::Relaxed);
    let is_asleep = || vp.look_at_holder(|holder| sleeps(holder).is_some());
    if vp.holder().is_masked() || expected == Expected::Nothing && !is_asleep() {
        return false;
    }
    let Some(spare) = vp.take_spare() else {
        if expected == Expected::Nothing || is_asleep() {
            vp.shared().maker.ask(vp);
        }
        return false;
    };
    outcome.store(nomination::PENDING, Ordering::Relaxed);
    spare.nominate(vp);
    true
}
