//! Page tables for 64-bit address spaces behind one trait, and TLBs to evaluate them with (Paper 2,
//! §2).
//!
//! The paper states what a sparse 64-bit space needs: more hits in the TLB (superpages,
//! sub-blocks), a short search on a miss, and little memory. It names structures to compare
//! (clustered: Talluri, Hill and Khalidi, SOSP 1995; guarded: Liedtke, OSR 29(1), 1995). This crate
//! implements them:
//!
//! ```text
//! page number   |<------------- block number ------------->|< 4 >|   52 bits
//!
//! Linear         [pte][pte][pte] ...                              one array over a window
//! Radix<L>       512 ─> 512 ─> ... ─> 512 ptes                    L levels: 4 for 48 bits
//! Hashed         bucket ─> {tag next pte} ─> ...                  Clustered<1>
//! Clustered<N>   bucket ─> {tag next pte x N} ─> {tag next pte}   a compact block takes one word
//! ClusteredLine  bucket = {tag next pte x 8} ─> ...               the first node is in the bucket
//! Guarded        16 ─(guard)─> 16 ─(guard)─> pte                  no node has only one child
//! ```
//!
//! A **block** is 16 pages, aligned. A table holds it ([`Block`]) as one entry for each page, or as
//! a single *compact* entry: one run of 16 frames, one set of rights, and a mask of the mapped
//! pages. With all 16 pages it is a superpage, with fewer a partial sub-block. A table implements
//! six methods: its range, a walk, reading and writing a block, the list of blocks with mapped
//! pages, and its size. All other operations are implemented once ([`PageTable`]).
//!
//! ```
//! use kyocho_pagetable::{ClusteredLine, FrameNumber, PageNumber, PageTable, Rights};
//!
//! let mut table = ClusteredLine::new();
//! let page = PageNumber::of_address(0x7fff_dead_b000);
//! table.map(page, FrameNumber::new(42).unwrap(), Rights::READ | Rights::WRITE)?;
//! assert_eq!(table.lookup(page).unwrap().frame.get(), 42);
//! # Ok::<(), kyocho_pagetable::MapError>(())
//! ```
//!
//! **Invariant:** a failed operation has changed nothing, except [`PageTable::protect_range`],
//! which works block by block.
//! **Absent on purpose:** locks (threads that share a table must guard it), clocks, threads, system
//! calls, unsafe code.

mod address;
mod arena;
mod block;
mod buckets;
mod clustered;
mod clustered_line;
mod guarded;
mod linear;
mod lines;
mod pte;
mod radix;
mod table;

pub mod placement;
pub mod tlb;
pub mod trace;

pub use address::{
    BLOCK_PAGES, BlockNumber, FrameNumber, PAGE_BYTES, PageNumber, Rights, Translation,
};
pub use block::Block;
pub use clustered::{Clustered, Hashed};
pub use clustered_line::ClusteredLine;
pub use guarded::Guarded;
pub use linear::Linear;
pub use lines::{LINE_BYTES, LineCache, LineSet, Lines};
pub use pte::Pte;
pub use radix::Radix;
pub use table::{MapError, PageTable};
