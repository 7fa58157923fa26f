//! The memory that operations work on, and the operations.

use core::cell::Cell;
use core::ptr;

use kyocho_arch::restartable::{self, Fifo, Link, NotHeld};

use crate::harness::TestHolder;

/// Answer of a refused operation.
pub(crate) const REFUSED: usize = usize::MAX;
/// Stands for a null link, or one that is not a node of the world.
const NO_NODE: usize = 99;

/// The start of a world: its words, and the number of nodes in its list and in its queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) word: u32,
    pub(crate) number: usize,
    pub(crate) nodes: usize,
}

/// An operation that one of two parties does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    TestAndSet,
    CompareAndSwap,
    FetchAdd,
    Push,
    Pop,
    Enqueue,
    Dequeue,
    /// Provokes the ABA problem of a compare-and-swap on the head: the head is the same, but its
    /// `next` is no longer in the list.
    PopTwicePushFirst,
    /// Removes the oldest node and inserts it at the end.
    DequeueEnqueue,
    // Mutants: see `kyocho_arch::mutant`.
    TestAndSetTwice,
    EnqueueTailFirst,
    TestAndSetUnregistered,
    FetchAddUnregistered,
    #[cfg(target_arch = "x86_64")]
    FetchAddUnwatched,
    #[cfg(target_arch = "x86_64")]
    FetchAddEndsEarly,
    #[cfg(target_arch = "x86_64")]
    FetchAddEndsLate,
}

/// The parties. Each has a node and numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    Interrupted = 0,
    Interloper = 1,
}

impl Party {
    /// The number that it adds.
    pub(crate) fn addend(self) -> usize {
        10 + self as usize
    }
}

/// Nodes: one for each party, three for the list, three for the queue.
const NODES: usize = 8;

/// Words, list and queue, at addresses that do not change.
pub(crate) struct World {
    word: Cell<u32>,
    number: Cell<usize>,
    head: Cell<*mut Link>,
    queue: Cell<Fifo>,
    nodes: [Cell<Link>; NODES],
}

impl World {
    pub(crate) fn new(holder: impl TestHolder, start: Start) -> Box<Self> {
        let node = || Cell::new(Link { next: ptr::dangling_mut() });
        let world = Box::new(Self {
            word: Cell::new(start.word),
            number: Cell::new(start.number),
            head: Cell::new(ptr::null_mut()),
            queue: Cell::new(Fifo::new()),
            nodes: [(); NODES].map(|()| node()),
        });
        for n in 0..start.nodes {
            // SAFETY: the world is accessed by this thread alone, and the nodes are in no list;
            // also below.
            unsafe { restartable::push(holder, world.head.as_ptr(), world.nodes[2 + n].as_ptr()) }
                .unwrap();
            let queue = world.queue.as_ptr();
            // SAFETY: as above.
            unsafe { restartable::enqueue(holder, queue, world.nodes[5 + n].as_ptr()) }.unwrap();
        }
        world
    }

    /// Does an operation. Returns its answer as a number. Must not allocate, because it also runs
    /// in a signal handler.
    pub(crate) fn operate(
        &self,
        holder: impl TestHolder,
        operation: Operation,
        party: Party,
    ) -> usize {
        let own = party as usize;
        let node = self.node_of(party);
        let (word, number) = self.words();
        let (head, queue) = (self.head.as_ptr(), self.queue());
        // SAFETY (all): words and nodes of this world, on the only thread of this test. A party's
        // own node is in no list before its one operation.
        match operation {
            // SAFETY: above.
            Operation::TestAndSet => flag(unsafe { restartable::test_and_set(holder, word) }),
            Operation::CompareAndSwap => {
                // SAFETY: above.
                number_of(unsafe { restartable::compare_and_swap(holder, number, 5, 50 + own) })
            }
            Operation::FetchAdd => {
                // SAFETY: above.
                number_of(unsafe { restartable::fetch_add(holder, number, party.addend()) })
            }
            // SAFETY: above.
            Operation::Push => done(unsafe { restartable::push(holder, head, node) }),
            // SAFETY: above.
            Operation::Pop => self.node(unsafe { restartable::pop(holder, head) }),
            // SAFETY: above.
            Operation::Enqueue => done(unsafe { restartable::enqueue(holder, queue, node) }),
            // SAFETY: above.
            Operation::Dequeue => self.node(unsafe { restartable::dequeue(holder, queue) }),
            Operation::PopTwicePushFirst => self.pop_twice_push_first(holder),
            Operation::DequeueEnqueue => self.dequeue_enqueue(holder),
            mutant => holder.mutant(mutant, self, party),
        }
    }

    /// The lock word and the number.
    pub(crate) fn words(&self) -> (*mut u32, *mut usize) {
        (self.word.as_ptr(), self.number.as_ptr())
    }

    pub(crate) fn queue(&self) -> *mut Fifo {
        self.queue.as_ptr()
    }

    /// A party's own node.
    pub(crate) fn node_of(&self, party: Party) -> *mut Link {
        self.nodes[party as usize].as_ptr()
    }

    fn pop_twice_push_first(&self, holder: impl TestHolder) -> usize {
        let head = self.head.as_ptr();
        // SAFETY: as in `operate`; also below.
        let first = unsafe { restartable::pop(holder, head) };
        // SAFETY: as above.
        let second = unsafe { restartable::pop(holder, head) };
        if let Ok(node) = first
            && !node.is_null()
        {
            // SAFETY: popped above.
            let _held = unsafe { restartable::push(holder, head, node) };
        }
        self.node(first) * 100 + self.node(second)
    }

    fn dequeue_enqueue(&self, holder: impl TestHolder) -> usize {
        let queue = self.queue();
        // SAFETY: as in `operate`; also below.
        let first = unsafe { restartable::dequeue(holder, queue) };
        if let Ok(node) = first
            && !node.is_null()
        {
            // SAFETY: removed above.
            let _held = unsafe { restartable::enqueue(holder, queue, node) };
        }
        self.node(first)
    }

    /// The index of a link among the nodes.
    fn index(&self, link: *mut Link) -> usize {
        self.nodes.iter().position(|node| node.as_ptr() == link).unwrap_or(NO_NODE)
    }

    fn node(&self, answer: Result<*mut Link, NotHeld>) -> usize {
        answer.map_or(REFUSED, |link| self.index(link))
    }

    /// Words, list and queue as numbers. Bounded, even if a mutant has corrupted the links.
    pub(crate) fn snapshot(&self) -> Vec<Vec<usize>> {
        let queue = self.queue.replace(Fifo::new());
        let (last, first) = (queue.tail, queue.head);
        self.queue.set(queue);
        let in_queue = if last.is_null() { vec![] } else { self.walk(first, last) };
        let words = vec![self.word.get() as usize, self.number.get()];
        vec![words, self.walk(self.head.get(), ptr::null_mut()), in_queue]
    }

    /// Indices from a link to `last`, or to the first link that is not a node.
    fn walk(&self, mut link: *mut Link, last: *mut Link) -> Vec<usize> {
        let mut indices = Vec::new();
        while indices.len() <= NODES {
            let index = self.index(link);
            indices.push(index);
            if link == last || index == NO_NODE {
                break;
            }
            let node = self.nodes[index].replace(Link { next: ptr::null_mut() });
            link = node.next;
            self.nodes[index].set(node);
        }
        indices
    }
}

pub(crate) fn number_of(answer: Result<usize, NotHeld>) -> usize {
    answer.unwrap_or(REFUSED)
}

pub(crate) fn flag(answer: Result<bool, NotHeld>) -> usize {
    answer.map_or(REFUSED, usize::from)
}

pub(crate) fn done(answer: Result<(), NotHeld>) -> usize {
    answer.map_or(REFUSED, |()| 0)
}
