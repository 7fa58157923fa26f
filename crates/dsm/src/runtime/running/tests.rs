//! The bound on shared memory of all regions together.

use core::time::Duration;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use super::Running;
use crate::address::{NodeId, ThreadId};
use crate::interface::DsmError;
use crate::layout::Layout;
use crate::layout::Scheme;
use crate::page::WORDS_A_PAGE;
use crate::region::mismatch::{RegionDifference, RegionFailure};
use crate::runtime::core::OtherProcesses;
use crate::runtime::error::Error;
use crate::runtime::mappings::RegionSettings;
use crate::transport::Local;
use crate::watch::Detection;

/// A cluster of one node with one page of shared memory, which may have `pages_max`.
fn alone(pages_max: usize) -> Running {
    let (nodes, words_a_page, scheme) = (1, WORDS_A_PAGE as u32, Scheme::LogAtManager);
    let layout = Layout { nodes, regions: vec![NodeId(0)].into(), words_a_page, locks: 1, scheme };
    let views = Arc::new(TwoViews::new(PAGE_BYTES, None).expect("there is memory for a page"));
    let memory_bytes_max = pages_max * PAGE_BYTES;
    let outside = OtherProcesses { counters: None, launcher: None, memory_bytes_max };
    let (transport, deadline) = (Box::new(Local::mesh(1).remove(0)), Duration::from_secs(60));
    let detection = Some(Detection::Protect);
    Running::start(NodeId(0), layout, views, detection, transport, deadline, outside)
        .expect("the host permits it")
}

#[test]
fn all_regions_together_take_no_more_memory_than_a_node_may() {
    let running = alone(4);
    let make = |pages| running.region(ThreadId::FIRST, RegionSettings::of(pages * PAGE_BYTES));
    let refused = |made| match made {
        Err(Error::Protocol(DsmError::RegionMismatch(why))) => why.difference,
        other => panic!("{other:?}"),
    };
    let too_much =
        RegionDifference::Failed(RegionFailure::Host(Errno::NOMEM.number().unsigned_abs()));
    assert_eq!(refused(make(4)), too_much, "there is one page already");
    assert!(make(2).is_ok());
    assert_eq!(refused(make(2)), too_much);
    assert!(make(1).is_ok(), "what was refused takes none");
    assert_eq!(refused(make(1)), too_much);
}
