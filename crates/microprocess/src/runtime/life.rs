//! How a run begins and ends: its kernel threads, its main microprocess, and what remains of it.

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::prim::thread::JoinHandle;
use kyocho_sys::thread::start;
use kyocho_sys::{barrier, futex};

use crate::data::detection::Detection;
use crate::data::priority::Priority;
use crate::events::detect::{self, MapEntry};
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

/// The holder's part of a virtual processor that has no holder: it has not begun, or has stopped.
#[expect(unsafe_code, reason = "stands for a holder that is not there")]
fn own(vp: &'static Vp) -> &'static Own {
    // SAFETY: nothing runs on `vp`: it is called only before a run begins and after it has stopped.
    unsafe { Masked::assume(vp) }.own()
}

/// Installs the user schedulers, before anything runs.
///
/// The factory is a parameter, not read from the configuration. The lock of the configuration,
/// taken by a kernel thread outside the runtimes, would make all short locks exclude for good.
pub(super) fn install_schedulers(shared: &'static Shared, factory: &Factory) {
    for vp in shared.vps() {
        vp.queue_control().offer(factory.make(vp.index));
        own(vp).queue.install();
    }
}

/// Sets the time slice of all virtual processors, if no user scheduler sets another.
pub(super) fn set_slices(shared: &'static Shared, slice_ns: u64) {
    shared.vps().iter().for_each(|vp| vp.queue_control().set_usual_slice(slice_ns));
}

/// Puts the main microprocess into the run queue of the first virtual processor, before anything
/// runs.
///
/// `body` is small, so it is stored in the slot. So nothing is freed when it has returned, with
/// events masked.
#[expect(unsafe_code, reason = "stands for a holder that is not there yet")]
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
    // SAFETY: the slot was free. `run` returns after the virtual processors have stopped. By then,
    // main has ended or never runs again.
    unsafe { furnish::<_, ()>(record, body) }
}

/// Size of the stack of the monitor, the maker, the watchers and the sentinels.
const WATCHER_STACK_BYTES: usize = 256 << 10;

/// The kernel threads of a run that hold no virtual processor, and the map entries of the watchers.
pub(super) struct Watchers {
    threads: Vec<JoinHandle<()>>,
    map_entries: Vec<&'static MapEntry>,
}

impl Watchers {
    pub(super) const fn new(map_entries: Vec<&'static MapEntry>) -> Self {
        Self { threads: Vec::new(), map_entries }
    }
}

/// Starts the kernel threads; adds those that hold no virtual processor to `watchers`.
pub(super) fn start_threads(shared: &'static Shared, watchers: &mut Watchers) -> Result<(), Errno> {
    // Before there are other threads for which this would have to wait.
    barrier::prepare();
    watchers.threads.extend(maker::make_room(shared.detection));
    preempt::install();
    overflow::install();
    fork::enter();
    shared.enlist();
    space::join(shared);
    trace::join(shared);
    // All holders are appointed before the first runs, because it looks at the holders of others.
    let holders: Vec<_> = shared.vps().iter().map(|vp| Shared::appoint(vp)).collect();
    for (vp, holder) in shared.vps().iter().zip(holders) {
        shared.start_holder(vp, holder).inspect_err(|_| {
            // These virtual processors never start, so `stop` must not wait for them. The records
            // of their holders are lost.
            shared.vps()[vp.index..].iter().for_each(|vp| vp.stopped.store(1, Ordering::SeqCst));
        })?;
    }
    let Watchers { threads, map_entries } = watchers;
    threads.push(start("monitor", WATCHER_STACK_BYTES, move || monitor::run(shared))?);
    threads.push(start("maker", WATCHER_STACK_BYTES, move || maker::run(shared))?);
    if shared.detection == Detection::Sentinel {
        for vp in shared.vps() {
            threads.push(start("sentinel", WATCHER_STACK_BYTES, move || sentinel::start(vp))?);
        }
    }
    for (vp, map_entry) in shared.vps().iter().zip(map_entries) {
        let map_entry: &'static MapEntry = map_entry;
        vp.map_entry.store(map_entry.number(), Ordering::SeqCst);
        threads.push(start("watcher", WATCHER_STACK_BYTES, move || detect::watch(vp, map_entry))?);
        threads.push(start("sentinel", WATCHER_STACK_BYTES, move || detect::guard(vp, map_entry))?);
    }
    Ok(())
}

/// How long to wait for a virtual processor to stop before it is interrupted.
const STOP_PATIENCE_NS: u64 = 1_000_000;

/// Stops the virtual processors, joins the kernel threads and reclaims the slots. Returns how many
/// kernel threads are left: they carry microprocesses of this run, and sleep for ever.
pub(super) fn stop(shared: &'static Shared, watchers: Watchers) -> usize {
    shared.stopping.store(true, Ordering::SeqCst);
    shared.monitor.poke();
    shared.maker.poke();
    for vp in shared.vps() {
        vp.sentinel.wake();
        vp.alert(attention::STOP);
    }
    let Watchers { threads, map_entries } = watchers;
    map_entries.iter().for_each(|map_entry| map_entry.wake());
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
    // Before the slots are returned: the next user of a slot must be able to receive messages.
    shared.vps().iter().for_each(|vp| vp.close_inbox());
    space::leave(shared);
    shared.vps().iter().for_each(|vp| vp.bell.take_down());
    fork::leave();
    shared.delist();
    detect::give_back(map_entries);
    shared.vps().iter().for_each(|vp| own(vp).queue.clear());
    ready::free_retired();
    let all = shared.statistics();
    if all.spawned != all.ended || left != 0 {
        // A microprocess bound to a kernel thread that is left keeps its stack.
        for record in shared.take_records() {
            // Its scheduler no longer exists, and no scheduler has the next user of the slot yet.
            record.scheduling.set_queued(false);
            drop(record.machine.take());
            // The destructors of the local values do not run: the microprocess never runs again,
            // and the values need not be `Send`.
            core::mem::forget(record.locals.take());
            record.inheritance.forget();
            if is_unreferenced(record) {
                slot::give_back(record);
            } else {
                record.state.set(State::Abandoned);
            }
        }
    }
    // The maker, which does this during the run, has ended.
    slot::free::shrink();
    configuration::leave(shared);
    left
}

/// Whether nothing outside the slot of an abandoned microprocess points into it. Its node may be in
/// the queue of an object that outlives the runtime, if it waited there or was just woken. Then its
/// slot is not reused, and a thread that finds the node in the queue skips it.
fn is_unreferenced(record: &Record) -> bool {
    let alone = matches!(
        record.reason.get().kind,
        Kind::Nothing | Kind::Park | Kind::Sleep | Kind::Join | Kind::Bell
    );
    // The microprocess that it waits for may belong to another run, and wake it.
    let is_joined_by_another_run =
        record.joins.get().is_some_and(|joined| !joined.home().is_beside(record.home()));
    record.is_stackless.get() || alone && !is_joined_by_another_run
}
