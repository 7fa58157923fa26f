//! Blocked: takes the virtual processor from a kernel thread that sleeps in the kernel.
//!
//! # No virtual processor is taken on a stale observation
//! ```text
//!   taker                                         holder
//!   puts a claim into its vp word  ────────────►  from here on, a call into the runtime waits
//!                                                 for the outcome, and a restartable sequence
//!                                                 is refused
//!   sees it asleep, mask clear, pc in no sequence
//!   makes the loss final, or withdraws the claim
//! ```
//! Suppose the holder had entered a section, or begun a restartable sequence, before it saw the
//! claim. As long as it has not left it, the mask is set or the pc is in the sequence, and the
//! check finds that. After the check, the holder begins every section and every sequence by reading
//! the claim. The kernel reports the state only of a thread that is off the CPU, under the lock of
//! its run queue. So the thread's earlier stores are visible to the taker, and the claim will be
//! visible to the thread.
//!
//! A claim delays a holder that runs, so monitor and watchers also check before they claim. A
//! thread that returns from the kernel claims at once: it runs on the holder's core, so the holder
//! does not run. A spare thread that a sentinel nominated claims at once, too: the sentinel has
//! checked the holder. It omits its check if the thread that it nominated last took the virtual
//! processor. That thread has left the core again, or the sentinel would not run.
#![expect(unsafe_code, reason = "makes a token for a holder that sleeps")]

use kyocho_arch::restartable;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::task::Asleep;

use crate::processor::event::Registers;
use crate::processor::hidden;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::orders::end_call;
use crate::processor::record::State;
use crate::processor::sentinel::nomination;
use crate::processor::trace::What;
use crate::processor::vp::{Masked, Vp};
use crate::protocol::claim::exclusively;

/// Takes `vp` for the calling thread, which was nominated; returns whether it holds it now. If not,
/// the thread is in the pool.
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

/// The outcome of a look at a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The holder slept, and has lost its virtual processor.
    Taken,
    /// The holder seems to sleep, and there is no spare thread for its virtual processor.
    NoSpare,
    /// The holder does not sleep, or another thread is taking its virtual processor.
    Nothing,
}

/// Hands `vp` to a spare thread if its holder sleeps in the kernel with events unmasked. Called by
/// the monitor or a watcher.
pub(crate) fn take_from_sleeper(vp: &'static Vp) -> Look {
    let mut look = Look::Nothing;
    let successor = exclusively(&vp.taking, || {
        if vp.holder().is_masked() || sleeps(vp.holder()).is_none() {
            return None;
        }
        let Some(spare) = vp.take_spare() else {
            vp.shared().maker.ask(vp);
            look = Look::NoSpare;
            return None;
        };
        if take(vp).is_none() {
            vp.pool.put(spare);
            return None;
        }
        Some(spare)
    });
    let Some(successor) = successor else { return look };
    // Only after `taking` is released: the successor may take the core from this thread, and keep
    // it for long.
    successor.give(vp);
    vp.shared().maker.expect_use(vp);
    Look::Taken
}

/// Hands `vp` to the reserve of its pool if its holder sleeps; returns whether it did. Called by
/// the monitor when no spare thread came: the maker may wait for a lock that a preempted
/// microprocess holds.
pub(crate) fn take_for_reserve(vp: &'static Vp) -> bool {
    let successor = exclusively(&vp.taking, || {
        let reserve = vp.pool.take_reserve()?;
        if take(vp).is_none() {
            vp.pool.put(reserve);
            return None;
        }
        Some(reserve)
    });
    let Some(successor) = successor else { return false };
    successor.give_to_reserve(vp);
    true
}

/// Takes `vp` for `successor`, the calling thread, if the holder sleeps in the kernel with events
/// unmasked. `successor` holds no virtual processor.
pub(crate) fn take_for(vp: &'static Vp, successor: &'static KernelThread) -> bool {
    let taken = exclusively(&vp.taking, || take(vp)).is_some();
    if taken {
        successor.hold(vp);
    }
    taken
}

/// Where `holder` sleeps in the kernel, if it may lose its virtual processor there.
pub(crate) fn sleeps(holder: &KernelThread) -> Option<Asleep> {
    holder.asleep().filter(|asleep| !restartable::contains(asleep.pc))
}

/// Where `holder` sleeps, with no restartable sequence to continue in the middle of. Call with a
/// claim pending.
///
/// The holder may wake up while a sequence is [rewound](hidden::rewind), and continue in its middle.
/// So the holder must be seen asleep once more, with nothing left to rewind. Sequences that it
/// begins meanwhile are refused.
fn asleep_outside_sequences(vp: &Vp, holder: &KernelThread) -> Option<Asleep> {
    const LOOKS_MAX: u32 = 4;
    for _ in 0..LOOKS_MAX {
        let asleep = sleeps(holder)?;
        // Only a holder that sleeps outside of sections keeps what it runs.
        let running = vp.current.get().filter(|_| !holder.is_masked())?;
        if !hidden::rewind(holder, running, asleep.sp) {
            return Some(asleep);
        }
    }
    None
}

/// Takes `vp` from its holder, if the holder sleeps. The caller then gives it to another thread.
fn take(vp: &'static Vp) -> Option<()> {
    #[cfg(test)]
    tests::note_taker();
    let holder = vp.holder();
    if vp.rests() {
        return None;
    }
    let seen = holder.take(vp, || asleep_outside_sequences(vp, holder))?;
    let record = vp.current.take().expect("a holder with events unmasked runs a microprocess");
    record.state.set(State::Blocked);
    record.bound.set(Some(holder));
    record.special.set(true);
    holder.registers.set(Registers { instruction: seen.pc, stack: seen.sp });
    // SAFETY: its holder sleeps, and the claim keeps it from using `vp`.
    unsafe { Masked::assume(vp) }.own().blocked.set(Some(record));
    holder.running.set(Some(record));
    holder.strand(true);
    vp.counters.blocked.bump();
    vp.trace.note(What::Blocked, Some(record));
    vp.shared().enter_kernel();
    holder.lose();
    if record.orders.ends_calls() {
        // The orders came before the sleep, and their signal may have arrived before the call.
        end_call(record);
    }
    Some(())
}

#[cfg(test)]
mod tests;
