//! Finds the instructions of a sequence, and interrupts it at each.

use core::ffi::c_void;
use core::fmt::Debug;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use kyocho_arch::mutant::Hidden;
use kyocho_arch::restartable::{Holder, Range};
use kyocho_arch::{mutant, pc_of, set_pc};
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicUsize, Ordering};
use kyocho_sys::signal::{HandlerOptions, Info, Signal, install};

use crate::world::{Operation, Party, REFUSED, Start, World};

/// A holder of words that tests can acquire and lose.
pub(crate) trait TestHolder: Holder + Debug {
    /// Makes the calling thread hold it.
    fn take(self);
    /// Undoes `take`.
    fn release(self);
    /// Takes the holder away in the middle of a sequence; `None` if this machine cannot.
    fn loss(self) -> Option<fn()>;
    /// Its sequences.
    fn code(of: Code) -> Vec<Function>;
    /// The address to continue at after a trap at `site`; `pc` is the program counter that the
    /// kernel passed to the handler.
    fn resume(of: Code, site: usize, pc: usize) -> usize;
    /// Runs a faulty operation. Returns its answer as a number.
    fn mutant(self, operation: Operation, world: &World, party: Party) -> usize;
}

/// Address range of a sequence, and the address after its commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub(crate) range: Range,
    pub(crate) post_commit: usize,
}

/// An instruction of a sequence, and whether the commit comes after it.
#[derive(Debug, Clone, Copy)]
struct Site {
    address: usize,
    is_before_commit: bool,
}

/// Which sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Real,
    Mutants,
}

/// What happens between an abort and the restart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Nothing,
    /// The virtual processor or CPU is lost.
    Lost,
    /// Another party on the same holder does an operation.
    Interloper(Operation),
}

/// What the trap handler does next.
struct Plan<'a> {
    /// The address of the trap and the instruction that it replaced.
    trap: (usize, Hidden),
    resume: &'a dyn Fn(usize, usize) -> usize,
    /// The event. Must not allocate.
    happen: &'a mut dyn FnMut(),
    traps: usize,
}

static PLAN: AtomicPtr<Plan<'static>> = AtomicPtr::new(ptr::null_mut());
static INSTALLED: AtomicUsize = AtomicUsize::new(0);
/// Tests run one at a time, because patched instructions are shared by the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

unsafe extern "C" fn on_trap(_: i32, _: *mut Info, context: *mut c_void) {
    // SAFETY: `run_trapped` published it and waits on this thread.
    let plan = unsafe { &mut *PLAN.load(Ordering::Acquire) };
    // SAFETY: the context of this handler.
    let pc = unsafe { pc_of(context) };
    plan.traps += 1;
    let (site, hidden) = plan.trap;
    // SAFETY: this test put the trap there.
    unsafe { mutant::lift_trap(site, hidden) };
    (plan.happen)();
    let resume = (plan.resume)(site, pc);
    // SAFETY: the sequence can start again from its inputs; the instruction itself can execute,
    // too.
    unsafe { set_pc(context, resume) };
}

/// Runs `body` with a trap at `site`, where `happen` runs. Returns how often the trap was met.
fn run_trapped<T>(
    site: usize,
    resume: &dyn Fn(usize, usize) -> usize,
    happen: &mut dyn FnMut(),
    body: impl FnOnce() -> T,
) -> (T, usize) {
    if INSTALLED.swap(1, Ordering::AcqRel) == 0 {
        // SAFETY: the handler accesses the plan and the world only; traps come from patched
        // instructions.
        unsafe { install(Signal::TRAP, on_trap, HandlerOptions::default()) }.unwrap();
    }
    let mut plan = Plan { trap: lay_trap(site), resume, happen, traps: 0 };
    PLAN.store(ptr::from_mut(&mut plan).cast(), Ordering::Release);
    let value = body();
    PLAN.store(ptr::null_mut(), Ordering::Release);
    if plan.traps == 0 {
        // SAFETY: put there above.
        unsafe { mutant::lift_trap(plan.trap.0, plan.trap.1) };
    }
    (value, plan.traps)
}

/// Puts a trap over the instruction at `site`. Returns the instruction that it replaced.
fn lay_trap(site: usize) -> (usize, Hidden) {
    let page = site & !(PAGE_BYTES - 1);
    let everything = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: the page of this program's instruction stays executable; no trap crosses into the
    // next page.
    let answer =
        unsafe { libc::mprotect(ptr::with_exposed_provenance_mut(page), PAGE_BYTES, everything) };
    assert_eq!(answer, 0, "the program text cannot be made writable");
    // SAFETY: an instruction of this program, writable since the call above; tests run one at a
    // time.
    (site, unsafe { mutant::lay_trap(site) })
}

/// Addresses of the instructions in a range.
#[cfg(target_arch = "x86_64")]
fn instructions_of(range: Range) -> Vec<usize> {
    let code = ptr::with_exposed_provenance::<u8>(range.start);
    // SAFETY: code of this program, without a trap at present.
    let bytes = unsafe { core::slice::from_raw_parts(code, range.end - range.start) };
    let decoder =
        iced_x86::Decoder::with_ip(64, bytes, range.start as u64, iced_x86::DecoderOptions::NONE);
    decoder.into_iter().map(|instruction| instruction.ip() as usize).collect()
}

/// Addresses of the instructions in a range.
#[cfg(target_arch = "aarch64")]
fn instructions_of(range: Range) -> Vec<usize> {
    (range.start..range.end).step_by(4).collect()
}

/// Runs `body` while the thread holds `holder`.
fn holding<P: TestHolder, T>(holder: P, body: impl FnOnce() -> T) -> T {
    holder.take();
    let value = body();
    holder.release();
    value
}

/// The instructions that an uninterrupted operation executes: those whose trap is met.
fn executed<P: TestHolder>(holder: P, of: Code, start: Start, operation: Operation) -> Vec<Site> {
    let is_met = |site: &Site| {
        let world = World::new(holder, start);
        let resume = |site, pc| P::resume(of, site, pc);
        let operate = || world.operate(holder, operation, Party::Interrupted);
        run_trapped(site.address, &resume, &mut || {}, operate).1 > 0
    };
    let sites = |function: Function| {
        let is_before = move |address| address < function.post_commit;
        let site = move |address| Site { address, is_before_commit: is_before(address) };
        instructions_of(function.range).into_iter().map(site)
    };
    P::code(of).into_iter().flat_map(sites).filter(is_met).collect()
}

/// Answers of the interrupted party and of the interloper, and the memory afterwards.
type Outcome = (usize, Option<usize>, Vec<Vec<usize>>);

/// The outcomes of uninterrupted runs of one operation after the other.
fn serial<P: TestHolder>(
    holder: P,
    start: Start,
    operation: Operation,
    event: Event,
) -> Vec<Outcome> {
    let world = World::new(holder, start);
    let answer = || world.operate(holder, operation, Party::Interrupted);
    match event {
        Event::Nothing => vec![(answer(), None, world.snapshot())],
        Event::Lost => {
            // If the holder is lost before the commit, the operation is refused; if after it, it is
            // done.
            let untouched = (REFUSED, None, World::new(holder, start).snapshot());
            vec![untouched, (answer(), None, world.snapshot())]
        }
        Event::Interloper(other) => {
            let theirs_first = World::new(holder, start);
            let theirs = theirs_first.operate(holder, other, Party::Interloper);
            let ours = theirs_first.operate(holder, operation, Party::Interrupted);
            let first = answer();
            let second = world.operate(holder, other, Party::Interloper);
            vec![
                (ours, Some(theirs), theirs_first.snapshot()),
                (first, Some(second), world.snapshot()),
            ]
        }
    }
}

/// Aborts `operation` once at each of its instructions. Returns the number of instructions.
///
/// # Errors
/// The first abort whose outcome no serial order explains.
pub(crate) fn abort_everywhere<P: TestHolder>(
    holder: P,
    of: Code,
    start: Start,
    operation: Operation,
    event: Event,
) -> Result<usize, String> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (sites, allowed) = holding(holder, || {
        (executed(holder, of, start, operation), serial(holder, start, operation, event))
    });
    for (index, site) in sites.iter().enumerate() {
        let allowed = match event {
            Event::Lost if site.is_before_commit => &allowed[..1],
            Event::Lost => &allowed[1..],
            _ => &allowed,
        };
        let (outcome, traps) =
            holding(holder, || abort_at(site.address, holder, of, start, operation, event));
        assert_eq!(traps, 1, "{operation:?} did not execute instruction {index}");
        if !allowed.contains(&outcome) {
            return Err(format!(
                "{operation:?} from {start:?}, aborted at instruction {index} with {event:?}: \
                 {outcome:?}, but one after the other gives {allowed:?}"
            ));
        }
    }
    Ok(sites.len())
}

/// Aborts `operation` at one instruction. Returns the outcome, and how often the trap was met.
fn abort_at<P: TestHolder>(
    site: usize,
    holder: P,
    of: Code,
    start: Start,
    operation: Operation,
    event: Event,
) -> (Outcome, usize) {
    let world = World::new(holder, start);
    let mut interloper_answer = None;
    let loss = holder.loss();
    let mut happen = || match event {
        Event::Nothing => {}
        Event::Lost => loss.expect("the caller checked that there is one")(),
        Event::Interloper(other) => {
            interloper_answer = Some(world.operate(holder, other, Party::Interloper));
        }
    };
    let resume = |site, pc| P::resume(of, site, pc);
    let operate = || world.operate(holder, operation, Party::Interrupted);
    let (answer, traps) = run_trapped(site, &resume, &mut happen, operate);
    ((answer, interloper_answer, world.snapshot()), traps)
}
