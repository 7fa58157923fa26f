//! The monitor: one kernel thread for each runtime, which holds no virtual processor.
//!
//! * It is the clock of busy virtual processors, which check their timers only when told to.
//! * It ends time slices, and interrupts code that does not call the runtime (Preempted).
//! * It finds holders that sleep in the kernel (Blocked), if there is no sentinel or the sentinel
//!   is late.
//! * It interrupts system calls that must end, by a signal that it repeats until the sleeper has
//!   returned.
//! * It signals threads that returned from the kernel and do not call the runtime (Unblocked). Such
//!   a thread runs beside the virtual processors.
//!
//! It sleeps while every virtual processor is idle. If a microprocess sleeps in the kernel
//! meanwhile, it checks at intervals: a thread that returns from the kernel and makes no call is
//! not noticed in any other way.

use kyocho_sys::clock::process_cpu_ns;
use kyocho_sys::futex;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::set_timer_slack_ns;

use crate::data::detection::Detection;
use crate::data::slice::SLICE_NS;
use crate::processor::balance::{Pace, Spread, Trials};
use crate::processor::shared::Shared;
use crate::processor::space::{Account, Suspicion};
use crate::processor::taking::{Look, take_for_reserve, take_from_sleeper};
use crate::processor::vp::{NEVER_NS, Vp, attention};
use crate::schedule::preempt;

/// How long a virtual processor may take to notice an attention bit before it is interrupted.
const PATIENCE_NS: u64 = 50_000;
/// A microprocess that has run this long without a switch is interrupted at once.
const HOG_NS: u64 = 1_000_000;
/// How soon a busy virtual processor is checked again after it was taken from a holder that slept.
/// Each check that takes nothing doubles the time.
const LOOK_MIN_NS: u64 = 50_000;
/// The longest time between checks without a sentinel. With one it is a slice: on a core that other
/// programs want, the sentinel may wait long for its turn.
const LOOK_MAX_NS: u64 = 1_000_000;
/// When a system call that must end is interrupted again: soon, and then at growing intervals.
const CALL_MIN_NS: u64 = 1_000_000;
const CALL_MAX_NS: u64 = 250_000_000;

/// When the system calls that must end are interrupted again, and the interval, which doubles.
#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    next: Option<(u64, u64)>,
}

impl Calls {
    /// Called for a new such call. It does not delay the next interrupt of the others.
    fn begin(&mut self, now_ns: u64) {
        let soon_ns = now_ns + CALL_MIN_NS;
        let next_ns = self.next.map_or(soon_ns, |(next_ns, _)| next_ns.min(soon_ns));
        self.next = Some((next_ns, CALL_MIN_NS));
    }

    /// Runs `call`, if it is time, to interrupt them all; `call` returns whether any is left.
    /// Returns when to come back.
    fn run_due(&mut self, now_ns: u64, call: impl FnOnce() -> bool) -> u64 {
        if let Some((next_ns, wait_ns)) = self.next
            && next_ns <= now_ns
        {
            let wait_ns = (wait_ns * 2).min(CALL_MAX_NS);
            self.next = call().then_some((now_ns + wait_ns, wait_ns));
        }
        self.next.map_or(NEVER_NS, |(next_ns, _)| next_ns)
    }
}

/// After this many checks in a row that find the holder asleep and no spare thread, the reserve
/// receives the virtual processor. The maker needs some 50 µs for a spare thread.
const WITHOUT_SPARE_MAX: u32 = 4;

/// What the monitor remembers of one virtual processor.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    /// Its count of switches, and since when that has not changed.
    switches: u64,
    since_ns: u64,
    /// When it was interrupted, if it has not switched since.
    interrupted_ns: Option<u64>,
    /// Since when there is an attention bit that it has not noticed.
    asked_ns: Option<u64>,
    /// The interval between checks of its holder.
    look_ns: u64,
    /// Checks in a row that found the holder asleep and no spare thread.
    without_spare: u32,
    /// When it was last seen busy; 0 before.
    seen_ns: u64,
    /// Whether it has stopped answering.
    suspicion: Suspicion,
    /// The time slice of the running microprocess, if not [`SLICE_NS`].
    slice_ns: Option<u64>,
    /// How often it switches while others are idle.
    pace: Pace,
}

/// What to do about one virtual processor now, and when to check again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decision {
    /// Attention bits to set.
    tell: u32,
    interrupt: bool,
    look_ns: u64,
}

impl Watch {
    /// Decides from the state of a busy virtual processor at `now_ns`.
    fn decide(&mut self, now_ns: u64, switches: u64, deadline_ns: u64, unnoticed: u32) -> Decision {
        if switches != self.switches || self.since_ns == 0 {
            // A single switch after an interrupt was caused by it. So the present microprocess has
            // run since the interrupt.
            let with_it = self.interrupted_ns.take().filter(|_| switches == self.switches + 1);
            let since_ns = with_it.unwrap_or(now_ns);
            (self.switches, self.since_ns, self.asked_ns) = (switches, since_ns, None);
        }
        let slice_ns = self.slice_ns.unwrap_or(SLICE_NS);
        let mut tell = 0;
        if deadline_ns <= now_ns {
            tell |= attention::TIMERS;
        }
        let slice_end_ns = self.since_ns + slice_ns;
        if slice_end_ns <= now_ns {
            tell |= attention::PREEMPT;
        }
        let mut look_ns = if tell & attention::TIMERS == 0 { deadline_ns } else { NEVER_NS };
        if tell == 0 && unnoticed == 0 {
            self.asked_ns = None;
            return Decision { tell, interrupt: false, look_ns: look_ns.min(slice_end_ns) };
        }
        let asked_ns = *self.asked_ns.get_or_insert(now_ns);
        let is_hog = now_ns >= self.since_ns + HOG_NS;
        let patience_over = is_hog || now_ns >= asked_ns + PATIENCE_NS;
        if patience_over {
            // If the interrupt has no effect, it is repeated after another slice.
            (self.since_ns, self.asked_ns, self.interrupted_ns) = (now_ns, None, Some(now_ns));
            look_ns = look_ns.min(now_ns + slice_ns);
        } else {
            look_ns = look_ns.min(asked_ns + PATIENCE_NS);
        }
        Decision { tell, interrupt: patience_over, look_ns }
    }

    /// Takes `vp` from its holder if the holder sleeps; returns whether it was taken. If the maker
    /// has made no spare thread for some checks, the reserve receives `vp`.
    fn take(&mut self, vp: &'static Vp) -> bool {
        let look = take_from_sleeper(vp);
        self.without_spare = if look == Look::NoSpare { self.without_spare + 1 } else { 0 };
        if self.without_spare < WITHOUT_SPARE_MAX {
            return look == Look::Taken;
        }
        self.without_spare = 0;
        take_for_reserve(vp)
    }

    /// The interval until the next check of the holder, at most `longest_ns`. `found_asleep`: the
    /// virtual processor was just taken from a holder that slept.
    fn next_look(&mut self, found_asleep: bool, longest_ns: u64) -> u64 {
        self.look_ns = if found_asleep { LOOK_MIN_NS } else { self.look_ns.max(LOOK_MIN_NS) * 2 };
        self.look_ns = self.look_ns.min(longest_ns);
        self.look_ns
    }
}

/// The body of the monitor.
pub(crate) fn run(shared: &'static Shared) {
    // With the default slack every deadline would be 50 µs late. If refused, it is.
    let _late = set_timer_slack_ns(1);
    let longest_ns = match shared.detection {
        Detection::Off => None,
        Detection::Bpf | Detection::Sentinel => Some(SLICE_NS),
        Detection::Auto | Detection::Monitor => Some(LOOK_MAX_NS),
    };
    let monitor = &shared.monitor;
    let mut account = Account::default();
    // Where and when the search for threads that returned from the kernel continues.
    let (mut straggler, mut call_ns, mut call_wait_ns) = (0, 0, SLICE_NS);
    let mut watches = vec![Watch::default(); shared.vps().len()];
    let mut trials = Trials::new();
    let mut calls = Calls::default();
    loop {
        monitor.planned_ns.store(NEVER_NS, Ordering::SeqCst);
        // Cleared before the checks, so that a request during them is not lost.
        monitor.word.store(0, Ordering::SeqCst);
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let now_ns = monotonic_ns();
        if let Some(percent) = shared.limits.cpu_percent_max {
            let until_ns = account.stop_until(now_ns, process_cpu_ns(), percent);
            shared.spent_until_ns.store(until_ns.unwrap_or(0), Ordering::SeqCst);
        }
        if monitor.calls.swap(false, Ordering::SeqCst) {
            calls.begin(now_ns);
        }
        let mut next_ns = calls.run_due(now_ns, || shared.call_back_again());
        for (vp, watch) in shared.vps().iter().zip(&mut watches) {
            next_ns = next_ns.min(look_after(vp, watch, now_ns, longest_ns));
            next_ns = next_ns.min(spread(vp, &mut watch.pace, now_ns, &mut trials));
        }
        if longest_ns.is_some() && call_ns <= now_ns {
            straggler = shared.call_back_stragglers(straggler);
            // If no virtual processor runs, a thread that returned delays no other, and checks are
            // the only work left: they become rarer.
            let all_rest = shared.vps().iter().all(|vp| vp.rests());
            call_wait_ns = if all_rest { (call_wait_ns * 2).min(CALL_MAX_NS) } else { SLICE_NS };
            call_ns = now_ns + call_wait_ns;
        }
        if longest_ns.is_some() && shared.sleep_in_kernel() {
            next_ns = next_ns.min(call_ns);
        }
        monitor.planned_ns.store(next_ns, Ordering::SeqCst);
        let limit = (next_ns != NEVER_NS).then_some(next_ns);
        futex::wait(&monitor.word, 0, limit);
    }
}

/// Serves one virtual processor; returns when to come back.
fn look_after(vp: &'static Vp, watch: &mut Watch, now_ns: u64, longest_ns: Option<u64>) -> u64 {
    if vp.rests() {
        vp.reflect(false);
        *watch = Watch::default();
        return await_timers(vp, now_ns);
    }
    if vp.is_retired() {
        // The running microprocess may not have noticed this yet, or was unwinding when it did.
        vp.alert(attention::RECONSIDER);
    }
    let is_spent = now_ns < vp.shared().spent_until_ns.load(Ordering::SeqCst);
    if vp.tick(now_ns) || is_spent {
        vp.alert(attention::RANK);
    }
    if let Some(record) = vp.current.get().filter(|_| watch.seen_ns != 0) {
        // Counts the whole time since the last check: right on average.
        record.cpu_ns.fetch_add(now_ns.saturating_sub(watch.seen_ns), Ordering::Relaxed);
    }
    watch.seen_ns = now_ns;
    // If there is a sentinel, it has the time from one check to the next. For a thread that is just
    // falling asleep, the kernel answers a check only once it sleeps. Waiting for that answer would
    // delay the sentinel.
    let has_stopped = watch.switches == vp.counters.switches.get();
    let may_take = has_stopped || vp.shared().detection != Detection::Sentinel;
    if longest_ns.is_some() {
        vp.holder().ensure_reader();
    }
    let look_ns = longest_ns.map_or(NEVER_NS, |longest_ns| {
        let is_taken = may_take && watch.take(vp);
        now_ns + watch.next_look(is_taken, longest_ns)
    });
    if vp.bell.has_changed() {
        // The holder checks the words; a more urgent waiter then gets the virtual processor.
        vp.alert(attention::TIMERS);
    }
    let states = attention::IDLE
        | attention::CPU_YIELDED
        | attention::CLAIMED
        | attention::ORDERS
        | attention::SHARE
        | attention::SPREAD;
    let unnoticed = vp.attention.load(Ordering::SeqCst) & !states;
    let deadline_ns = vp.next_deadline_ns.load(Ordering::SeqCst);
    vp.reflect(unnoticed != 0);
    watch.suspicion.look(vp, unnoticed != 0);
    watch.slice_ns = Some(vp.queue_control().slice_ns());
    let decision = watch.decide(now_ns, vp.counters.switches.get(), deadline_ns, unnoticed);
    if decision.tell & !unnoticed != 0 {
        vp.alert(decision.tell);
    }
    if decision.interrupt {
        preempt::interrupt(vp);
    }
    let bell_ns = if vp.bell.awaits() { now_ns + LOOK_MAX_NS } else { NEVER_NS };
    decision.look_ns.min(look_ns).min(bell_ns)
}

/// Makes one virtual processor share with idle ones, if waking them is likely to pay. Returns when
/// to come back.
fn spread(vp: &'static Vp, pace: &mut Pace, now_ns: u64, trials: &mut Trials) -> u64 {
    let is_alone = vp.shared().idle.load(Ordering::Relaxed) == 0;
    if is_alone && !vp.rests() {
        *pace = Pace::default();
        vp.let_offer(true);
        trials.confirm(now_ns);
        return NEVER_NS;
    }
    let (asked, ignored_until_ns) = pace.admit(now_ns, vp.has_offered());
    if asked {
        vp.set_offered(false);
    }
    vp.let_offer(ignored_until_ns.is_none());
    let ignored_until_ns = ignored_until_ns.unwrap_or(NEVER_NS);
    if vp.rests() {
        return ignored_until_ns;
    }
    let (spread, again_ns) = pace.look(now_ns, vp.counters.switches.get(), asked, trials);
    match spread {
        None => {}
        Some(Spread::Trial) => vp.alert(attention::SHARE),
        Some(Spread::Soon) => vp.alert(attention::SPREAD),
        Some(Spread::Now) => {
            vp.alert(attention::SPREAD);
            // The running microprocess may not call the runtime for a whole slice. Until it has
            // shared, the monitor comes back.
            vp.set_offered(true);
            preempt::interrupt(vp);
        }
    }
    ignored_until_ns.min(again_ns.unwrap_or(NEVER_NS))
}

/// Sets the timer bit for a holder that has yielded its CPU; an idle one wakes by itself. Returns
/// when to come back.
fn await_timers(vp: &'static Vp, now_ns: u64) -> u64 {
    let deadline_ns =
        if vp.is_idle() { NEVER_NS } else { vp.next_deadline_ns.load(Ordering::SeqCst) };
    if deadline_ns > now_ns {
        return deadline_ns;
    }
    vp.alert(attention::TIMERS);
    now_ns + SLICE_NS
}

#[cfg(test)]
mod tests;
