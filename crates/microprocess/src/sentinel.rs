//! Blocked: taking the virtual processor from a kernel thread that sleeps in the kernel.
//!
//! # The sentinel
//! A thread of the host's lowest class, pinned to the core of the virtual processor. The host runs it when nobody else wants the
//! core, that is: at the very moment when the holder stops in the kernel. It then looks
//! whether the holder sleeps, and wakes a spare thread, which takes the processor. While the holder runs, the sentinel
//! gets a few thousandths of the core; while the virtual processor is idle, it sleeps.
//!
//! # No stale observation takes a processor
//! ```text
//!   taker                                         holder
//!   puts a claim into its vp word  ────────────►  from here on, a call into the runtime waits for the outcome,
//!                                                 and a restartable sequence is refused
//!   sees it asleep, mask clear, pc in no sequence
//!   makes the loss final, or takes the claim back
//! ```
//! The look proves that no section was entered, and no restartable sequence begun, before the claim was seen, and not left
//! yet: inside them the mask would be set, or the pc inside the sequence. What the holder does after the look
//! begins with a look at the claim. The kernel answers only with the state of a thread that is off the CPU, under the lock
//! of its run queue, so the stores it made before are visible to us and our claim will be to it.
//!
//! A claim delays a holder that runs, so the watchers look before they claim as well. A thread that comes back from the kernel does
//! not: it runs on the holder's core, so the holder does not. Nor does a sentinel whose last spare has left the core again.
//!
//! # No critical section in the lowest class
//! The host may keep a thread of the lowest class off its core at any time, and for seconds, and only a privileged process may put
//! such a thread back among everybody. So the sentinel never claims: it takes a spare from the pool, *nominates* it, and wakes it. The
//! spare is of the usual class; it claims, looks, and holds the processor itself, or goes back into the pool.
//!
//! ```text
//!   nomination:  NONE ── sentinel ──► PENDING ── spare ──┬─ the holder slept ──► TAKEN
//!                  ▲                                     └─ it did not ────────► REFUSED
//!                  └──────────────── sentinel ──────────────────────────────────────┘
//! ```
//! A sentinel that is kept off its core in the middle of a nomination keeps one spare from the pool, and nobody from a processor.
//!
//! The paper's kernel upcalls at the moment of sleep (§3.1.2). Linux offers no such upcall to an unprivileged program; being
//! the next one in line for the core comes close.

#![expect(unsafe_code, reason = "stands for a holder that sleeps")]

use kyocho_arch::restartable;
use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU8, AtomicU32, Ordering};
use kyocho_sys::scheduling::{
    Class, CpuSet, set_affinity, set_class, set_timer_slack_ns, yield_to_host,
};
use kyocho_sys::task::{Asleep, ThreadId};

use crate::claim::exclusively;
use crate::event::Registers;
use crate::hidden;
use crate::kernel_thread::{ANY_CPU, KernelThread};
use crate::orders::end_call;
use crate::record::State;
use crate::reflection::pause;
use crate::trace::What;
use crate::vp::{Masked, Vp};

/// How often an idle virtual processor is looked at before the sentinel sleeps: some 20 µs.
const IDLE_LOOKS: u32 = 40;

/// Looks that find nothing before the sentinel of a holder that the host knows to be urgent, or nice, pauses, and for how long.
const LOOKS: u32 = 4;
const PAUSE_NS: u64 = 250_000;

/// The sentinel of one virtual processor, for others: where it sleeps, and in which of the host's classes it is.
#[derive(Debug)]
pub(crate) struct Sentinel {
    /// A futex word: 1 while the sentinel sleeps.
    asleep: AtomicU32,
    /// Its number; 0 before it runs.
    tid: AtomicU32,
    /// What became of the spare that it nominated last.
    nomination: AtomicU8,
}

/// What [`Sentinel::nomination`] says.
mod nomination {
    pub(super) const NONE: u8 = 0;
    pub(super) const PENDING: u8 = 1;
    pub(super) const TAKEN: u8 = 2;
    pub(super) const REFUSED: u8 = 3;
}

/// The least of the host's real-time levels: above all time sharing, below all holders.
const ABOVE_TIME_SHARING: Class = Class::Fifo(1);

impl Sentinel {
    pub(crate) const fn new() -> Self {
        Self {
            asleep: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            nomination: AtomicU8::new(nomination::NONE),
        }
    }

    /// Its number, once it runs.
    fn id(&self) -> Option<ThreadId> {
        Some(self.tid.load(Ordering::Acquire)).filter(|tid| *tid != 0).map(ThreadId::new)
    }

    fn put_into(&self, class: Class) {
        if let Some(id) = self.id() {
            // Refused: then it is later, or pauses more often.
            let _as_it_was = set_class(id, class);
        }
    }

    /// Its holder runs in real time: it must be above time sharing, too.
    pub(crate) fn raise(&self) {
        self.put_into(ABOVE_TIME_SHARING);
    }

    /// Its holder shares time with others.
    pub(crate) fn lower(&self) {
        self.put_into(Class::Idle);
    }

    /// The virtual processor is busy again, or the runtime stops.
    pub(crate) fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) != 0 {
            self.asleep.store(0, Ordering::SeqCst);
            futex::wake(&self.asleep, 1);
        }
    }
}

/// Where the sentinel of `vp` starts: it puts itself on the core, below everybody.
pub(crate) fn start(vp: &'static Vp) {
    let me = ThreadId::current();
    // On another core or in a higher class it still works: later, or at the cost of more CPU time.
    let _any_class = set_class(me, Class::Idle);
    let _longer = set_timer_slack_ns(1);
    vp.sentinel.tid.store(me.number(), Ordering::Release);
    run(vp);
}

/// Follows `vp` to the CPU it is pinned to.
fn follow(vp: &'static Vp, cpu: &mut usize) {
    if *cpu != vp.cpu() && vp.cpu() != ANY_CPU {
        *cpu = vp.cpu();
        let _anywhere = set_affinity(ThreadId::current(), &CpuSet::single(*cpu));
    }
}

/// The sentinel's life.
fn run(vp: &'static Vp) {
    let shared = vp.shared();
    let asleep = &vp.sentinel.asleep;
    let (mut idle_looks, mut vain_looks, mut cpu) = (0, 1, ANY_CPU);
    while !shared.stopping.load(Ordering::SeqCst) {
        follow(vp, &mut cpu);
        if !vp.rests() {
            idle_looks = 0;
            match vp.sentinel.nomination.load(Ordering::Acquire) {
                // The spare will say.
                nomination::PENDING => {}
                // It has left the core, or this thread would not run.
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

/// What a look would find, most likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Nothing,
    /// The holder sleeps: a look before the claim would say so, and take as long as the one behind it, some 2 µs.
    Asleep,
}

/// Nominates a spare thread to take `vp` if its holder seems to sleep; whether it did. By the sentinel.
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

/// Takes `vp` for the calling thread, which was nominated; whether it holds it now. If not, the thread is in the pool.
pub(crate) fn accept(vp: &'static Vp, spare: &'static KernelThread) -> bool {
    let is_taken = take_for(vp, spare);
    let outcome = if is_taken { nomination::TAKEN } else { nomination::REFUSED };
    if is_taken {
        vp.shared().maker.expect_use(vp);
    } else {
        vp.pool.put(spare);
    }
    vp.sentinel.nomination.store(outcome, Ordering::Release);
    is_taken
}

/// Hands `vp` to a spare thread if its holder sleeps in the kernel with events unmasked. By the monitor, or a watcher.
pub(crate) fn take_from_sleeper(vp: &'static Vp) -> bool {
    let heir = exclusively(&vp.taking, || {
        if vp.holder().is_masked() || sleeps(vp.holder()).is_none() {
            return None;
        }
        let Some(spare) = vp.take_spare() else {
            vp.shared().maker.ask(vp);
            return None;
        };
        if take(vp).is_none() {
            vp.pool.put(spare);
            return None;
        }
        Some(spare)
    });
    let Some(heir) = heir else { return false };
    // Not a moment earlier: the heir may take the core from this thread, and keep it for long.
    heir.give(vp);
    vp.shared().maker.expect_use(vp);
    true
}

/// Takes `vp` for `heir`, the calling thread, which holds none, if the holder sleeps in the kernel with events unmasked.
pub(crate) fn take_for(vp: &'static Vp, heir: &'static KernelThread) -> bool {
    let taken = exclusively(&vp.taking, || take(vp)).is_some();
    if taken {
        heir.hold(vp);
    }
    taken
}

/// Where `holder` sleeps in the kernel, if it may lose its processor there.
fn sleeps(holder: &KernelThread) -> Option<Asleep> {
    holder.asleep().filter(|asleep| !restartable::contains(asleep.pc))
}

/// Takes `vp` from its holder, if that one sleeps, and leaves it to the caller to give.
fn take(vp: &'static Vp) -> Option<()> {
    #[cfg(test)]
    tests::note_taker();
    let holder = vp.holder();
    if vp.rests() {
        return None;
    }
    let seen = holder.take(vp, || {
        let running = vp.current.get()?;
        sleeps(holder).filter(|at| !hidden::goes_on_in_the_middle(holder, running, at.sp))
    })?;
    let record = vp.current.take().expect("who runs unmasked runs a microprocess");
    record.state.set(State::Blocked);
    record.bound.set(Some(holder));
    record.special.set(true);
    holder.registers.set(Registers { instruction: seen.pc, stack: seen.sp });
    // SAFETY: its holder sleeps, and the claim keeps it from everything.
    unsafe { Masked::assume(vp) }.own().blocked.set(Some(record));
    holder.running.set(Some(record));
    holder.strand(true);
    vp.counters.blocked.bump();
    vp.trace.note(What::Blocked, Some(record));
    vp.shared().enter_kernel();
    holder.lose();
    if record.orders.ends_calls() {
        // They came before the sleep, and the signal may have come before the call.
        end_call(record);
    }
    Some(())
}

#[cfg(test)]
mod tests;
