//! A program in PARMACS macros: its phases and its memory.
//!
//! ```text
//!   node 0 start ─ initialisation ─ first create ═╗ ─ work ─ wait_for_end ═╗ ─ results ─ end ═╗
//!   node K start ─ initialisation ─ Kth create ═══╝ ─ its function ────────╝ ─────────────────╝
//!          without output                     barrier                   barrier            barrier
//!
//!   At the first barrier only the writes of node 0 count. Node K ends after the last one.
//! ```
//!
//! The first page of the memory contains how much is allocated. After the first barrier that word
//! is written under lock [`HEAP`].
#![expect(unsafe_code, reason = "exports symbols and touches shared memory")]

use core::cell::RefCell;
use core::ffi::{c_long, c_ulong, c_void};
use core::ptr;
use std::os::fd::OwnedFd;

use kyocho_dsm::{BarrierKind, Dsm, LockId, Mode, Placement, Settings};
use kyocho_sys::memory::PAGE_BYTES;

use crate::node::{Failure, Result, enter, leave, or_end, with};
use crate::output::{flush, redirect, silence};

/// Locks of a program, at most, including [`HEAP`]. A lock costs memory once it is used.
const LOCKS_MAX: u32 = 1 << 20;
/// The lock of the allocator.
const HEAP: LockId = LockId(0);
/// A program gets at least this much memory: many ask for less than they use.
const MEMORY_BYTES_MIN: usize = 64 << 20;
/// Alignment of small pieces of memory, as in `malloc`.
const ALIGNMENT: usize = 16;
/// A function of C that a process runs.
type Work = extern "C" fn();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// All nodes run the same code.
    Initialising,
    /// Each node runs its own part.
    Working,
    /// Only node 0 works.
    Ended,
}

#[derive(Debug)]
struct Program {
    /// Address and size of the shared memory.
    memory: usize,
    bytes: usize,
    phase: Phase,
    /// Processes created.
    created: u16,
    /// Locks allocated: the same on all nodes until the work begins, then from a range of each
    /// node.
    locks: u32,
    own_locks: u32,
    /// The standard output of a node that prints nothing yet.
    output: Option<OwnedFd>,
}

thread_local! {
    static PROGRAM: RefCell<Option<Program>> = const { RefCell::new(None) };
}

fn not_begun() -> Failure {
    Failure::Invalid("the program has not started: use MAIN_INITENV first".to_owned())
}

/// Calls a function with this thread's program.
fn with_program<T>(body: impl FnOnce(&mut Program) -> Result<T>) -> Result<T> {
    PROGRAM.with_borrow_mut(|program| body(program.as_mut().ok_or_else(not_begun)?))
}

/// Calls a function with this thread's program and its node.
fn with_both<T>(body: impl FnOnce(&mut Program, &mut Dsm) -> Result<T>) -> Result<T> {
    with_program(|program| with(|dsm| body(program, dsm)))
}

/// Whether several processes are working.
pub(crate) fn is_shared() -> Result<bool> {
    with_program(|program| Ok(program.phase == Phase::Working))
}

impl Program {
    fn begin(bytes: usize) -> Result<Self> {
        let whole = bytes.max(MEMORY_BYTES_MIN).checked_next_multiple_of(PAGE_BYTES);
        let bytes = whole.and_then(|whole| whole.checked_add(PAGE_BYTES));
        let bytes = bytes.ok_or_else(|| Failure::Invalid("the size is too large".to_owned()))?;
        enter(|| Ok(Dsm::join(Settings { memory_bytes: bytes, locks: LOCKS_MAX })?))?;
        let (memory, rank) = with(|dsm| {
            let array = dsm.allocate::<u32>(bytes / size_of::<u32>(), Placement::Cyclic)?;
            Ok((dsm.cells(&array).as_ptr().addr(), dsm.rank()))
        })?;
        let output = if rank == 0 { None } else { Some(silence()?) };
        let phase = Phase::Initialising;
        let program = Self { memory, bytes, phase, created: 0, locks: 0, own_locks: 0, output };
        program.set_used(PAGE_BYTES as u64);
        Ok(program)
    }

    /// Number of allocated bytes.
    fn used(&self) -> u64 {
        let place = ptr::with_exposed_provenance::<u64>(self.memory);
        // SAFETY: the first word of shared memory, which is mapped as long as the program runs.
        unsafe { place.read_volatile() }
    }

    fn set_used(&self, bytes: u64) {
        let place = ptr::with_exposed_provenance_mut::<u64>(self.memory);
        // SAFETY: as above.
        unsafe { place.write_volatile(bytes) };
    }

    fn take(&self, bytes: usize) -> Result<usize> {
        let alignment = if bytes >= PAGE_BYTES { PAGE_BYTES } else { ALIGNMENT };
        let used = self.used() as usize;
        let first = used.next_multiple_of(alignment);
        let end = first.checked_add(bytes).filter(|end| *end <= self.bytes);
        let end = end.ok_or_else(|| {
            let left = self.bytes.saturating_sub(used);
            let asked = self.bytes - PAGE_BYTES;
            Failure::Invalid(format!(
                "G_MALLOC of {bytes} bytes: {left} are left of {asked}; give MAIN_INITENV a greater size"
            ))
        })?;
        self.set_used(end as u64);
        Ok(self.memory + first)
    }

    /// Makes all nodes equal to node 0. From now on they differ.
    fn work(&mut self, dsm: &mut Dsm) -> Result<()> {
        if dsm.rank() > 0 {
            dsm.forget_writes()?;
        }
        dsm.barrier(BarrierKind::Ordinary)?;
        self.phase = Phase::Working;
        if let Some(output) = self.output.take() {
            redirect(&output)?;
        }
        Ok(())
    }

    /// Creates a process. Returns whether this node is to run it.
    fn create(&mut self, dsm: &mut Dsm) -> Result<bool> {
        self.created += 1;
        let (created, rank, nodes) = (self.created, dsm.rank(), dsm.nodes());
        if created >= nodes {
            return Err(Failure::Invalid(format!(
                "the program creates {created} processes beside the first, and runs on {nodes} nodes: \
                 start as many nodes as it has processes, by kyocho dsm run -n"
            )));
        }
        let is_mine = rank == created;
        if is_mine || rank == 0 && created == 1 {
            self.work(dsm)?;
        }
        Ok(is_mine)
    }

    /// Waits until all created processes have ended.
    fn wait_for_end(&mut self, dsm: &mut Dsm) -> Result<()> {
        if self.created + 1 != dsm.nodes() {
            return Err(not_created(dsm, self.created));
        }
        if self.phase == Phase::Working {
            dsm.barrier(BarrierKind::Ordinary)?;
        }
        self.phase = Phase::Ended;
        Ok(())
    }

    /// Allocates the number of a lock.
    fn new_lock(&mut self, dsm: &Dsm) -> Result<u32> {
        let (rank, nodes) = (u32::from(dsm.rank()), u32::from(dsm.nodes()));
        let number = if self.phase == Phase::Initialising {
            self.locks += 1;
            self.locks
        } else {
            // The nodes differ from now on, so each uses its own range of numbers.
            self.own_locks += 1;
            self.locks.saturating_add(self.own_locks.saturating_mul(nodes)) + rank
        };
        if number >= LOCKS_MAX {
            return Err(Failure::Invalid(format!("there are no more than {LOCKS_MAX} locks")));
        }
        Ok(number)
    }
}

/// Allocates the number of a lock, on this node.
pub(crate) fn new_lock() -> Result<u32> {
    with_both(|program, dsm| program.new_lock(dsm))
}

/// Crosses a barrier of so many processes; 0: of all.
pub(crate) fn barrier(processes: c_long) -> Result<()> {
    with_both(|program, dsm| {
        let nodes = dsm.nodes();
        if processes != 0 && processes != c_long::from(nodes) {
            return Err(Failure::Invalid(format!(
                "a barrier for {processes} processes, but {nodes} nodes run: start as many nodes as the program has processes"
            )));
        }
        if nodes > 1 && program.phase != Phase::Working {
            return Err(not_created(dsm, program.created));
        }
        Ok(dsm.barrier(BarrierKind::Ordinary)?)
    })
}

fn not_created(dsm: &Dsm, created: u16) -> Failure {
    let nodes = dsm.nodes();
    Failure::Invalid(format!(
        "the program has created {created} processes beside the first, and runs on {nodes} nodes: start as many nodes as it has processes"
    ))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_start(bytes: usize) {
    or_end(|| {
        let program = Program::begin(bytes)?;
        PROGRAM.set(Some(program));
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_malloc(bytes: usize) -> *mut c_void {
    let address = or_end(|| {
        with_program(|program| {
            if program.phase != Phase::Working {
                return program.take(bytes);
            }
            with(|dsm| Ok(dsm.acquire(HEAP, Mode::Exclusive)?))?;
            let taken = program.take(bytes);
            with(|dsm| Ok(dsm.release(HEAP)?))?;
            taken
        })
    });
    ptr::with_exposed_provenance_mut(address)
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_create(work: Option<Work>) {
    let mine = or_end(|| {
        let work = work.ok_or_else(|| Failure::Invalid("CREATE needs a function".to_owned()))?;
        let is_mine = with_both(Program::create)?;
        Ok(is_mine.then_some(work))
    });
    if let Some(work) = mine {
        work();
        or_end(|| {
            flush();
            with(|dsm| Ok(dsm.barrier(BarrierKind::Ordinary)?))?;
            leave()
        });
        std::process::exit(0);
    }
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_wait_for_end() {
    or_end(|| with_both(Program::wait_for_end));
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_end() {
    if or_end(|| with_program(|program| Ok(program.phase != Phase::Ended))) {
        kyocho_dsm_wait_for_end();
    }
    or_end(|| {
        flush();
        PROGRAM.set(None);
        leave()
    });
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_clock() -> c_ulong {
    let now = kyocho_sys::prim::clock::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_micros() as c_ulong
}
