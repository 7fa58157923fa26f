//! The guarded table: a 16-ary tree whose edges skip levels without a branch (Liedtke, OSR 29(1),
//! 1995).
//!
//! A page number is 13 digits of 4 bits. An edge carries the digits on the path to its end, its
//! *guard*; a node exists only where paths branch. A compact entry ends one digit earlier, at the
//! block, so a superpage is a leaf nearer to the root.
//!
//! Deviation: the paper's guard holds the skipped digits alone; here it holds all digits from the
//! root. It takes the same 16 bytes, and splitting or joining an edge changes no guard.
//!
//! **Invariant:** every node except the root has at least two edges.

use core::ops::RangeInclusive;

use crate::address::{BLOCK_PAGES, BlockNumber, PageNumber};
use crate::arena::Arena;
use crate::block::Block;
use crate::lines::Lines;
use crate::pte::Pte;
use crate::table::{MapError, PageTable};

const EDGES: usize = 16;
const DIGIT_BITS: u32 = 4;
const PAGE_DIGITS: u32 = 13;
const BLOCK_DIGITS: u32 = 12;
const ROOT: u32 = 0;

/// Digits, left-aligned in a word.
type Key = u64;

#[derive(Debug, Clone, Copy)]
struct Edge {
    guard: Key,
    /// An entry, or a node with the number of digits on the path to it.
    end: Pte,
}

impl Edge {
    const NONE: Self = Self { guard: 0, end: Pte::EMPTY };

    /// Number of significant digits of the guard.
    #[inline]
    fn digits(&self) -> u32 {
        if self.end.is_node() {
            u32::from(self.end.node_note())
        } else if self.end.is_compact() {
            BLOCK_DIGITS
        } else {
            PAGE_DIGITS
        }
    }

    #[inline]
    fn leads_to(&self, key: Key) -> bool {
        !self.end.is_empty() && (self.guard ^ key) >> (u64::BITS - DIGIT_BITS * self.digits()) == 0
    }
}

#[inline]
fn key_of(page: PageNumber) -> Key {
    page.get() << (u64::BITS - DIGIT_BITS * PAGE_DIGITS)
}

#[inline]
fn digit(key: Key, level: u32) -> usize {
    (key >> (u64::BITS - DIGIT_BITS * (level + 1))) as usize % EDGES
}

/// A tree of 16-ary nodes with guards. Nodes are reused; all memory is freed when only the root is
/// left.
#[derive(Debug, Clone)]
pub struct Guarded {
    nodes: Arena<[Edge; EDGES]>,
}

impl Default for Guarded {
    fn default() -> Self {
        Self::new()
    }
}

impl Guarded {
    /// An empty table: the root.
    #[must_use]
    pub fn new() -> Self {
        let mut nodes = Arena::new(u32::MAX);
        nodes.insert([Edge::NONE; EDGES]);
        Self { nodes }
    }

    /// The last edge on the path to `key`: the node that it starts from, and the number of digits
    /// up to there. All edges before it match `key`.
    fn last_edge(&self, key: Key) -> (u32, u32) {
        let (mut node, mut depth) = (ROOT, 0);
        loop {
            let edge = &self.nodes.get(node)[digit(key, depth)];
            if !edge.end.is_node() || !edge.leads_to(key) {
                return (node, depth);
            }
            (node, depth) = (edge.end.node_index(), edge.digits());
        }
    }

    /// Inserts an entry, or replaces the one with the same digits. The caller has checked that
    /// there is room for a node.
    fn insert(&mut self, new: Edge) {
        let (node, depth) = self.last_edge(new.guard);
        let place = digit(new.guard, depth);
        let old = self.nodes.get(node)[place];
        if old.end.is_empty() || old.leads_to(new.guard) {
            self.nodes.get_mut(node)[place] = new;
            return;
        }
        let parting = (old.guard ^ new.guard).leading_zeros() / DIGIT_BITS;
        let mut edges = [Edge::NONE; EDGES];
        edges[digit(old.guard, parting)] = old;
        edges[digit(new.guard, parting)] = new;
        let fork = self.nodes.insert(edges);
        self.nodes.get_mut(node)[place] =
            Edge { guard: new.guard, end: Pte::node(fork, parting as u16) };
    }

    /// Removes the entry of `key`, and the node above it if that has a single edge left.
    fn remove(&mut self, key: Key) {
        let (node, depth) = self.last_edge(key);
        self.nodes.get_mut(node)[digit(key, depth)] = Edge::NONE;
        let mut left = self.nodes.get(node).iter().filter(|edge| !edge.end.is_empty());
        let (Some(&only), None) = (left.next(), left.next()) else { return };
        if node != ROOT {
            let (parent, above) = self.parent(key, node);
            self.nodes.get_mut(parent)[digit(key, above)] = only;
            self.nodes.remove(node);
        }
        if self.nodes.len() == 1 && node != ROOT {
            let root = *self.nodes.get(ROOT);
            *self = Self::new();
            *self.nodes.get_mut(ROOT) = root;
        }
    }

    /// The parent of `child` on the path to `key`, and the number of digits up to there.
    fn parent(&self, key: Key, child: u32) -> (u32, u32) {
        let (mut node, mut depth) = (ROOT, 0);
        loop {
            let edge = &self.nodes.get(node)[digit(key, depth)];
            if edge.end.node_index() == child {
                return (node, depth);
            }
            (node, depth) = (edge.end.node_index(), edge.digits());
        }
    }

    /// Adds the blocks of `range` that have mapped pages below a node.
    fn collect(&self, node: u32, range: &RangeInclusive<BlockNumber>, into: &mut Vec<BlockNumber>) {
        for edge in self.nodes.get(node).iter().filter(|edge| !edge.end.is_empty()) {
            let unknown = u64::BITS - DIGIT_BITS * edge.digits();
            let first = edge.guard >> unknown << unknown;
            let block = |key: Key| PageNumber::of_address(key).block();
            if block(first | ((1 << unknown) - 1)) < *range.start() || block(first) > *range.end() {
                continue;
            }
            if edge.end.is_node() {
                self.collect(edge.end.node_index(), range, into);
            } else if into.last() != Some(&block(first)) {
                into.push(block(first));
            }
        }
    }
}

impl PageTable for Guarded {
    fn reach(&self) -> RangeInclusive<PageNumber> {
        PageNumber::FIRST..=PageNumber::LAST
    }

    #[inline]
    fn walk<L: Lines>(&self, page: PageNumber, lines: &mut L) -> Pte {
        let key = key_of(page);
        let (mut node, mut depth) = (ROOT, 0);
        loop {
            let place = digit(key, depth);
            lines.touch(0, (node as usize * EDGES + place) * size_of::<Edge>());
            let edge = &self.nodes.get(node)[place];
            if !edge.leads_to(key) {
                return Pte::EMPTY;
            }
            if !edge.end.is_node() {
                return edge.end.if_it_maps(page.index_in_block());
            }
            (node, depth) = (edge.end.node_index(), edge.digits());
        }
    }

    fn read(&self, block: BlockNumber) -> Block {
        let (node, depth) = self.last_edge(key_of(block.page(0)));
        let edge = self.nodes.get(node)[digit(key_of(block.page(0)), depth)];
        if edge.end.is_compact() && edge.leads_to(key_of(block.page(0))) {
            return Block::of_compact(edge.end);
        }
        let mut contents = Block::EMPTY;
        for (index, entry) in contents.entries_mut().iter_mut().enumerate() {
            *entry = self.walk(block.page(index), &mut ());
        }
        contents
    }

    fn write(&mut self, block: BlockNumber, contents: &Block) -> Result<(), MapError> {
        let old = self.read(block);
        if !contents.is_empty() {
            self.nodes.has_room_for(BLOCK_PAGES).map_err(|_| MapError::Full)?;
        }
        let (was, will_be) = (old.as_compact(), contents.as_compact());
        if was.is_some() && was != will_be {
            self.remove(key_of(block.page(0)));
        }
        for index in 0..BLOCK_PAGES {
            let key = key_of(block.page(index));
            let new = contents.entry(index);
            if was.is_none() && !old.entry(index).is_empty() && (new.is_empty() || new.is_compact())
            {
                self.remove(key);
            } else if !new.is_empty() && !new.is_compact() {
                self.insert(Edge { guard: key, end: new });
            }
        }
        if let Some(end) = will_be {
            self.insert(Edge { guard: key_of(block.page(0)), end });
        }
        Ok(())
    }

    fn blocks(&self, range: RangeInclusive<BlockNumber>) -> Vec<BlockNumber> {
        let mut found = Vec::new();
        self.collect(ROOT, &range, &mut found);
        found
    }

    fn bytes(&self) -> usize {
        self.nodes.bytes()
    }
}
