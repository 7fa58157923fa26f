//! Numbers of pages, blocks and frames, rights, and translations.

use core::fmt;
use core::ops::BitOr;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Pages of a block, which one TLB entry may cover.
pub const BLOCK_PAGES: usize = 16;

const PAGE_BITS: u32 = 52;
const FRAME_BITS: u32 = 43;

/// The number of a virtual page: a 64-bit address without its lowest 12 bits, so 52 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(u64);

impl PageNumber {
    /// The first page.
    pub const FIRST: Self = Self(0);
    /// The last page of a 64-bit space.
    pub const LAST: Self = Self((1 << PAGE_BITS) - 1);

    /// The page with this number; `None` beyond 52 bits.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::LAST.0 { Some(Self(number)) } else { None }
    }

    /// The page that contains an address.
    #[must_use]
    pub const fn of_address(address: u64) -> Self {
        Self(address / PAGE_BYTES)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The block that contains the page.
    #[must_use]
    pub const fn block(self) -> BlockNumber {
        BlockNumber(self.0 / BLOCK_PAGES as u64)
    }

    /// The index of the page in its block, below [`BLOCK_PAGES`].
    #[must_use]
    pub const fn index_in_block(self) -> usize {
        (self.0 % BLOCK_PAGES as u64) as usize
    }
}

impl fmt::Display for PageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {:#x}", self.0)
    }
}

/// The number of a block: 16 pages whose numbers differ in the lowest 4 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(u64);

impl BlockNumber {
    /// The block with this number; `None` beyond 48 bits.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number <= PageNumber::LAST.block().0 { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The page at `index` of the block.
    ///
    /// # Panics
    /// `index` is not below [`BLOCK_PAGES`].
    #[must_use]
    pub const fn page(self, index: usize) -> PageNumber {
        assert!(index < BLOCK_PAGES, "a block has 16 pages");
        PageNumber(self.0 * BLOCK_PAGES as u64 + index as u64)
    }
}

/// The number of a frame of physical memory, or of whatever else pages are translated to. 43 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameNumber(u64);

impl FrameNumber {
    /// The last frame that an entry can hold.
    pub const LAST: Self = Self((1 << FRAME_BITS) - 1);

    /// The frame with this number; `None` beyond 43 bits.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::LAST.0 { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The first frame of the aligned run of 16 that contains this one.
    #[must_use]
    pub const fn run_start(self) -> Self {
        Self(self.0 & !(BLOCK_PAGES as u64 - 1))
    }

    /// The index of the frame in its run, below [`BLOCK_PAGES`].
    #[must_use]
    pub const fn index_in_run(self) -> usize {
        (self.0 % BLOCK_PAGES as u64) as usize
    }

    /// The frame at `index` of the run that starts here.
    pub(crate) const fn in_run(self, index: usize) -> Self {
        Self(self.0 | index as u64)
    }
}

/// Access rights of a page: any of read, write, execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// Mapped, without any right.
    pub const NONE: Self = Self(0);
    /// Loads.
    pub const READ: Self = Self(1);
    /// Stores.
    pub const WRITE: Self = Self(2);
    /// Instruction fetches.
    pub const EXECUTE: Self = Self(4);

    /// Whether all rights in `wanted` are granted.
    #[must_use]
    pub const fn permits(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0 as u64
    }

    /// The rights in the lowest three bits of `bits`.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self((bits & 7) as u8)
    }
}

impl BitOr for Rights {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The frame of a page, and its rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// The frame.
    pub frame: FrameNumber,
    /// The rights.
    pub rights: Rights,
}
