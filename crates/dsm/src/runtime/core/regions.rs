//! Regions that are created while the node runs.

use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use super::Core;
use crate::address::PageId;
use crate::region::Regions;

/// Bytes of one message, and bytes that wait for one peer, at most, for this number of shared
/// pages.
pub(in crate::runtime) fn bounds(pages: usize) -> (usize, usize) {
    let message_bytes_max = (8 * PAGE_BYTES).saturating_mul(pages).saturating_add(1 << 20);
    (message_bytes_max, message_bytes_max.saturating_mul(2))
}

impl Core {
    /// Reads the regions.
    pub(in crate::runtime) fn with_regions<T>(&self, look: impl FnOnce(&Regions) -> T) -> T {
        look(&self.lock_to_end().node.layout().regions)
    }

    /// Watches the pages of a region that the node is about to create, all hidden. From now on
    /// messages may be as large as all regions need.
    pub(in crate::runtime) fn watch(
        &self,
        first: PageId,
        views: &Arc<TwoViews>,
    ) -> Result<(), Errno> {
        let mut state = self.lock()?;
        state.watch.add(first, views)?;
        let pages = state.node.layout().regions.pages() + views.bytes() / PAGE_BYTES;
        drop(state);
        self.transport.bound(bounds(pages));
        Ok(())
    }

    /// Stops watching a region that was not created.
    pub(in crate::runtime) fn unwatch(&self, first: PageId) {
        let mut state = self.lock_to_end();
        state.watch.remove(first);
        let pages = state.node.layout().regions.pages();
        drop(state);
        self.transport.bound(bounds(pages));
    }
}
