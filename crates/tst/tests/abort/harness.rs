//! Finding the instructions of a sequence, and interrupting it at each.

use core::ffi::c_void;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use kyocho_arch::mutant::Hidden;
use kyocho_arch::restartable::Range;
use kyocho_arch::{mutant, pc_of, set_current_vp, set_pc};
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicUsize, Ordering};
#[cfg(target_arch = "x86_64")]
use kyocho_sys::signal::send;
use kyocho_sys::signal::{Info, Manner, Signal, install};
#[cfg(target_arch = "x86_64")]
use kyocho_sys::task::ThreadId;

use crate::world::{Operation, Party, REFUSED, Start, VP, World};

/// The sequences under test, and what restarts them.
#[derive(Clone, Copy)]
pub(crate) struct Sequences {
    pub(crate) ranges: fn() -> Vec<Range>,
    pub(crate) rewind: fn(usize) -> Option<usize>,
}

/// What happens between an abort and the restart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Nothing,
    /// Another kernel thread took the virtual processor over.
    VirtualProcessorLost,
    /// Another microprocess of the virtual processor did an operation.
    Interloper(Operation),
}

/// What the trap handler does now.
struct Plan {
    sequences: Sequences,
    world: *const World,
    event: Event,
    /// Where the trap lies and what it hides; `None` while tracing.
    trap: Option<(usize, Hidden)>,
    /// Addresses of executed instructions, while tracing, and whether to go on.
    #[cfg(target_arch = "x86_64")]
    traced: Vec<usize>,
    #[cfg(target_arch = "x86_64")]
    tracing: bool,
    interloper_answer: Option<usize>,
    traps: usize,
}

static PLAN: AtomicPtr<Plan> = AtomicPtr::new(ptr::null_mut());
static INSTALLED: AtomicUsize = AtomicUsize::new(0);
/// One test at a time: instructions belong to the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Trap flag of the flags register: a trap after each instruction.
#[cfg(target_arch = "x86_64")]
const TRAP_FLAG: i64 = 1 << 8;

unsafe extern "C" fn on_trap(_: i32, _: *mut Info, context: *mut c_void) {
    // SAFETY: `with_plan` published it and waits on this very thread.
    let plan = unsafe { &mut *PLAN.load(Ordering::Acquire) };
    // SAFETY: the context of this handler.
    let pc = unsafe { pc_of(context) };
    let Some((site, hidden)) = plan.trap else {
        // SAFETY: as above.
        unsafe { trace(plan, pc, context) };
        return;
    };
    plan.traps += 1;
    // SAFETY: laid there by this test.
    unsafe { mutant::lift_trap(site, hidden) };
    assert_eq!(mutant::trap_of(pc), site, "a trap of somebody else");
    match plan.event {
        Event::Nothing => {}
        // SAFETY: losing it is what the test is about.
        Event::VirtualProcessorLost => unsafe { set_current_vp(ptr::null_mut()) },
        Event::Interloper(operation) => {
            // SAFETY: the world outlives the plan.
            let world = unsafe { &*plan.world };
            plan.interloper_answer = Some(world.operate(operation, Party::Interloper));
        }
    }
    let resume = (plan.sequences.rewind)(site).unwrap_or(site);
    // SAFETY: the start of the sequence finds its inputs, the instruction itself finds everything.
    unsafe { set_pc(context, resume) };
}

/// Notes the next instruction, and asks for a trap after it while tracing.
///
/// # Safety
/// In a handler, with its context.
#[cfg(target_arch = "x86_64")]
unsafe fn trace(plan: &mut Plan, pc: usize, context: *mut c_void) {
    // SAFETY: the kernel laid out the context; it is ours until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let flags = &mut context.uc_mcontext.gregs[libc::REG_EFL as usize];
    *flags = if plan.tracing { *flags | TRAP_FLAG } else { *flags & !TRAP_FLAG };
    // Room was reserved: no allocation in a handler.
    if plan.tracing && plan.traced.len() < plan.traced.capacity() {
        plan.traced.push(pc);
    }
}

/// No tracing here, so no trap without a site.
///
/// # Safety
/// None.
#[cfg(target_arch = "aarch64")]
unsafe fn trace(_: &mut Plan, pc: usize, _: *mut c_void) {
    panic!("a trap of somebody else at {pc:#x}");
}

/// Runs `body` with the handler following `plan`.
fn with_plan<T>(plan: &mut Plan, body: impl FnOnce(*mut Plan) -> T) -> T {
    if INSTALLED.swap(1, Ordering::AcqRel) == 0 {
        // SAFETY: the handler touches the plan and the world only; traps come from patched instructions.
        unsafe { install(Signal::TRAP, on_trap, Manner::default()) }.unwrap();
    }
    let plan = ptr::from_mut(plan);
    PLAN.store(plan, Ordering::Release);
    let value = body(plan);
    PLAN.store(ptr::null_mut(), Ordering::Release);
    value
}

/// Holds the virtual processor around `body`.
fn holding<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: `ONE_AT_A_TIME` makes this thread the only one that works on the words.
    unsafe { set_current_vp(VP.as_ptr()) };
    let value = body();
    // SAFETY: as above.
    unsafe { set_current_vp(ptr::null_mut()) };
    value
}

fn plan(sequences: Sequences, world: &World, event: Event) -> Plan {
    Plan {
        sequences,
        world,
        event,
        trap: None,
        #[cfg(target_arch = "x86_64")]
        traced: Vec::with_capacity(100_000),
        #[cfg(target_arch = "x86_64")]
        tracing: false,
        interloper_answer: None,
        traps: 0,
    }
}

/// Addresses of the instructions inside sequences that an undisturbed operation executes: by single steps,
/// because their lengths differ.
#[cfg(target_arch = "x86_64")]
fn instructions(sequences: Sequences, start: Start, operation: Operation) -> Vec<usize> {
    let world = World::new(start);
    let mut plan = plan(sequences, &world, Event::Nothing);
    with_plan(&mut plan, |plan| {
        let set = |tracing| {
            // SAFETY: the handler, on this thread, is not running.
            unsafe { (*plan).tracing = tracing };
        };
        set(true);
        send(ThreadId::current(), Signal::TRAP).unwrap();
        world.operate(operation, Party::Interrupted);
        set(false);
    });
    let ranges = (sequences.ranges)();
    let mut inside: Vec<usize> = plan.traced.clone();
    inside.retain(|&pc| ranges.iter().any(|range| range.contains(pc)));
    let range = ranges.iter().find(|range| Some(&range.start) == inside.first()).unwrap();
    assert!(plan.traced.contains(&range.end), "the trace does not reach the end of the sequence");
    inside
}

/// The same by trial, because all have four bytes: an instruction over which a trap is met is executed.
#[cfg(target_arch = "aarch64")]
fn instructions(sequences: Sequences, start: Start, operation: Operation) -> Vec<usize> {
    let is_met = |site: usize| {
        let world = World::new(start);
        let mut plan = plan(sequences, &world, Event::Nothing);
        let (site, hidden) = lay_trap(site);
        plan.trap = Some((site, hidden));
        with_plan(&mut plan, |_| world.operate(operation, Party::Interrupted));
        if plan.traps == 0 {
            // SAFETY: laid above.
            unsafe { mutant::lift_trap(site, hidden) };
        }
        plan.traps > 0
    };
    let ranges = (sequences.ranges)().into_iter();
    ranges.flat_map(|range| (range.start..range.end).step_by(4)).filter(|&at| is_met(at)).collect()
}

/// Lays a trap over the instruction at `site`; what it hides.
fn lay_trap(site: usize) -> (usize, Hidden) {
    let page = site & !(PAGE_BYTES - 1);
    let everything = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: the page of an instruction of ours stays executable; no trap crosses into the next one.
    let answer =
        unsafe { libc::mprotect(ptr::with_exposed_provenance_mut(page), PAGE_BYTES, everything) };
    assert_eq!(answer, 0, "the text may not be made writable");
    // SAFETY: an instruction of ours, writable since just now; one test at a time.
    (site, unsafe { mutant::lay_trap(site) })
}

/// Answers of the interrupted party and of the interloper, and what is in memory afterwards.
type Outcome = (usize, Option<usize>, Vec<Vec<usize>>);

/// What an undisturbed run of one operation after the other leaves behind.
fn serial(start: Start, operation: Operation, event: Event) -> Vec<Outcome> {
    let world = World::new(start);
    let untouched = World::new(start).snapshot();
    let answer = || world.operate(operation, Party::Interrupted);
    match event {
        Event::Nothing => vec![(answer(), None, world.snapshot())],
        Event::VirtualProcessorLost => vec![(REFUSED, None, untouched)],
        Event::Interloper(other) => {
            let theirs_first = World::new(start);
            let theirs = theirs_first.operate(other, Party::Interloper);
            let ours = theirs_first.operate(operation, Party::Interrupted);
            let (first, second) = (answer(), world.operate(other, Party::Interloper));
            vec![
                (ours, Some(theirs), theirs_first.snapshot()),
                (first, Some(second), world.snapshot()),
            ]
        }
    }
}

/// Aborts `operation` at each of its instructions, once each; how many there were.
///
/// # Errors
/// The first abort whose outcome no serial order explains.
pub(crate) fn abort_everywhere(
    sequences: Sequences,
    start: Start,
    operation: Operation,
    event: Event,
) -> Result<usize, String> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (sites, allowed) =
        holding(|| (instructions(sequences, start, operation), serial(start, operation, event)));
    for (index, &site) in sites.iter().enumerate() {
        let (world, mut plan) = holding(|| {
            let world = World::new(start);
            let plan = plan(sequences, &world, event);
            (world, plan)
        });
        plan.trap = Some(lay_trap(site));
        let answer =
            holding(|| with_plan(&mut plan, |_| world.operate(operation, Party::Interrupted)));
        assert_eq!(plan.traps, 1, "{operation:?} did not pass instruction {index}");
        let outcome = (answer, plan.interloper_answer, world.snapshot());
        if !allowed.contains(&outcome) {
            return Err(format!(
                "{operation:?} from {start:?}, aborted at instruction {index} with {event:?}: \
                 {outcome:?}, but one after the other gives {allowed:?}"
            ));
        }
    }
    Ok(sites.len())
}
