//! What the threads of a running node share, until it is dropped.

use core::ops::Range;
use core::time::Duration;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::thread::JoinHandle;
use kyocho_sys::thread;
use kyocho_sys::two_views::TwoViews;

use crate::address::{NodeId, PageId, ThreadId};
use crate::interface::{Call, DsmError, Subject};
use crate::layout::Layout;
use crate::message::{BarrierKind, Move};
use crate::node::Node;
use crate::region::mismatch::RegionFailure;
use crate::region::{Placement, RegionPlan};
use crate::runtime::array::SharedArray;
use crate::runtime::core::{Core, Limit, OtherProcesses, RegionFaults};
use crate::runtime::error::Error;
use crate::runtime::mappings::{Mapping, Mappings, Region, RegionSettings};
use crate::runtime::meeting::{CallResult, JointRequest, RegionRequest, Request};
use crate::transport::Transport;
use crate::watch::{Detection, Guarded, Watch};

const SERVICE_STACK_BYTES: usize = 1024 * 1024;
const HEARTBEAT_STACK_BYTES: usize = 256 * 1024;

/// A running node.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) me: NodeId,
    pub(super) nodes: u16,
    pub(super) detection: Detection,
    pub(super) core: Arc<Core>,
    pub(super) mappings: Mappings,
    /// Held while memory is allocated or a region is created.
    giving: Mutex<()>,
    deadline: Duration,
    /// Shared memory of all regions, at most.
    memory_bytes_max: usize,
    service: Option<JoinHandle<()>>,
    heartbeats: Option<Heartbeats>,
}

/// The thread that sends heartbeats, if the transport needs them.
#[derive(Debug)]
struct Heartbeats {
    thread: JoinHandle<()>,
    /// Dropping it ends the thread.
    running: Sender<()>,
}

impl Heartbeats {
    fn start(core: &Arc<Core>) -> Result<Option<Self>, Errno> {
        if !core.needs_heartbeats() {
            return Ok(None);
        }
        let (running, stopped) = mpsc::channel();
        let core = core.clone();
        let send = move || core.send_heartbeats(&stopped);
        let thread = thread::start("dsm-heartbeat", HEARTBEAT_STACK_BYTES, send)?;
        Ok(Some(Self { thread, running }))
    }

    fn stop(self) {
        drop(self.running);
        // It ends by a panic only if an assertion failed, which has been printed.
        let _ended = self.thread.join();
    }
}

impl Running {
    pub(super) fn start(
        me: NodeId,
        layout: Layout,
        views: Arc<TwoViews>,
        detection: Option<Detection>,
        transport: Box<dyn Transport>,
        deadline: Duration,
        outside: OtherProcesses,
    ) -> Result<Self, Error> {
        let watch = match detection {
            Some(detection) => Watch::new(&views, detection)?,
            None => Watch::best(&views)?,
        };
        let (nodes, detection) = (layout.nodes, watch.detection());
        let memory_bytes_max = outside.memory_bytes_max;
        let core = Arc::new(Core::new(Node::new(me, layout), watch, transport));
        let mappings = Mappings::new(guarded(&core, PageId(0), views)?);
        let serving = core.clone();
        let service =
            thread::start("dsm-service", SERVICE_STACK_BYTES, move || serving.serve(me, outside))?;
        let mut running = Self {
            me,
            nodes,
            detection,
            core,
            mappings,
            giving: Mutex::new(()),
            deadline,
            memory_bytes_max,
            service: Some(service),
            heartbeats: None,
        };
        running.heartbeats = Heartbeats::start(&running.core)?;
        Ok(running)
    }

    fn give(&self) -> MutexGuard<'_, ()> {
        self.giving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The region that the program joined with.
    pub(super) fn first(&self) -> Region {
        self.mappings.region(0).expect("a program has joined with memory")
    }

    /// The addresses of a region in this process.
    pub(super) fn addresses(&self, region: Region) -> Range<usize> {
        self.mappings.of(region).addresses()
    }

    /// Allocates memory of the first region, with managers according to `placement`. Crosses a
    /// barrier.
    pub(super) fn allocate<T: Pod>(
        &self,
        thread: ThreadId,
        length: usize,
        placement: Placement,
    ) -> Result<SharedArray<T>, Error> {
        // All nodes check the placement, and before anything is allocated. Only node 0 places the
        // pages; if it alone refused, the others would wait for it.
        self.check(placement)?;
        let _giving = self.give();
        let array = self.mappings.array(self.first(), length)?;
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

    /// Allocates memory of a region, with the managers of the region.
    pub(super) fn array<T: Pod>(
        &self,
        region: Region,
        length: usize,
    ) -> Result<SharedArray<T>, Error> {
        let _giving = self.give();
        self.mappings.array(region, length)
    }

    fn check(&self, placement: Placement) -> Result<(), DsmError> {
        match placement {
            Placement::On(node) if node.0 >= self.nodes => {
                Err(DsmError::OutOfRange(Subject::Node(node)))
            }
            _ => Ok(()),
        }
    }

    /// Creates a region, by the only thread of this node or by one that represents all.
    pub(super) fn region(
        &self,
        thread: ThreadId,
        settings: RegionSettings,
    ) -> Result<Region, Error> {
        let _giving = self.give();
        let wanted = self.want(&settings)?;
        self.found(thread, wanted)??;
        Ok(self.mappings.last())
    }

    /// Creates a region together with this node's other threads.
    pub(super) fn region_together(
        &self,
        thread: ThreadId,
        settings: RegionSettings,
    ) -> Result<Region, Error> {
        let wanted = self.want(&settings)?;
        self.meet(thread, Request::Region(wanted))??;
        // The next region is created only when all threads have arrived again.
        Ok(self.mappings.last())
    }

    /// Meets this node's other threads; one of them crosses a barrier with all nodes.
    pub(super) fn meet(&self, thread: ThreadId, wish: Request) -> CallResult {
        self.core.meet(wish, |agreed| match agreed {
            JointRequest::Barrier(kind) => self.core.call(thread, Call::Barrier(kind), Limit::None),
            JointRequest::Region(wanted) => {
                let _giving = self.give();
                self.found(thread, wanted)
            }
            JointRequest::Different(wanted) => {
                let call = Call::Region(wanted.plan, Some(RegionFailure::Threads));
                self.core.call(thread, call, Limit::None)
            }
        })
    }

    /// Checks what all nodes refuse alike, before any message is sent.
    fn want(&self, settings: &RegionSettings) -> Result<RegionRequest, Error> {
        self.check(settings.placement)?;
        let plan = self.core.with_regions(|regions| {
            let plan = settings.plan(regions)?;
            regions.check(&plan).map_err(|why| DsmError::Misplaced(plan, why))?;
            Ok::<_, Error>(plan)
        })?;
        Ok(RegionRequest { plan, here: settings.here })
    }

    /// Creates a region here, if the host permits it, and arrives at the barrier. Removes the
    /// region if it fails on some node.
    fn found(&self, thread: ThreadId, RegionRequest { plan, here }: RegionRequest) -> CallResult {
        let mapping = self.map(&plan, here);
        let failure =
            mapping.as_ref().err().map(|errno| RegionFailure::Host(errno.number().unsigned_abs()));
        let came = self.core.call(thread, Call::Region(plan, failure), Limit::None);
        match (mapping, came) {
            (Ok(mapping), Ok(Ok(_))) => drop(self.mappings.push(mapping)),
            (Ok(_gone), _) => self.core.unwatch(plan.first),
            (Err(_), _) => {}
        }
        came
    }

    /// Maps a region into this process, and watches it.
    fn map(&self, plan: &RegionPlan, here: Option<usize>) -> Result<Mapping, Errno> {
        let used = self.core.with_regions(|regions| regions.pages() * PAGE_BYTES);
        let pages = usize::try_from(plan.pages).map_err(|_| Errno::NOMEM)?;
        let bytes = pages.checked_mul(PAGE_BYTES).ok_or(Errno::NOMEM)?;
        if bytes > self.memory_bytes_max.saturating_sub(used) {
            return Err(Errno::NOMEM);
        }
        let views = Arc::new(TwoViews::new(bytes, here)?);
        self.core.watch(plan.first, &views)?;
        guarded(&self.core, plan.first, views).inspect_err(|_| self.core.unwatch(plan.first))
    }

    /// Crosses a last barrier and says goodbye.
    pub(super) fn leave(&self, thread: ThreadId) -> Result<(), Error> {
        self.core.cross_last(thread)??;
        self.core.leave(self.deadline);
        Ok(())
    }
}

/// A mapped region whose faults are handled.
fn guarded(core: &Arc<Core>, first: PageId, views: Arc<TwoViews>) -> Result<Mapping, Errno> {
    let answerer = Arc::new(RegionFaults { core: core.clone(), first });
    let guarded = Guarded::new(views.program(), views.bytes(), answerer)?;
    Ok(Mapping::new(first, views, guarded))
}

impl Drop for Running {
    fn drop(&mut self) {
        self.core.end();
        let threads = (self.service.take(), self.heartbeats.take());
        if self.core.is_copy() {
            // The threads belong to the original.
            return core::mem::forget(threads);
        }
        if let Some(service) = threads.0 {
            // It ends by a panic only if an assertion of the protocol failed, which it has
            // reported.
            let _ended = service.join();
        }
        if let Some(heartbeats) = threads.1 {
            heartbeats.stop();
        }
    }
}

#[cfg(test)]
mod tests;
