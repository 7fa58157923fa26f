//! What nodes on one machine share: a word or two for each node, a ring for each pair and direction, and the bells.

use core::ops::Range;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kyocho_sys::error::Errno;
use kyocho_sys::event::Event;
use kyocho_sys::prim::atomic::unmodelled::{AtomicU32, Ordering};
use kyocho_sys::sealed::{SealedMemory, Use, Writers};

use crate::address::NodeId;

/// Most nodes that share a memory: each pair has two rings in it.
pub const SHM_NODES_MAX: u16 = 64;

/// Bytes of a ring: a power of two, larger than a page with its message.
pub(super) const RING_BYTES: u32 = 1 << 16;
/// What stands before a ring, and for a node: lines of their own.
const LINE_BYTES: usize = 64;
const NODE_BYTES: usize = LINE_BYTES;
const HEAD_BYTES: usize = 2 * LINE_BYTES;

/// The memory that the nodes of a cluster on one machine share, and their bells.
#[derive(Debug)]
pub struct Shared {
    memory: SealedMemory,
    /// By rank.
    bells: Vec<Event>,
}

fn bytes_for(nodes: usize) -> usize {
    nodes * NODE_BYTES + nodes * nodes * (HEAD_BYTES + RING_BYTES as usize)
}

impl Shared {
    /// For so many nodes. It costs memory as it is used.
    ///
    /// # Errors
    /// `INVAL`: none, or more than [`SHM_NODES_MAX`]. No memory, no descriptors.
    pub fn new(nodes: u16) -> Result<Self, Errno> {
        if !(1..=SHM_NODES_MAX).contains(&nodes) {
            return Err(Errno::INVAL);
        }
        let bells = (0..nodes).map(|_| Event::new()).collect::<Result<_, _>>()?;
        let memory = SealedMemory::new(bytes_for(usize::from(nodes)), Writers::All)?;
        Ok(Self { memory, bells })
    }

    /// What was made elsewhere: the memory, and by rank the bells.
    ///
    /// # Errors
    /// `INVAL`: it is not for as many nodes as there are bells. `PERM`: its length is not fixed.
    pub fn receive(memory: OwnedFd, bells: Vec<OwnedFd>) -> Result<Self, Errno> {
        if !(1..=usize::from(SHM_NODES_MAX)).contains(&bells.len()) {
            return Err(Errno::INVAL);
        }
        let bytes = bytes_for(bells.len());
        let memory = SealedMemory::receive(memory, bytes, Use::ReadWrite)?;
        if memory.bytes() != bytes {
            return Err(Errno::INVAL);
        }
        Ok(Self { memory, bells: bells.into_iter().map(Event::from).collect() })
    }

    /// The same once more, for another node in this process.
    ///
    /// # Errors
    /// No memory, no descriptors.
    pub fn try_clone(&self) -> Result<Self, Errno> {
        let again = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned();
        let descriptors: io::Result<Vec<_>> = self.descriptors().map(again).collect();
        let mut descriptors = descriptors.map_err(|_| Errno::MFILE)?.into_iter();
        let memory = descriptors.next().ok_or(Errno::INVAL)?;
        Self::receive(memory, descriptors.collect())
    }

    /// The descriptors for [`Self::receive`]: the memory, then the bells.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.memory.as_fd()].into_iter().chain(self.bells.iter().map(AsFd::as_fd))
    }

    /// How many nodes it is for.
    pub(super) fn nodes(&self) -> usize {
        self.bells.len()
    }

    /// What a node's bell is waited for by.
    pub(super) fn bell(&self, node: NodeId) -> &Event {
        &self.bells[usize::from(node.0)]
    }

    /// Threads of a node that look at its rings.
    pub(super) fn looking(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES)
    }

    /// Whether its bell was rung, and nobody has looked since.
    pub(super) fn rung(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES + 4)
    }

    /// The core that the node's program was on when it last waited, and 1; 0: not known.
    pub(super) fn core(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES + 8)
    }

    /// Who waits for what a node hears, and does not look for it: threads that call, and sleep or are about to; and one where others wait for
    /// what the node manages.
    pub(super) fn waiting(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES + 12)
    }

    /// Whether a thread of a node looks at its rings, or will once more.
    pub(super) fn looks(&self, node: NodeId) -> bool {
        self.looking(node).load(Ordering::SeqCst) > 0
    }

    /// Sees to it that somebody at a node looks at its rings, behind a fence.
    pub(super) fn call(&self, node: NodeId) {
        if !self.looks(node) && self.rung(node).swap(1, Ordering::SeqCst) == 0 {
            // Its counter is full, or it has gone: either way there is nobody to be woken.
            let _rung = self.bells[usize::from(node.0)].notify();
        }
    }

    pub(super) fn ring(&self, from: NodeId, to: NodeId) -> Ring<'_> {
        let nodes = self.bells.len();
        let number = usize::from(from.0) * nodes + usize::from(to.0);
        let at = nodes * NODE_BYTES + number * (HEAD_BYTES + RING_BYTES as usize);
        Ring { memory: &self.memory, at }
    }
}

/// Bytes from one node to another, in a circle.
pub(super) struct Ring<'a> {
    memory: &'a SealedMemory,
    at: usize,
}

/// A peer has written what cannot be.
#[derive(Debug)]
pub(super) struct Broken;

impl From<Broken> for io::Error {
    fn from(_: Broken) -> Self {
        io::ErrorKind::InvalidData.into()
    }
}

impl Ring<'_> {
    /// Bytes put in, ever; modulo 2^32.
    pub(super) fn tail(&self) -> &AtomicU32 {
        self.memory.word(self.at)
    }

    /// Bytes taken out.
    pub(super) fn head(&self) -> &AtomicU32 {
        self.memory.word(self.at + LINE_BYTES)
    }

    /// Whether the writer waits for room.
    pub(super) fn stuck(&self) -> &AtomicU32 {
        self.memory.word(self.at + LINE_BYTES + 4)
    }

    /// How many bytes are in it.
    pub(super) fn filled(&self) -> Result<u32, Broken> {
        let filled =
            self.tail().load(Ordering::Acquire).wrapping_sub(self.head().load(Ordering::Acquire));
        if filled <= RING_BYTES { Ok(filled) } else { Err(Broken) }
    }

    /// Calls `act` for the one or two parts of the circle where `count` bytes from `position` on lie: place in the memory, and which of the bytes.
    fn parts(&self, position: u32, count: usize, mut act: impl FnMut(usize, Range<usize>)) {
        let start = (position % RING_BYTES) as usize;
        let first = count.min(RING_BYTES as usize - start);
        act(self.at + HEAD_BYTES + start, 0..first);
        act(self.at + HEAD_BYTES, first..count);
    }

    /// Puts in as much as there is room for.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<usize, Broken> {
        let count = bytes.len().min((RING_BYTES - self.filled()?) as usize);
        let tail = self.tail().load(Ordering::Relaxed);
        self.parts(tail, count, |place, part| self.memory.write(place, &bytes[part]));
        self.tail().store(tail.wrapping_add(count as u32), Ordering::Release);
        Ok(count)
    }

    /// Takes out as much as there is, and room for it.
    pub(super) fn take(&self, into: &mut [u8]) -> Result<usize, Broken> {
        let count = into.len().min(self.filled()? as usize);
        let head = self.head().load(Ordering::Relaxed);
        self.parts(head, count, |place, part| self.memory.read(place, &mut into[part]));
        self.head().store(head.wrapping_add(count as u32), Ordering::Release);
        Ok(count)
    }
}
