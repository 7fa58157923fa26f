//! The messages that a channel holds between send and receive.
//!
//! Pushing and popping do not allocate or free. They happen with events masked, when a preempted
//! microprocess of this virtual processor may hold the allocator's lock. A ring is allocated with
//! its channel. An unbounded channel grows by blocks: a sender allocates one before it enters the
//! guard, and a receiver frees one after it has left the guard.
//!
//! ```text
//! head -> [ . . x x ] -> [ x x x x ] -> [ x . . . ] <- tail       spare -> [ . . . . ]
//!             ^ taken                       ^ filled
//! ```
//!
//! **Invariant:** `taken <= filled` if head and tail are one block. A single block that becomes
//! empty is used again from its start, so a channel that is drained regularly never grows.
#![expect(unsafe_code, reason = "slots are initialised one by one, blocks linked by pointer")]

use core::{mem::MaybeUninit, ptr};

/// The number of messages in one block: a send allocates once in this many sends.
const BLOCK_MESSAGES: usize = 32;

/// The messages in a channel, in order.
pub(super) enum Buffer<T> {
    /// Holds nothing: messages pass directly from sender to receiver.
    Rendezvous,
    /// Holds up to a fixed number of messages.
    Ring(Ring<T>),
    /// Holds any number of messages.
    Blocks(Blocks<T>),
}

/// Why a push failed; returns the message.
pub(super) enum Rejected<T> {
    /// There is no room.
    Full(T),
    /// There is no room until [`Buffer::add_block`].
    NeedsBlock(T),
}

impl<T> Buffer<T> {
    /// A buffer for up to `messages_max` messages.
    pub(super) fn ring(messages_max: usize) -> Self {
        if messages_max == 0 {
            return Self::Rendezvous;
        }
        let slots = (0..messages_max).map(|_| MaybeUninit::uninit()).collect();
        Self::Ring(Ring { slots, head: 0, length: 0 })
    }

    /// A buffer without a bound.
    pub(super) fn blocks() -> Self {
        Self::Blocks(Blocks {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
            taken: 0,
            filled: 0,
            length: 0,
            spare: None,
        })
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        match self {
            Self::Rendezvous => Some(0),
            Self::Ring(ring) => Some(ring.slots.len()),
            Self::Blocks(_) => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rendezvous => 0,
            Self::Ring(ring) => ring.length,
            Self::Blocks(blocks) => blocks.length,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.capacity().is_some_and(|capacity| self.len() == capacity)
    }

    #[inline]
    pub(super) fn push(&mut self, message: T) -> Result<(), Rejected<T>> {
        match self {
            Self::Rendezvous => Err(Rejected::Full(message)),
            Self::Ring(ring) => ring.push(message),
            Self::Blocks(blocks) => blocks.push(message),
        }
    }

    /// Removes and returns the first message. A block that became empty goes to `drained`, to be
    /// freed by the caller.
    #[inline]
    pub(super) fn pop(&mut self, drained: &mut Option<Box<Block<T>>>) -> Option<T> {
        match self {
            Self::Rendezvous => None,
            Self::Ring(ring) => ring.pop(),
            Self::Blocks(blocks) => blocks.pop(drained),
        }
    }

    /// Adds a block to the buffer; returns it if another sender was faster.
    pub(super) fn add_block(&mut self, block: Box<Block<T>>) -> Option<Box<Block<T>>> {
        match self {
            Self::Blocks(blocks) if blocks.spare.is_none() => {
                blocks.spare = Some(block);
                None
            }
            _ => Some(block),
        }
    }
}

/// A ring with a fixed number of slots, of which `length` are full, beginning at `head`.
pub(super) struct Ring<T> {
    slots: Box<[MaybeUninit<T>]>,
    head: usize,
    length: usize,
}

impl<T> Ring<T> {
    /// The slot at `offset` from the head.
    fn slot(&mut self, offset: usize) -> &mut MaybeUninit<T> {
        let index = self.head + offset;
        let wrapped = if index >= self.slots.len() { index - self.slots.len() } else { index };
        &mut self.slots[wrapped]
    }

    fn push(&mut self, message: T) -> Result<(), Rejected<T>> {
        let length = self.length;
        if length == self.slots.len() {
            return Err(Rejected::Full(message));
        }
        self.slot(length).write(message);
        self.length = length + 1;
        Ok(())
    }

    fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: the slots from the head on are full. The head moves past this one.
        let message = unsafe { self.slot(0).assume_init_read() };
        self.head = if self.head + 1 == self.slots.len() { 0 } else { self.head + 1 };
        Some(message)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// Slots of an unbounded channel.
pub(super) struct Block<T> {
    next: *mut Self,
    slots: [MaybeUninit<T>; BLOCK_MESSAGES],
}

impl<T> Block<T> {
    /// An empty block. Allocates, so it must not be called inside a guard.
    pub(super) fn new() -> Box<Self> {
        Box::new(Self { next: ptr::null_mut(), slots: [const { MaybeUninit::uninit() }; _] })
    }
}

/// A list of blocks. The slots from `taken` in the head to `filled` in the tail are full.
pub(super) struct Blocks<T> {
    /// Null before the first message.
    head: *mut Block<T>,
    tail: *mut Block<T>,
    taken: usize,
    filled: usize,
    length: usize,
    /// A spare empty block.
    spare: Option<Box<Block<T>>>,
}

// SAFETY: the blocks can be reached only through their owner.
unsafe impl<T: Send> Send for Blocks<T> {}

impl<T> Blocks<T> {
    fn push(&mut self, message: T) -> Result<(), Rejected<T>> {
        if (self.tail.is_null() || self.filled == BLOCK_MESSAGES) && !self.link_spare() {
            return Err(Rejected::NeedsBlock(message));
        }
        // SAFETY: the tail is a block of this list, and its slots from `filled` on are empty.
        unsafe { (*self.tail).slots[self.filled].write(message) };
        self.filled += 1;
        self.length += 1;
        Ok(())
    }

    /// Makes the spare block the tail; returns whether there was one.
    fn link_spare(&mut self) -> bool {
        let Some(block) = self.spare.take() else { return false };
        let block = Box::into_raw(block);
        if self.tail.is_null() {
            self.head = block;
        } else {
            // SAFETY: the tail is a block of this list.
            unsafe { (*self.tail).next = block };
        }
        self.tail = block;
        self.filled = 0;
        true
    }

    fn pop(&mut self, drained: &mut Option<Box<Block<T>>>) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: there is a message, so the head is a block of this list.
        let slot = unsafe { &(*self.head).slots[self.taken] };
        // SAFETY: the slots of the head are full from `taken` on. `taken` moves past this one.
        let message = unsafe { slot.assume_init_read() };
        self.taken += 1;
        if self.length == 0 && ptr::eq(self.head, self.tail) {
            (self.taken, self.filled) = (0, 0);
        } else if self.taken == BLOCK_MESSAGES {
            self.unlink_head(drained);
        }
        Some(message)
    }

    /// Removes the empty head from the list: it becomes the spare, or goes to `drained`.
    fn unlink_head(&mut self, drained: &mut Option<Box<Block<T>>>) {
        debug_assert!(!ptr::eq(self.head, self.tail), "a single block is not unlinked");
        // SAFETY: blocks come from `Box::into_raw`, and the list drops its pointer to this one
        // below.
        let mut block = unsafe { Box::from_raw(self.head) };
        self.head = block.next;
        self.taken = 0;
        block.next = ptr::null_mut();
        let kept = if self.spare.is_none() { &mut self.spare } else { drained };
        *kept = Some(block);
    }
}

impl<T> Drop for Blocks<T> {
    fn drop(&mut self) {
        let mut drained = None;
        while self.pop(&mut drained).is_some() {}
        if !self.head.is_null() {
            debug_assert!(ptr::eq(self.head, self.tail), "the list keeps its last block");
            // SAFETY: blocks come from `Box::into_raw`. Its messages have been taken.
            drop(unsafe { Box::from_raw(self.head) });
        }
    }
}
