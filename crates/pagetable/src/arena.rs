//! Nodes of one size in one array, named by their place in it.

/// Why nothing can be added: every place that a link can name is taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// An array that takes nodes in and gives their places out again. It grows by an eighth, so that little of it is spare, and
/// gives its memory back when the last node goes.
#[derive(Debug, Clone)]
pub(crate) struct Arena<T> {
    nodes: Vec<T>,
    free: Vec<u32>,
    nodes_max: u32,
}

impl<T> Arena<T> {
    /// An empty one for at most `nodes_max` nodes.
    pub(crate) const fn new(nodes_max: u32) -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), nodes_max }
    }

    /// Whether `count` nodes more can be named.
    pub(crate) fn has_room_for(&self, count: usize) -> Result<(), Full> {
        let unused = self.nodes_max as usize - self.nodes.len();
        if count <= self.free.len() + unused { Ok(()) } else { Err(Full) }
    }

    /// Takes a node in and names it.
    ///
    /// The caller has asked [`Self::has_room_for`] first.
    pub(crate) fn insert(&mut self, node: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            return index;
        }
        assert!(self.has_room_for(1).is_ok(), "no name left for a node");
        if self.nodes.len() == self.nodes.capacity() {
            self.nodes.reserve_exact((self.nodes.len() / 8).max(4));
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// Gives a node's place out again; the node stays as it is until then.
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

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Memory, spare places and all.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arena, Full};

    #[test]
    fn the_last_name_is_the_last() {
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
    fn an_empty_one_takes_no_memory() {
        let mut arena = Arena::new(100);
        let names: Vec<_> = (0..50).map(|node| arena.insert(node)).collect();
        assert!(arena.bytes() >= 50 * size_of::<i32>());
        names.into_iter().for_each(|name| arena.remove(name));
        assert_eq!((arena.len(), arena.bytes()), (0, 0));
    }
}
