//! The clustered table: a hash table whose nodes hold N neighbouring pages under one tag.
//!
//! ```text
//! heads: [link][link] ...          a power of two, at least as many as nodes
//!          │
//!          └─> {tag, next, pte x N} ─> {tag, next, pte} ─> ...
//!        full, 16 + 8N bytes     short, 24 bytes: the part of a compact block
//!                                that lies in one cluster
//! ```
//!
//! With one page for each node it is the plain hashed table, whose node takes 24 bytes (Talluri,
//! Hill and Khalidi, SOSP 1995).

use core::ops::RangeInclusive;

use crate::address::{BLOCK_PAGES, BlockNumber, PageNumber};
use crate::arena::Arena;
use crate::block::Block;
use crate::buckets::bucket_of;
use crate::lines::Lines;
use crate::pte::Pte;
use crate::table::{MapError, PageTable};

const HEADS: u8 = 0;
const FULL: u8 = 1;
const SHORT: u8 = 2;
/// Tag and link of a node.
const HEADER_BYTES: usize = 16;
const HEADS_MIN: usize = 16;
/// A link names a slot of one of two arenas, or none.
const SHORT_BIT: u32 = 1 << 31;
const END: u32 = u32::MAX;
const NODES_MAX: u32 = SHORT_BIT - 1;

/// The plain hashed table: a node for each page.
pub type Hashed = Clustered<1>;

/// A node with `N` entries of consecutive pages.
#[derive(Debug, Clone, Copy)]
struct Node<const N: usize> {
    /// Page number divided by N.
    tag: u64,
    next: u32,
    entries: [Pte; N],
}

/// A hash table of clusters of `N` pages: 1, 2, 4, 8 or 16.
///
/// Nodes are reused. All memory is freed when the last mapping is removed.
#[derive(Debug, Clone)]
pub struct Clustered<const N: usize> {
    heads: Vec<u32>,
    full: Arena<Node<N>>,
    short: Arena<Node<1>>,
}

impl<const N: usize> Default for Clustered<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Clustered<N> {
    const CLUSTERS_A_BLOCK: usize = BLOCK_PAGES / N;

    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        const { assert!(N.is_power_of_two() && N <= BLOCK_PAGES, "1, 2, 4, 8 or 16 pages") }
        let heads = vec![END; HEADS_MIN];
        Self { heads, full: Arena::new(NODES_MAX), short: Arena::new(NODES_MAX) }
    }

    fn tag_and_next(&self, link: u32) -> (u64, u32) {
        if link & SHORT_BIT == 0 {
            let node = self.full.get(link);
            (node.tag, node.next)
        } else {
            let node = self.short.get(link & !SHORT_BIT);
            (node.tag, node.next)
        }
    }

    /// The entry of a page if a full node has its cluster, and the next link of the chain.
    #[inline]
    fn look_at_full<L: Lines>(
        &self,
        index: u32,
        page: PageNumber,
        lines: &mut L,
    ) -> (Option<Pte>, u32) {
        let node = self.full.get(index);
        let start = index as usize * size_of::<Node<N>>();
        lines.touch(FULL, start);
        if node.tag != page.get() / N as u64 {
            return (None, node.next);
        }
        let slot = page.get() as usize % N;
        lines.touch(FULL, start + HEADER_BYTES + slot * size_of::<Pte>());
        (Some(node.entries[slot]), END)
    }

    /// The same for a short node.
    #[inline]
    fn look_at_short<L: Lines>(
        &self,
        index: u32,
        page: PageNumber,
        lines: &mut L,
    ) -> (Option<Pte>, u32) {
        let node = self.short.get(index);
        let start = index as usize * size_of::<Node<1>>();
        lines.touch(SHORT, start);
        if node.tag != page.get() / N as u64 {
            return (None, node.next);
        }
        lines.touch(SHORT, start + HEADER_BYTES);
        (Some(node.entries[0].if_it_maps(page.index_in_block())), END)
    }

    fn find(&self, tag: u64) -> Option<u32> {
        let mut link = self.heads[bucket_of(tag, self.heads.len())];
        while link != END {
            let (held, next) = self.tag_and_next(link);
            if held == tag {
                return Some(link);
            }
            link = next;
        }
        None
    }

    /// Inserts a node at the front of its bucket's chain.
    fn link(&mut self, link: u32, tag: u64) {
        let bucket = bucket_of(tag, self.heads.len());
        let next = core::mem::replace(&mut self.heads[bucket], link);
        *self.next_mut(link) = next;
    }

    fn next_mut(&mut self, link: u32) -> &mut u32 {
        if link & SHORT_BIT == 0 {
            &mut self.full.get_mut(link).next
        } else {
            &mut self.short.get_mut(link & !SHORT_BIT).next
        }
    }

    /// Removes a node from its chain and frees it.
    fn remove(&mut self, link: u32) {
        let (tag, next) = self.tag_and_next(link);
        let bucket = bucket_of(tag, self.heads.len());
        let mut before = self.heads[bucket];
        if before == link {
            self.heads[bucket] = next;
        } else {
            while self.tag_and_next(before).1 != link {
                before = self.tag_and_next(before).1;
            }
            *self.next_mut(before) = next;
        }
        if link & SHORT_BIT == 0 {
            self.full.remove(link);
        } else {
            self.short.remove(link & !SHORT_BIT);
        }
        if self.nodes() == 0 {
            self.heads = vec![END; HEADS_MIN];
        }
    }

    fn nodes(&self) -> usize {
        self.full.len() + self.short.len()
    }

    /// Doubles the heads if there are as many nodes as heads. Called before a node is inserted.
    fn grow(&mut self) {
        if self.nodes() < self.heads.len() {
            return;
        }
        let heads = vec![END; self.heads.len() * 2];
        for mut link in core::mem::replace(&mut self.heads, heads) {
            while link != END {
                let (tag, next) = self.tag_and_next(link);
                self.link(link, tag);
                link = next;
            }
        }
    }

    fn insert_full(&mut self, tag: u64, entries: [Pte; N]) {
        self.grow();
        let link = self.full.insert(Node { tag, next: END, entries });
        self.link(link, tag);
    }

    fn insert_short(&mut self, tag: u64, entry: Pte) {
        self.grow();
        let link = self.short.insert(Node { tag, next: END, entries: [entry] }) | SHORT_BIT;
        self.link(link, tag);
    }

    /// Writes one cluster. The caller has checked that there is room.
    fn write_cluster(&mut self, tag: u64, entries: [Pte; N]) {
        let found = self.find(tag);
        let Some(&first) = entries.iter().find(|entry| !entry.is_empty()) else {
            found.into_iter().for_each(|link| self.remove(link));
            return;
        };
        // With one page for each node, both kinds of node have the same size.
        let compact = N > 1 && first.is_compact();
        match found {
            Some(link) if link & SHORT_BIT == 0 && !compact => {
                self.full.get_mut(link).entries = entries;
            }
            Some(link) if link & SHORT_BIT != 0 && compact => {
                self.short.get_mut(link & !SHORT_BIT).entries = [first];
            }
            other => {
                other.into_iter().for_each(|link| self.remove(link));
                if compact {
                    self.insert_short(tag, first);
                } else {
                    self.insert_full(tag, entries);
                }
            }
        }
    }
}

impl<const N: usize> PageTable for Clustered<N> {
    fn reach(&self) -> RangeInclusive<PageNumber> {
        PageNumber::FIRST..=PageNumber::LAST
    }

    #[inline]
    fn walk<L: Lines>(&self, page: PageNumber, lines: &mut L) -> Pte {
        let tag = page.get() / N as u64;
        let bucket = bucket_of(tag, self.heads.len());
        lines.touch(HEADS, bucket * size_of::<u32>());
        let mut link = self.heads[bucket];
        while link != END {
            let (found, next) = match link & SHORT_BIT {
                0 => self.look_at_full(link, page, lines),
                _ => self.look_at_short(link & !SHORT_BIT, page, lines),
            };
            if let Some(entry) = found {
                return entry;
            }
            link = next;
        }
        Pte::EMPTY
    }

    fn read(&self, block: BlockNumber) -> Block {
        let mut contents = Block::EMPTY;
        let first_tag = block.page(0).get() / N as u64;
        for (cluster, entries) in contents.entries_mut().chunks_exact_mut(N).enumerate() {
            let Some(link) = self.find(first_tag + cluster as u64) else { continue };
            if link & SHORT_BIT == 0 {
                entries.copy_from_slice(&self.full.get(link).entries);
                continue;
            }
            let compact = self.short.get(link & !SHORT_BIT).entries[0];
            for (index, entry) in entries.iter_mut().enumerate() {
                *entry = compact.if_it_maps(cluster * N + index);
            }
        }
        contents
    }

    fn write(&mut self, block: BlockNumber, contents: &Block) -> Result<(), MapError> {
        if !contents.is_empty() {
            self.full.has_room_for(Self::CLUSTERS_A_BLOCK).map_err(|_| MapError::Full)?;
            self.short.has_room_for(Self::CLUSTERS_A_BLOCK).map_err(|_| MapError::Full)?;
        }
        let first_tag = block.page(0).get() / N as u64;
        for (cluster, entries) in contents.entries().chunks_exact(N).enumerate() {
            let entries = core::array::from_fn(|index| entries[index]);
            self.write_cluster(first_tag + cluster as u64, entries);
        }
        Ok(())
    }

    fn blocks(&self, range: RangeInclusive<BlockNumber>) -> Vec<BlockNumber> {
        let (first, last) = (range.start().get(), range.end().get());
        if last.saturating_sub(first) < self.nodes() as u64 {
            let numbers = (first..=last).filter_map(BlockNumber::new);
            return numbers.filter(|&block| !self.read(block).is_empty()).collect();
        }
        let mut found = Vec::new();
        for &head in &self.heads {
            let mut link = head;
            while link != END {
                let (tag, next) = self.tag_and_next(link);
                found.extend(BlockNumber::new(tag / Self::CLUSTERS_A_BLOCK as u64));
                link = next;
            }
        }
        found.retain(|block| range.contains(block));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>() + self.full.bytes() + self.short.bytes()
    }
}
