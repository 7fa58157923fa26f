//! Nodes of one size in one array, named by their index.

/// Nothing can be added: every index that a link can name is used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// An array whose slots are reused. It grows by an eighth, so that few slots are spare, and frees
/// its memory when the last node is removed.
#[derive(Debug, Clone)]
pub(crate) struct Arena<T> {
    nodes: Vec<T>,
    free: Vec<u32>,
    nodes_max: u32,
}

impl<T> Arena<T> {
    /// An empty arena for at most `nodes_max` nodes.
    pub(crate) const fn new(nodes_max: u32) -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), nodes_max }
    }

    /// Checks that `count` more nodes can be added.
    pub(crate) fn has_room_for(&self, count: usize) -> Result<(), Full> {
        let unused = self.nodes_max as usize - self.nodes.len();
        if count <= self.free.len() + unused { Ok(()) } else { Err(Full) }
    }

    /// Adds a node and returns its index.
    ///
    /// The caller has called [`Self::has_room_for`] first.
    pub(crate) fn insert(&mut self, node: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            return index;
        }
        assert!(self.has_room_for(1).is_ok(), "no index left for a node");
        if self.nodes.len() == self.nodes.capacity() {
            self.nodes.reserve_exact((self.nodes.len() / 8).max(4));
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// Frees a node's slot. The node keeps its contents until the slot is reused.
    pub(crate) fn remove(&mut self, index: u32) {
        self.free.push(index);
        if self.free.len() == self.nodes.len() {
            *self = Self::new(self.nodes_max);
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.nodes[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.nodes[index as usize]
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Memory in bytes, including spare slots.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arena, Full};

    #[test]
    fn arena_is_full_after_its_last_index() {
        let mut arena = Arena::new(2);
        let first = arena.insert('a');
        arena.insert('b');
        assert_eq!(arena.has_room_for(1), Err(Full));
        arena.remove(first);
        assert_eq!(arena.has_room_for(1), Ok(()));
        assert_eq!(arena.has_room_for(2), Err(Full));
        assert_eq!(arena.insert('c'), first);
    }

    #[test]
    fn empty_arena_takes_no_memory() {
        let mut arena = Arena::new(100);
        let names: Vec<_> = (0..50).map(|node| arena.insert(node)).collect();
        assert!(arena.bytes() >= 50 * size_of::<i32>());
        names.into_iter().for_each(|name| arena.remove(name));
        assert_eq!((arena.len(), arena.bytes()), (0, 0));
    }
}
