//! A node at work, until it is dropped: what its threads share.

use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use bytemuck::Pod;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::thread::JoinHandle;
use kyocho_sys::thread;
use kyocho_sys::two_views::TwoViews;

use crate::address::{NodeId, ThreadId};
use crate::counters::Counters;
use crate::interface::{Call, DsmError, Layout, Subject};
use crate::message::{BarrierKind, Move};
use crate::node::Node;
use crate::region::Placement;
use crate::runtime::array::SharedArray;
use crate::runtime::core::{Core, Limit};
use crate::runtime::error::Error;
use crate::transport::Transport;
use crate::watch::{Detection, Guarded, Watch};

const SERVICE_STACK_BYTES: usize = 1024 * 1024;

/// A node at work.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) me: NodeId,
    pub(super) nodes: u16,
    pub(super) detection: Detection,
    pub(super) core: Arc<Core>,
    pub(super) views: Arc<TwoViews>,
    deadline: Duration,
    service: Option<JoinHandle<()>>,
    _guarded: Guarded,
}

impl Running {
    pub(super) fn start(
        me: NodeId,
        layout: Layout,
        views: Arc<TwoViews>,
        detection: Option<Detection>,
        transport: Box<dyn Transport>,
        deadline: Duration,
        counters: Option<Counters>,
    ) -> Result<Self, Error> {
        let watch = match detection {
            Some(detection) => Watch::new(&views, detection)?,
            None => Watch::best(&views)?,
        };
        let (nodes, detection) = (layout.nodes, watch.detection());
        let node = Node::new(me, layout.clone());
        let core = Arc::new(Core::new(node, layout, watch, views.clone(), transport));
        let guarded = Guarded::new(views.program(), views.bytes(), core.clone())?;
        let serving = core.clone();
        let service =
            thread::start("dsm-service", SERVICE_STACK_BYTES, move || serving.serve(counters))?;
        let service = Some(service);
        Ok(Self { me, nodes, detection, core, views, deadline, service, _guarded: guarded })
    }

    /// Addresses of all shared memory here.
    pub(super) fn memory(&self) -> Range<usize> {
        self.views.program()..self.views.program() + self.views.bytes()
    }

    /// Gives out memory behind the `used` bytes that are given out, to be managed as `placement` says; crosses a barrier.
    pub(super) fn allocate<T: Pod>(
        &self,
        thread: ThreadId,
        used: &mut usize,
        length: usize,
        placement: Placement,
    ) -> Result<SharedArray<T>, Error> {
        // Refused on all nodes alike, and before anything is given out: node 0 alone places pages, and the others would wait for it.
        if let Placement::On(node) = placement
            && node.0 >= self.nodes
        {
            return Err(DsmError::OutOfRange(Subject::Node(node)).into());
        }
        let left = self.views.bytes() - *used;
        let full = |bytes| Error::Full { bytes, left };
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(|| full(usize::MAX))?;
        let whole = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or_else(|| full(bytes))?;
        if whole > left {
            return Err(full(bytes));
        }
        let array = SharedArray::new(*used, length);
        *used += whole;
        if self.me == NodeId(0) {
            let pages = array.pages(0..length);
            for (index, &page) in pages.iter().enumerate() {
                let manager = placement.manager(index, pages.len(), self.nodes);
                self.core.call(thread, Call::Move(Move::Page(page, manager)), Limit::None)??;
            }
        }
        self.core.call(thread, Call::Barrier(BarrierKind::Ordinary), Limit::None)??;
        Ok(array)
    }

    /// Crosses a last barrier and says goodbye.
    pub(super) fn leave(&self, thread: ThreadId) -> Result<(), Error> {
        self.core.cross_last(thread)??;
        self.core.leave(self.deadline);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.core.end();
        if let Some(service) = self.service.take() {
            // It ends by a panic only where an assertion of the protocol broke, which it has told.
            let _ended = service.join();
        }
    }
}
