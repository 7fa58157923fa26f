//! A virtual processor as the holder of the words: the test's handler restarts sequences.

use core::ptr::{self, NonNull};

use kyocho_arch::restartable::{Range, ranges, rewind};
use kyocho_arch::{mutant, set_current_vp};

use crate::harness::{Code, Function, TestHolder};
use crate::world::{Operation, Party, World, done, flag, number_of};

/// The virtual processor of these tests: a name that is never dereferenced.
pub(crate) const VP: NonNull<()> = NonNull::dangling();

impl TestHolder for NonNull<()> {
    fn take(self) {
        // SAFETY: tests run one at a time, so this thread is the only one that uses the words.
        unsafe { set_current_vp(self.as_ptr()) };
    }

    fn release(self) {
        // SAFETY: as above.
        unsafe { set_current_vp(ptr::null_mut()) };
    }

    fn loss(self) -> Option<fn()> {
        // SAFETY: the test is about losing it.
        Some(|| unsafe { set_current_vp(ptr::null_mut()) })
    }

    fn code(of: Code) -> Vec<Function> {
        // The code after the commit only returns.
        let function = |range: Range| Function { range, post_commit: range.end };
        match of {
            Code::Real => ranges().map(function).collect(),
            Code::Mutants => mutant::ranges().map(function).collect(),
        }
    }

    fn resume(of: Code, site: usize, pc: usize) -> usize {
        assert_eq!(mutant::trap_of(pc), site, "not this test's trap");
        match of {
            Code::Real => rewind(site),
            Code::Mutants => mutant::rewind(site),
        }
        .unwrap_or(site)
    }

    fn mutant(self, operation: Operation, world: &World, party: Party) -> usize {
        let (word, number) = world.words();
        // SAFETY (all): words and nodes of this world, on the only thread of this test.
        match operation {
            // SAFETY: above.
            Operation::TestAndSetTwice => flag(unsafe { mutant::test_and_set_twice(self, word) }),
            Operation::EnqueueTailFirst => {
                // SAFETY: above.
                done(unsafe {
                    mutant::enqueue_tail_first(self, world.queue(), world.node_of(party))
                })
            }
            Operation::TestAndSetUnregistered => {
                // SAFETY: above.
                flag(unsafe { mutant::test_and_set_unregistered(self, word) })
            }
            Operation::FetchAddUnregistered => {
                // SAFETY: above.
                number_of(unsafe { mutant::fetch_add_unregistered(self, number, party.addend()) })
            }
            other => panic!("{other:?} is not a mutant of this holder"),
        }
    }
}
