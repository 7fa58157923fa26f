//! The ways to detect writes that this host permits.

use std::sync::Arc;

use kyocho_dsm::watch::{Detection, Watch};
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::skip::skip;
use kyocho_sys::two_views::TwoViews;

/// The permitted ways; the others are reported as skipped in this test.
pub(crate) fn permitted(test: &str) -> Vec<Detection> {
    let views = Arc::new(TwoViews::new(PAGE_BYTES, None).unwrap());
    let permitted = Detection::ALL.into_iter().filter(|way| match Watch::new(&views, *way) {
        Ok(_) => true,
        Err(why) => {
            skip(&format!("{test} ({way})"), &why.to_string());
            false
        }
    });
    permitted.collect()
}
