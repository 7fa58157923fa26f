//! A virtual processor as the place: our handler restarts.

use core::ptr::{self, NonNull};

use kyocho_arch::restartable::{Range, ranges, rewind};
use kyocho_arch::{mutant, set_current_vp};

use crate::harness::{Code, Function, Place};
use crate::world::{Operation, Party, World, done, flag, number_of};

/// The virtual processor of these tests: a name that nobody follows.
pub(crate) const VP: NonNull<()> = NonNull::dangling();

impl Place for NonNull<()> {
    fn take(self) {
        // SAFETY: one test at a time: this thread is the only one that works on the words.
        unsafe { set_current_vp(self.as_ptr()) };
    }

    fn give_back(self) {
        // SAFETY: as above.
        unsafe { set_current_vp(ptr::null_mut()) };
    }

    fn thief(self) -> Option<fn()> {
        // SAFETY: losing it is what the test is about.
        Some(|| unsafe { set_current_vp(ptr::null_mut()) })
    }

    fn code(of: Code) -> Vec<Function> {
        // What lies behind the commit returns and no more.
        let function = |range: Range| Function { range, post_commit: range.end };
        match of {
            Code::Real => ranges().map(function).collect(),
            Code::Mutants => mutant::ranges().map(function).collect(),
        }
    }

    fn resume(of: Code, site: usize, pc: usize) -> usize {
        assert_eq!(mutant::trap_of(pc), site, "a trap of somebody else");
        match of {
            Code::Real => rewind(site),
            Code::Mutants => mutant::rewind(site),
        }
        .unwrap_or(site)
    }

    fn mutant(self, operation: Operation, world: &World, party: Party) -> usize {
        let (word, number) = world.words();
        // SAFETY (all): words and nodes of this world, on the one thread of this test.
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
            other => panic!("{other:?} is no mutant of this place"),
        }
    }
}
