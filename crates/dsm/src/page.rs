//! A page of shared memory: its size and its contents.

use std::sync::Arc;

use kyocho_sys::memory::PAGE_BYTES;

/// Words per page.
pub const WORDS_A_PAGE: usize = PAGE_BYTES / size_of::<u32>();

/// The words of a page.
pub type Contents = Arc<[u32]>;
