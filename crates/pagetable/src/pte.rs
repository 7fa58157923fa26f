//! The page table entry: one word of 64 bits.
//!
//! ```text
//! 63       48 47                          5 4   2 1  0
//! |  mask    |   frame (compact: of run)   | XWR | kind |
//! ```
//!
//! Kind: 0 empty; 1 one page; 2 compact (one run of frames for a block, where `mask` says which
//! pages are mapped); 3 a table's own pointer to a node. Without the mask, an entry fits in 48
//! bits.

use crate::address::{BLOCK_PAGES, FrameNumber, Rights, Translation};

const KIND_BITS: u64 = 3;
const PAGE: u64 = 1;
const COMPACT: u64 = 2;
const NODE: u64 = 3;
const RIGHTS_SHIFT: u32 = 2;
const FRAME_SHIFT: u32 = 5;
const MASK_SHIFT: u32 = 48;

/// A page table entry, as a walk returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Pte(u64);

impl Pte {
    /// Nothing is mapped.
    pub const EMPTY: Self = Self(0);

    /// The entry of one page.
    #[must_use]
    pub const fn page(frame: FrameNumber, rights: Rights) -> Self {
        Self(PAGE | rights.bits() << RIGHTS_SHIFT | frame.get() << FRAME_SHIFT)
    }

    /// The compact entry of a block: the pages of `mask` are mapped to the run of frames that
    /// contains `frame`, page i to frame i of the run.
    #[must_use]
    pub const fn compact(frame: FrameNumber, rights: Rights, mask: u16) -> Self {
        if mask == 0 {
            return Self::EMPTY;
        }
        let run = frame.run_start().get() << FRAME_SHIFT;
        Self(COMPACT | rights.bits() << RIGHTS_SHIFT | run | (mask as u64) << MASK_SHIFT)
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the entry maps pages of a whole block.
    #[must_use]
    pub const fn is_compact(self) -> bool {
        self.0 & KIND_BITS == COMPACT
    }

    /// Whether the entry is a superpage: compact, with every page of the block.
    #[must_use]
    pub const fn is_superpage(self) -> bool {
        self.is_compact() && self.mask() == u16::MAX
    }

    /// The pages of the block that a compact entry maps; 0 for other entries.
    #[must_use]
    pub const fn mask(self) -> u16 {
        (self.0 >> MASK_SHIFT) as u16
    }

    /// The rights of the mapped pages.
    #[must_use]
    pub const fn rights(self) -> Rights {
        Rights::from_bits(self.0 >> RIGHTS_SHIFT)
    }

    /// The frame of the page at `index` of the block that the entry was found in; `None` if the
    /// entry does not map that page.
    #[must_use]
    pub const fn frame_at(self, index: usize) -> Option<FrameNumber> {
        let frame = self.payload();
        match self.0 & KIND_BITS {
            PAGE => FrameNumber::new(frame),
            COMPACT if index < BLOCK_PAGES && self.mask() >> index & 1 == 1 => {
                match FrameNumber::new(frame) {
                    Some(run) => Some(run.in_run(index)),
                    None => None,
                }
            }
            _ => None,
        }
    }

    /// The translation of an entry of one page; `None` for other entries.
    #[inline(always)]
    pub(crate) fn of_page(self) -> Option<Translation> {
        let frame = FrameNumber::new(self.payload())?;
        (self.0 & KIND_BITS == PAGE).then(|| Translation { frame, rights: self.rights() })
    }

    /// The translation of the page at `index` of the block the entry was found in; `None` if the
    /// entry does not map that page.
    #[inline]
    pub(crate) fn translation_at(self, index: usize) -> Option<Translation> {
        Some(Translation { frame: self.frame_at(index)?, rights: self.rights() })
    }

    /// The entry if it maps the page at `index` of its block, else the empty entry.
    pub(crate) const fn if_it_maps(self, index: usize) -> Self {
        if self.is_compact() && self.mask() >> index & 1 == 0 { Self::EMPTY } else { self }
    }

    /// A compact entry without the page at `index`.
    pub(crate) const fn without(self, index: usize) -> Self {
        let left = Self(self.0 & !(1 << (MASK_SHIFT + index as u32)));
        if left.mask() == 0 { Self::EMPTY } else { left }
    }

    /// The same entry with other rights.
    pub(crate) const fn with_rights(self, rights: Rights) -> Self {
        Self(self.0 & !(7 << RIGHTS_SHIFT) | rights.bits() << RIGHTS_SHIFT)
    }

    /// A table's pointer to its node `index`, with 16 bits for the table's own use.
    pub(crate) const fn node(index: u32, note: u16) -> Self {
        Self(NODE | (index as u64) << FRAME_SHIFT | (note as u64) << MASK_SHIFT)
    }

    pub(crate) const fn is_node(self) -> bool {
        self.0 & KIND_BITS == NODE
    }

    pub(crate) const fn node_index(self) -> u32 {
        self.payload() as u32
    }

    /// The 16 bits passed to [`Self::node`].
    pub(crate) const fn node_note(self) -> u16 {
        self.mask()
    }

    const fn payload(self) -> u64 {
        (self.0 & ((1 << MASK_SHIFT) - 1)) >> FRAME_SHIFT
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// The entry that [`Self::to_bits`] returned `bits` for.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The entry without its mask: the lowest 32 bits, and the next 16.
    pub(crate) const fn to_halves(self) -> (u32, u16) {
        (self.0 as u32, (self.0 >> 32) as u16)
    }

    /// The entry that [`Self::to_halves`] returned the halves of, with the mask of its block.
    pub(crate) const fn from_halves(low: u32, high: u16, mask: u16) -> Self {
        let entry = Self(low as u64 | (high as u64) << 32);
        if entry.is_compact() { Self(entry.0 | (mask as u64) << MASK_SHIFT) } else { entry }
    }
}
