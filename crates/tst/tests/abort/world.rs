//! The memory that operations work on, and the operations.

use core::cell::Cell;
use core::ptr::{self, NonNull};

use kyocho_arch::mutant;
use kyocho_arch::restartable::{self, Fifo, Link, NotHeld};

/// The virtual processor of these tests: a name that nobody follows.
pub(crate) const VP: NonNull<()> = NonNull::dangling();

/// Answer of an operation that was refused.
pub(crate) const REFUSED: usize = usize::MAX;
/// Stands for a null link, or one that is no node of the world.
const NO_NODE: usize = 99;

/// How a world begins: its words, and how many nodes are in its list and in its queue.
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
    Exchange,
    Push,
    Pop,
    Enqueue,
    Dequeue,
    /// What makes a compare-and-swap on the head err (ABA): the head is the same, its `next` is not in the list.
    PopTwicePushFirst,
    /// Takes a node out and puts it back at the end.
    DequeueEnqueue,
    MutantTestAndSetTwice,
    MutantEnqueueTailFirst,
    MutantTestAndSetUnregistered,
    MutantFetchAddUnregistered,
}

/// Who operates: each party has a node and numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    Interrupted = 0,
    Interloper = 1,
}

/// Nodes: one for each party, three for the list, three for the queue.
const NODES: usize = 8;

/// Words, list and queue, all in one place that does not move.
pub(crate) struct World {
    word: Cell<u32>,
    number: Cell<usize>,
    head: Cell<*mut Link>,
    queue: Cell<Fifo>,
    nodes: [Cell<Link>; NODES],
}

impl World {
    pub(crate) fn new(start: Start) -> Box<Self> {
        let node = || Cell::new(Link { next: ptr::dangling_mut() });
        let world = Box::new(Self {
            word: Cell::new(start.word),
            number: Cell::new(start.number),
            head: Cell::new(ptr::null_mut()),
            queue: Cell::new(Fifo::new()),
            nodes: [(); NODES].map(|()| node()),
        });
        for n in 0..start.nodes {
            // SAFETY: the world is ours, the nodes are in no list; so below.
            unsafe { restartable::push(VP, world.head.as_ptr(), world.nodes[2 + n].as_ptr()) }
                .unwrap();
            let queue = world.queue.as_ptr();
            // SAFETY: as above.
            unsafe { restartable::enqueue(VP, queue, world.nodes[5 + n].as_ptr()) }.unwrap();
        }
        world
    }

    /// Does an operation; its answer as a number. Allocates nothing: it also runs in a signal handler.
    pub(crate) fn operate(&self, operation: Operation, party: Party) -> usize {
        let own = party as usize;
        let node = self.nodes[own].as_ptr();
        let (word, number) = (self.word.as_ptr(), self.number.as_ptr());
        let (head, queue) = (self.head.as_ptr(), self.queue.as_ptr());
        // SAFETY (all): words and nodes of this world, on the one thread of this test; a party's own
        // node is in no list before its one operation.
        match operation {
            // SAFETY: above.
            Operation::TestAndSet => flag(unsafe { restartable::test_and_set(VP, word) }),
            Operation::CompareAndSwap => {
                // SAFETY: above.
                number_of(unsafe { restartable::compare_and_swap(VP, number, 5, 50 + own) })
            }
            Operation::FetchAdd => {
                // SAFETY: above.
                number_of(unsafe { restartable::fetch_add(VP, number, 10 + own) })
            }
            Operation::Exchange => {
                // SAFETY: above.
                number_of(unsafe { restartable::exchange(VP, number, 70 + own) })
            }
            // SAFETY: above.
            Operation::Push => done(unsafe { restartable::push(VP, head, node) }),
            // SAFETY: above.
            Operation::Pop => self.node(unsafe { restartable::pop(VP, head) }),
            // SAFETY: above.
            Operation::Enqueue => done(unsafe { restartable::enqueue(VP, queue, node) }),
            // SAFETY: above.
            Operation::Dequeue => self.node(unsafe { restartable::dequeue(VP, queue) }),
            Operation::PopTwicePushFirst => self.pop_twice_push_first(),
            Operation::DequeueEnqueue => self.dequeue_enqueue(),
            Operation::MutantTestAndSetTwice => {
                // SAFETY: above.
                flag(unsafe { mutant::test_and_set_twice(VP, word) })
            }
            Operation::MutantEnqueueTailFirst => {
                // SAFETY: above.
                done(unsafe { mutant::enqueue_tail_first(VP, queue, node) })
            }
            Operation::MutantTestAndSetUnregistered => {
                // SAFETY: above.
                flag(unsafe { mutant::test_and_set_unregistered(VP, word) })
            }
            Operation::MutantFetchAddUnregistered => {
                // SAFETY: above.
                number_of(unsafe { mutant::fetch_add_unregistered(VP, number, 10 + own) })
            }
        }
    }

    fn pop_twice_push_first(&self) -> usize {
        let head = self.head.as_ptr();
        // SAFETY: as in `operate`; so below.
        let first = unsafe { restartable::pop(VP, head) };
        // SAFETY: as above.
        let second = unsafe { restartable::pop(VP, head) };
        if let Ok(node) = first
            && !node.is_null()
        {
            // SAFETY: popped above.
            let _held = unsafe { restartable::push(VP, head, node) };
        }
        self.node(first) * 100 + self.node(second)
    }

    fn dequeue_enqueue(&self) -> usize {
        let queue = self.queue.as_ptr();
        // SAFETY: as in `operate`; so below.
        let first = unsafe { restartable::dequeue(VP, queue) };
        if let Ok(node) = first
            && !node.is_null()
        {
            // SAFETY: taken out above.
            let _held = unsafe { restartable::enqueue(VP, queue, node) };
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

    /// Words, list and queue as numbers. Bounded, whatever a mutant has done to the links.
    pub(crate) fn snapshot(&self) -> Vec<Vec<usize>> {
        let queue = self.queue.replace(Fifo::new());
        let (last, first) = (queue.tail, queue.head);
        self.queue.set(queue);
        let in_queue = if last.is_null() { vec![] } else { self.walk(first, last) };
        let words = vec![self.word.get() as usize, self.number.get()];
        vec![words, self.walk(self.head.get(), ptr::null_mut()), in_queue]
    }

    /// Indices from a link to `last`, or to the first thing that is no node.
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

fn number_of(answer: Result<usize, NotHeld>) -> usize {
    answer.unwrap_or(REFUSED)
}

fn flag(answer: Result<bool, NotHeld>) -> usize {
    answer.map_or(REFUSED, usize::from)
}

fn done(answer: Result<(), NotHeld>) -> usize {
    answer.map_or(REFUSED, |()| 0)
}
