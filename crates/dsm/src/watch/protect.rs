//! Rights by `mprotect`; a forbidden access is a `SIGSEGV`.
//!
//! **Limit:** neighbouring pages with different rights are separate mappings, of which the host
//! permits 65,530 by default.

use core::ops::Range;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::{Protection, TwoViews};

use super::{Access, Detector, Entry, OnWritten, Reclaimed};

#[derive(Debug)]
pub(super) struct Protect {
    views: Arc<TwoViews>,
}

impl Protect {
    pub(super) fn new(views: Arc<TwoViews>) -> Self {
        Self { views }
    }
}

impl Detector for Protect {
    fn beside(&self, views: Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno> {
        Ok(Box::new(Self { views }))
    }

    /// Rights by `mprotect` survive reclaim, and setting them once more does no harm. So the page
    /// table is not read.
    fn entry(&self, page: usize, _access: Access) -> Result<Entry, Errno> {
        Ok(Entry::Absent(Reclaimed { page, written: false }))
    }

    fn readmit(&mut self, reclaimed: &Reclaimed, access: Access) -> Result<(), Errno> {
        self.admit(reclaimed.page..reclaimed.page + 1, access, access)
    }

    fn admit(&mut self, pages: Range<usize>, _from: Access, to: Access) -> Result<(), Errno> {
        let rights = match to {
            Access::Hidden => Protection::None,
            Access::Watched => Protection::Read,
            Access::Written | Access::Open => Protection::ReadWrite,
        };
        self.views.protect(pages.start * PAGE_BYTES, pages.len() * PAGE_BYTES, rights)
    }

    fn traps(&self) -> bool {
        true
    }

    fn begin_traps(&mut self, _watched: &[Range<usize>]) -> Result<(), Errno> {
        Ok(())
    }

    fn end_traps(&mut self, _watched: &[Range<usize>]) -> Result<bool, Errno> {
        Ok(false)
    }

    fn written(
        &mut self,
        _pages: Range<usize>,
        _on_written: OnWritten,
    ) -> Result<Vec<usize>, Errno> {
        Ok(Vec::new())
    }
}
