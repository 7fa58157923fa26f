//! The radix tree: levels of nodes with 512 entries of 8 bytes, as the hardware of x86-64 walks it.
//!
//! A compact entry is repeated for each of its pages, like the contiguous hint of other
//! architectures. So a walk finds it at the slot of the page.

use core::ops::RangeInclusive;

use crate::address::{BLOCK_PAGES, BlockNumber, PageNumber};
use crate::arena::Arena;
use crate::block::Block;
use crate::lines::Lines;
use crate::pte::Pte;
use crate::table::{MapError, PageTable};

const SLOT_BITS: u32 = 9;
const SLOTS: usize = 1 << SLOT_BITS;
const ROOT: u32 = 0;

type Node = [Pte; SLOTS];

/// A tree of `LEVELS` levels: 4 cover 48 bits of address, 6 all 64.
///
/// A node is reused when its last entry has been removed. All memory is freed when the last mapping
/// is removed.
#[derive(Debug, Clone)]
pub struct Radix<const LEVELS: u32 = 4> {
    nodes: Arena<Node>,
    /// Number of used entries of each node, by index.
    used: Vec<u16>,
}

impl<const LEVELS: u32> Default for Radix<LEVELS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const LEVELS: u32> Radix<LEVELS> {
    const PAGE_BITS: u32 = SLOT_BITS * LEVELS;

    /// An empty table.
    ///
    /// # Panics
    /// `LEVELS` is not between 2 and 6.
    #[must_use]
    pub fn new() -> Self {
        const { assert!(LEVELS >= 2 && LEVELS <= 6, "2 to 6 levels") }
        let mut nodes = Arena::new(u32::MAX);
        nodes.insert([Pte::EMPTY; SLOTS]);
        Self { nodes, used: vec![0] }
    }

    /// Index of a page's entry in a node that lies `level` levels above the leaves.
    #[inline]
    fn slot(page: PageNumber, level: u32) -> usize {
        (page.get() >> (SLOT_BITS * level)) as usize % SLOTS
    }

    #[inline]
    fn reaches(page: PageNumber) -> bool {
        page.get() >> Self::PAGE_BITS == 0
    }

    /// The leaf node of a page, if it exists.
    fn leaf(&self, page: PageNumber) -> Option<u32> {
        let mut node = ROOT;
        for level in (1..LEVELS).rev() {
            let entry = self.nodes.get(node)[Self::slot(page, level)];
            if !entry.is_node() {
                return None;
            }
            node = entry.node_index();
        }
        Some(node)
    }

    /// The leaf node of a page, created if necessary. The caller has checked that there is room.
    fn make_leaf(&mut self, page: PageNumber) -> u32 {
        let mut node = ROOT;
        for level in (1..LEVELS).rev() {
            let slot = Self::slot(page, level);
            let entry = self.nodes.get(node)[slot];
            node = if entry.is_node() {
                entry.node_index()
            } else {
                let child = self.nodes.insert([Pte::EMPTY; SLOTS]);
                self.used.resize(self.used.len().max(child as usize + 1), 0);
                self.used[child as usize] = 0;
                self.nodes.get_mut(node)[slot] = Pte::node(child, 0);
                self.used[node as usize] += 1;
                child
            };
        }
        node
    }

    /// Frees the leaf node of a page, and the nodes above it that have no other child.
    fn free_leaf(&mut self, page: PageNumber) {
        for level in 1..LEVELS {
            let (parent, child) = self.link_above(page, level);
            if self.used[child as usize] > 0 {
                return;
            }
            self.nodes.get_mut(parent)[Self::slot(page, level)] = Pte::EMPTY;
            self.used[parent as usize] -= 1;
            self.nodes.remove(child);
        }
        if self.nodes.len() == 1 {
            *self = Self::new();
        }
    }

    /// The node at `level` on the path to a page, and its child on that path.
    fn link_above(&self, page: PageNumber, level: u32) -> (u32, u32) {
        let mut node = ROOT;
        for above in (level + 1..LEVELS).rev() {
            node = self.nodes.get(node)[Self::slot(page, above)].node_index();
        }
        (node, self.nodes.get(node)[Self::slot(page, level)].node_index())
    }

    /// Adds the blocks of `range` that have mapped pages below a node whose first page is `start`.
    fn collect(
        &self,
        node: u32,
        level: u32,
        start: u64,
        range: &RangeInclusive<BlockNumber>,
        into: &mut Vec<BlockNumber>,
    ) {
        let pages_a_slot = 1 << (SLOT_BITS * level);
        for (slot, entry) in self.nodes.get(node).iter().enumerate() {
            let first = start + slot as u64 * pages_a_slot;
            let last = first + (pages_a_slot - 1);
            let (Some(first_page), Some(last_page)) =
                (PageNumber::new(first), PageNumber::new(last))
            else {
                break;
            };
            if entry.is_empty() || last_page.block() < *range.start() {
                continue;
            }
            if first_page.block() > *range.end() {
                break;
            }
            if level > 0 {
                self.collect(entry.node_index(), level - 1, first, range, into);
            } else if into.last() != Some(&first_page.block()) {
                into.push(first_page.block());
            }
        }
    }
}

impl<const LEVELS: u32> PageTable for Radix<LEVELS> {
    fn reach(&self) -> RangeInclusive<PageNumber> {
        let last = PageNumber::new((1 << Self::PAGE_BITS) - 1).unwrap_or(PageNumber::LAST);
        PageNumber::FIRST..=last
    }

    #[inline]
    fn walk<L: Lines>(&self, page: PageNumber, lines: &mut L) -> Pte {
        if !Self::reaches(page) {
            return Pte::EMPTY;
        }
        let mut node = ROOT;
        for level in (0..LEVELS).rev() {
            let slot = Self::slot(page, level);
            lines.touch(0, node as usize * size_of::<Node>() + slot * size_of::<Pte>());
            let entry = self.nodes.get(node)[slot];
            if !entry.is_node() {
                return entry;
            }
            node = entry.node_index();
        }
        Pte::EMPTY
    }

    fn read(&self, block: BlockNumber) -> Block {
        let mut contents = Block::EMPTY;
        let page = block.page(0);
        if let Some(leaf) = self.leaf(page).filter(|_| Self::reaches(page)) {
            let slot = Self::slot(page, 0);
            let entries = &self.nodes.get(leaf)[slot..slot + BLOCK_PAGES];
            contents.entries_mut().copy_from_slice(entries);
        }
        contents
    }

    fn write(&mut self, block: BlockNumber, contents: &Block) -> Result<(), MapError> {
        let page = block.page(0);
        if !Self::reaches(page) {
            return Err(MapError::OutOfReach(page));
        }
        let leaf = match self.leaf(page) {
            Some(leaf) => leaf,
            None if contents.is_empty() => return Ok(()),
            None => {
                self.nodes.has_room_for(LEVELS as usize).map_err(|_| MapError::Full)?;
                self.make_leaf(page)
            }
        };
        let slot = Self::slot(page, 0);
        let entries = &mut self.nodes.get_mut(leaf)[slot..slot + BLOCK_PAGES];
        let count =
            |entries: &[Pte]| entries.iter().filter(|entry| !entry.is_empty()).count() as u16;
        let before = count(entries);
        entries.copy_from_slice(contents.entries());
        let used = &mut self.used[leaf as usize];
        *used = *used - before + count(contents.entries());
        if *used == 0 {
            self.free_leaf(page);
        }
        Ok(())
    }

    fn blocks(&self, range: RangeInclusive<BlockNumber>) -> Vec<BlockNumber> {
        let mut found = Vec::new();
        self.collect(ROOT, LEVELS - 1, 0, &range, &mut found);
        found
    }

    fn bytes(&self) -> usize {
        self.nodes.bytes() + self.used.capacity() * size_of::<u16>()
    }
}
