//! What the nodes of one machine share: a few words per node, a ring for each pair and direction,
//! and the bells.

use core::ops::Range;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kyocho_sys::error::Errno;
use kyocho_sys::event::Event;
use kyocho_sys::prim::atomic::unmodelled::{AtomicU32, Ordering};
use kyocho_sys::sealed::{SealedMemory, Use, Writers};

use crate::address::NodeId;

/// Nodes that share a memory, at most: each pair has two rings in it.
pub const SHM_NODES_MAX: u16 = 64;

/// Bytes of a ring: a power of two, larger than a message with a page.
pub(super) const RING_BYTES: u32 = 1 << 16;
/// Bytes of a cache line. The words of a node lie in one; tail and head of a ring in one each.
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
    /// Creates memory for so many nodes. It costs memory only as it is used.
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

    /// Maps memory that another process has created; the bells are in the order of ranks.
    ///
    /// # Errors
    /// `INVAL`: the memory is not for as many nodes as there are bells. `PERM`: its length is not
    /// fixed.
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

    /// Another handle, for another node in this process.
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

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.bells.len()
    }

    /// The descriptor on which a node's threads sleep.
    pub(super) fn bell(&self, node: NodeId) -> &Event {
        &self.bells[usize::from(node.0)]
    }

    /// Number of threads of a node that poll its rings.
    pub(super) fn looking(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES)
    }

    /// Whether its bell was rung, and no thread has polled since.
    pub(super) fn rung(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES + 4)
    }

    /// The core of the node's program when it last waited, plus 1; 0 if unknown.
    pub(super) fn core(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES + 8)
    }

    /// Number of reasons to deliver messages to a node at once. Each calling thread that sleeps, or
    /// is about to, is one. Requests that wait for a lock of the node are another.
    pub(super) fn waiting(&self, node: NodeId) -> &AtomicU32 {
        self.memory.word(usize::from(node.0) * NODE_BYTES + 12)
    }

    /// Whether a thread of a node polls its rings, or will poll once more.
    pub(super) fn looks(&self, node: NodeId) -> bool {
        self.looking(node).load(Ordering::SeqCst) > 0
    }

    /// Makes a thread of a node poll its rings. Call it after a fence.
    pub(super) fn call(&self, node: NodeId) {
        if !self.looks(node) && self.rung(node).swap(1, Ordering::SeqCst) == 0 {
            // Its counter is full, or it has ended: no thread needs to be woken.
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

/// A ring buffer of bytes from one node to another.
pub(super) struct Ring<'a> {
    memory: &'a SealedMemory,
    at: usize,
}

/// A peer has written impossible values.
#[derive(Debug)]
pub(super) struct Corrupt;

impl From<Corrupt> for io::Error {
    fn from(_: Corrupt) -> Self {
        io::ErrorKind::InvalidData.into()
    }
}

impl Ring<'_> {
    /// Total of bytes put in, modulo 2^32.
    pub(super) fn tail(&self) -> &AtomicU32 {
        self.memory.word(self.at)
    }

    /// Total of bytes taken out.
    pub(super) fn head(&self) -> &AtomicU32 {
        self.memory.word(self.at + LINE_BYTES)
    }

    /// Whether the writer waits for room.
    pub(super) fn stuck(&self) -> &AtomicU32 {
        self.memory.word(self.at + LINE_BYTES + 4)
    }

    /// Number of bytes in it.
    pub(super) fn filled(&self) -> Result<u32, Corrupt> {
        let filled =
            self.tail().load(Ordering::Acquire).wrapping_sub(self.head().load(Ordering::Acquire));
        if filled <= RING_BYTES { Ok(filled) } else { Err(Corrupt) }
    }

    /// Calls `act` for the one or two parts of the ring that hold `count` bytes from `position` on,
    /// with the offset in the memory and the range of these bytes.
    fn parts(&self, position: u32, count: usize, mut act: impl FnMut(usize, Range<usize>)) {
        let start = (position % RING_BYTES) as usize;
        let first = count.min(RING_BYTES as usize - start);
        act(self.at + HEAD_BYTES + start, 0..first);
        act(self.at + HEAD_BYTES, first..count);
    }

    /// Puts in as many bytes as there is room for.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<usize, Corrupt> {
        let count = bytes.len().min((RING_BYTES - self.filled()?) as usize);
        let tail = self.tail().load(Ordering::Relaxed);
        self.parts(tail, count, |place, part| self.memory.write(place, &bytes[part]));
        self.tail().store(tail.wrapping_add(count as u32), Ordering::Release);
        Ok(count)
    }

    /// Takes out as many bytes as there are and fit.
    pub(super) fn take(&self, into: &mut [u8]) -> Result<usize, Corrupt> {
        let count = into.len().min(self.filled()? as usize);
        let head = self.head().load(Ordering::Relaxed);
        self.parts(head, count, |place, part| self.memory.read(place, &mut into[part]));
        self.head().store(head.wrapping_add(count as u32), Ordering::Release);
        Ok(count)
    }
}
