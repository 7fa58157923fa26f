//! How a run begins and ends: its kernel threads, its main microprocess, and what is left of it.

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::prim::thread::JoinHandle;
use kyocho_sys::thread::start;
use kyocho_sys::{barrier, futex};

use crate::data::detection::Detection;
use crate::data::priority::Priority;
use crate::events::detect::{self, Seat};
use crate::events::maker;
use crate::events::monitor;
use crate::events::sentinel;
use crate::policy::configuration;
use crate::policy::scheduler::Factory;
use crate::processor::overflow;
use crate::processor::ready;
use crate::processor::record::{Kind, Name, Record, State};
use crate::processor::scheduler::Arrival;
use crate::processor::shared::Shared;
use crate::processor::slot;
use crate::processor::space;
use crate::processor::trace;
use crate::processor::vp::{Masked, Own, Vp, attention};
use crate::schedule::fork;
use crate::schedule::preempt;
use crate::thread::spawn::furnish;

/// What is the holder's of a virtual processor that has none: it has not begun, or has stopped.
#[expect(unsafe_code, reason = "stands for a holder that is not there")]
fn own(vp: &'static Vp) -> &'static Own {
    // SAFETY: nothing runs there; the callers are the beginning and the end of a run.
    unsafe { Masked::assume(vp) }.own()
}

/// Puts the user schedulers in their places, before anything runs.
///
/// Not from the configuration: its lock, taken by a kernel thread of no runtime, would turn all short locks on for good.
pub(super) fn install_schedulers(shared: &'static Shared, factory: &Factory) {
    for vp in shared.vps() {
        vp.queue_control().offer(factory.make(vp.index));
        own(vp).queue.install();
    }
}

/// Has everything run for so long at a time, where no user scheduler says otherwise.
pub(super) fn set_slices(shared: &'static Shared, slice_ns: u64) {
    shared.vps().iter().for_each(|vp| vp.queue_control().set_usual_slice(slice_ns));
}

/// Puts the main microprocess into the first virtual processor's run queue, before anything runs.
#[expect(unsafe_code, reason = "stands for a holder that is not there yet")]
///
/// `body` is small: it lies in the slot, so nothing is freed when it has returned, with events
/// masked.
pub(super) fn start_main(shared: &'static Shared, body: impl FnOnce() + Send) {
    // SAFETY: nothing runs yet.
    let vp = unsafe { Masked::assume(shared.vps()[0]) };
    let record = slot::make(slot::LARGEST).expect("memory for the main stack");
    let level = Priority::NORMAL.level();
    let context = spawn_main(record, body);
    record.renew(vp.vp(), vp.new_id(), level, context);
    record.name.set(Name::new("main"));
    record.completion.detached.set(true);
    vp.counters.spawned.bump();
    vp.queue().push(record, Arrival::Spawned);
}

#[expect(unsafe_code, reason = "the main microprocess borrows from its caller")]
fn spawn_main(record: &'static Record, body: impl FnOnce() + Send) -> kyocho_arch::Context {
    // SAFETY: the slot was free. `run` returns after the virtual processors have stopped: either main has ended, or it never
    // runs again.
    unsafe { furnish::<_, ()>(record, body) }
}

/// Stack of the monitor and the sentinels.
const WATCHER_STACK_BYTES: usize = 256 << 10;

/// Kernel threads that hold no virtual processor, and where some of them wait.
pub(super) struct Watchers {
    threads: Vec<JoinHandle<()>>,
    seats: Vec<&'static Seat>,
}

impl Watchers {
    pub(super) const fn new(seats: Vec<&'static Seat>) -> Self {
        Self { threads: Vec::new(), seats }
    }
}

/// Starts the kernel threads; `watchers` gets those that hold no virtual processor.
pub(super) fn start_threads(shared: &'static Shared, watchers: &mut Watchers) -> Result<(), Errno> {
    // Before there are threads that it would have to wait for.
    barrier::prepare();
    watchers.threads.extend(maker::make_room(shared.detection));
    preempt::install();
    overflow::install();
    fork::enter();
    shared.enlist();
    space::join(shared);
    trace::join(shared);
    // All of them before the first runs: it looks at the holders of others.
    let holders: Vec<_> = shared.vps().iter().map(|vp| Shared::appoint(vp)).collect();
    for (vp, holder) in shared.vps().iter().zip(holders) {
        shared.start_holder(vp, holder).inspect_err(|_| {
            // The others start in vain, and the records of those that will not be started are lost.
            shared.vps()[vp.index..].iter().for_each(|vp| vp.stopped.store(1, Ordering::SeqCst));
        })?;
    }
    let Watchers { threads, seats } = watchers;
    threads.push(start("monitor", WATCHER_STACK_BYTES, move || monitor::run(shared))?);
    threads.push(start("maker", WATCHER_STACK_BYTES, move || maker::run(shared))?);
    if shared.detection == Detection::Sentinel {
        for vp in shared.vps() {
            threads.push(start("sentinel", WATCHER_STACK_BYTES, move || sentinel::start(vp))?);
        }
    }
    for (vp, seat) in shared.vps().iter().zip(seats) {
        let seat: &'static Seat = seat;
        vp.seat.store(seat.number(), Ordering::SeqCst);
        threads.push(start("watcher", WATCHER_STACK_BYTES, move || detect::watch(vp, seat))?);
        threads.push(start("sentinel", WATCHER_STACK_BYTES, move || detect::guard(vp, seat))?);
    }
    Ok(())
}

/// How long a virtual processor gets to stop by itself.
const STOP_PATIENCE_NS: u64 = 1_000_000;

/// Stops the virtual processors, joins the kernel threads and takes all slots back. Returns how
/// many kernel threads are left: they carry microprocesses of this run, and sleep for ever.
pub(super) fn stop(shared: &'static Shared, watchers: Watchers) -> usize {
    shared.stopping.store(true, Ordering::SeqCst);
    shared.monitor.poke();
    shared.maker.poke();
    for vp in shared.vps() {
        vp.sentinel.wake();
        vp.alert(attention::STOP);
    }
    let Watchers { threads, seats } = watchers;
    seats.iter().for_each(|seat| seat.wake());
    for watcher in threads {
        assert!(watcher.join().is_ok(), "neither monitor nor sentinel panics");
    }
    for vp in shared.vps() {
        while vp.stopped.load(Ordering::SeqCst) == 0 {
            futex::wait(&vp.stopped, 0, Some(monotonic_ns() + STOP_PATIENCE_NS));
            vp.attention.fetch_or(attention::STOP, Ordering::SeqCst);
            preempt::stop(vp);
        }
    }
    let left = shared.join_threads();
    for port in shared.vps().iter().filter_map(|vp| vp.detach_port()) {
        port.quiesce();
        port.put();
    }
    // Before the slots are given back: the next user of one must be able to get messages.
    shared.vps().iter().for_each(|vp| vp.close_inbox());
    space::leave(shared);
    shared.vps().iter().for_each(|vp| vp.bell.take_down());
    fork::leave();
    shared.strike();
    detect::give_back(seats);
    shared.vps().iter().for_each(|vp| own(vp).queue.clear());
    ready::free_retired();
    let all = shared.statistics();
    if all.spawned != all.ended || left != 0 {
        // What is bound to a kernel thread that is left keeps its stack.
        for record in shared.take_records() {
            // The scheduler that had it is gone; the next user of the slot was handed to none.
            record.scheduling.set_queued(false);
            drop(record.machine.take());
            // Whose they are never runs again, and they need not be `Send`.
            core::mem::forget(record.locals.take());
            record.inheritance.forget();
            if is_unreferenced(record) {
                slot::give_back(record);
            } else {
                record.state.set(State::Abandoned);
            }
        }
    }
    // The maker is gone.
    slot::free::shrink();
    configuration::leave(shared);
    left
}

/// Whether nothing outside the slot of an abandoned microprocess points into it. What waits for an
/// object, or was just woken from that, may stand in the queues of objects that outlive the runtime:
/// its slot is kept as it is, and whoever finds the node there passes over it.
fn is_unreferenced(record: &Record) -> bool {
    let alone = matches!(
        record.reason.get().kind,
        Kind::Nothing | Kind::Park | Kind::Sleep | Kind::Join | Kind::Bell
    );
    // Whoever it waits for may be of another run, and wake it.
    let is_joined_by_another_run =
        record.joins.get().is_some_and(|joined| !joined.home().is_beside(record.home()));
    record.is_stackless.get() || alone && !is_joined_by_another_run
}
