//! A CPU as the holder of the words: Linux restarts sequences.

use core::cell::Cell;

use kyocho_arch::mutant::rseq as mutant;
use kyocho_arch::mutant::trap_of;
use kyocho_arch::restartable::Range;
use kyocho_arch::rseq::{Cpu, SIGNATURE, Sequence, sequences};
use kyocho_sys::scheduling::{CpuSet, affinity, set_affinity};
use kyocho_sys::task::ThreadId;

use crate::harness::{Code, Function, TestHolder};
use crate::world::{Operation, Party, World, flag, number_of};

/// Bytes before an abort address: three of an instruction that traps, and the signature.
const BEFORE_ABORT: usize = 3 + size_of_val(&SIGNATURE);

thread_local! {
    /// The CPUs that this thread may use when no test confines it.
    static ALLOWED: Cell<Option<CpuSet>> = const { Cell::new(None) };
}

fn confine(set: &CpuSet) {
    set_affinity(ThreadId::current(), set).unwrap();
}

/// The CPUs that this thread may use when no test confines it.
pub(crate) fn allowed() -> CpuSet {
    let set = ALLOWED.get().unwrap_or_else(|| affinity(ThreadId::current()).unwrap());
    ALLOWED.set(Some(set));
    set
}

fn rows(of: Code) -> &'static [Sequence] {
    match of {
        Code::Real => sequences(),
        Code::Mutants => mutant::sequences(),
    }
}

impl TestHolder for Cpu {
    fn take(self) {
        assert!(allowed().contains(self.number() as usize));
        confine(&CpuSet::single(self.number() as usize));
        assert_eq!(Self::current(), Some(self));
    }

    fn release(self) {
        confine(&allowed());
    }

    fn loss(self) -> Option<fn()> {
        // Migrates the thread from the first CPU that it may use, where these tests run, to the
        // last.
        (allowed().count() > 1).then_some(|| {
            let last = allowed().iter().last().unwrap();
            confine(&CpuSet::single(last));
        })
    }

    fn code(of: Code) -> Vec<Function> {
        // The whole function, including the instructions before `start` and after the commit.
        let function = |row: &Sequence| Function {
            range: Range { start: row.entry, end: row.abort - BEFORE_ABORT },
            post_commit: row.post_commit,
        };
        rows(of).iter().map(function).collect()
    }

    fn resume(of: Code, site: usize, pc: usize) -> usize {
        if rows(of).iter().any(|row| row.abort == pc) {
            return pc;
        }
        assert_eq!(trap_of(pc), site, "neither an abort nor this test's trap");
        site
    }

    fn mutant(self, operation: Operation, world: &World, party: Party) -> usize {
        let (word, number) = world.words();
        let add = match operation {
            Operation::TestAndSetTwice => {
                // SAFETY: words of this world, on the only thread of this test; also below.
                return flag(unsafe { mutant::test_and_set_twice(self, word) });
            }
            Operation::FetchAddUnwatched => mutant::fetch_add_unwatched,
            Operation::FetchAddEndsEarly => mutant::fetch_add_ends_early,
            Operation::FetchAddEndsLate => mutant::fetch_add_ends_late,
            other => panic!("{other:?} is not a mutant of this holder"),
        };
        // SAFETY: as above.
        number_of(unsafe { add(self, number, party.addend()) })
    }
}
