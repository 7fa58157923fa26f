//! Programs that share memory across nodes.

mod array;
mod cell;
mod checked;
mod core;
mod error;
mod host_memory;
mod lock_calls;
mod mappings;
mod meeting;
mod node_threads;
mod running;
mod statistics;

use ::core::cell::{Cell, RefCell};
use ::core::marker::PhantomData;
use ::core::ops::Range;
use ::core::time::Duration;
use std::io::Write;
use std::sync::Arc;

use bytemuck::Pod;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::signal::AlternateStack;
use kyocho_sys::two_views::TwoViews;

use self::core::{Limit, OtherProcesses, bounds};
use self::running::Running;
use crate::address::{ConditionId, LockId, NodeId, PageId, ThreadId};
use crate::counters::Counters;
use crate::interface::{Call, Outcome, WaitPolicy, Waiters};
use crate::launch::{Environment, Launcher, LauncherEvent, Route};
use crate::layout::{Layout, Scheme};
use crate::lock::Mode;
use crate::message::{BarrierKind, Move};
use crate::page::WORDS_A_PAGE;
use crate::region::Placement;
use crate::transport::{JoinError, Local, Shm, Tcp, TcpSettings, Traffic, Transport};
use crate::watch::Detection;
use lock_calls::lock_calls;
use node_threads::handler_stack;

pub use array::SharedArray;
pub use cell::SharedCell;
pub use checked::CheckedNode;
pub use error::Error;
pub use mappings::{Region, RegionSettings};
pub use node_threads::{NodeThread, SharedNode, ThreadSlot};
pub use statistics::Statistics;

/// Address of shared memory in all nodes of a program, so that its addresses mean the same
/// everywhere. It lies between the areas that the kernel uses from both ends.
const BASE: usize = 0x0b00_0000_0000;

/// What a program asks for when it joins; the same on all nodes.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Bytes of shared memory; rounded up to pages.
    pub memory_bytes: usize,
    /// Number of locks.
    pub locks: u32,
}

impl Default for Settings {
    /// 64 MiB, 4,096 locks.
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, locks: 4096 }
    }
}

/// This node of a program with shared memory.
///
/// Every node runs the same program, with one thread that uses shared memory. `docs/dsm-model.md`
/// tells which writes of other nodes a node sees: what was written under a lock when it acquires
/// that lock, and everything after a barrier.
///
/// Calls that may change shared memory take `&mut self`, and access borrows `&self`. So the
/// compiler rejects references to elements that are held across a barrier or a lock.
///
/// ```
/// use kyocho_dsm::{BarrierKind, Dsm, LockId, Mode, Placement, Settings};
///
/// let mut dsm = Dsm::join(Settings::default())?;
/// let counter = dsm.allocate::<u64>(1, Placement::Cyclic)?;
/// dsm.acquire(LockId(0), Mode::Exclusive)?;
/// let cell = &dsm.cells(&counter)[0];
/// cell.set(cell.get() + 1);
/// dsm.release(LockId(0))?;
/// dsm.barrier(BarrierKind::Ordinary)?;
/// assert_eq!(dsm.cells(&counter)[0].get(), u64::from(dsm.nodes()));
/// dsm.leave()?;
/// # Ok::<(), kyocho_dsm::Error>(())
/// ```
#[derive(Debug)]
pub struct Dsm {
    running: Arc<Running>,
    _stack: Option<AlternateStack>,
    // Page faults in its memory are handled on one thread.
    _thread: PhantomData<*mut ()>,
}

impl Dsm {
    /// Joins the cluster that `kyocho dsm run` has started. A program that was started otherwise is
    /// a cluster of one. Blocks until all nodes have joined.
    ///
    /// # Errors
    /// [`Error::Join`], [`Error::Environment`], [`Error::Size`], [`Error::Host`].
    pub fn join(settings: Settings) -> Result<Self, Error> {
        let Environment { route, detection, scheme, deadline, run, launcher } =
            Environment::read(|name| std::env::var(name).ok())?;
        let launcher = RefCell::new(launcher);
        let memory_bytes_max = host_memory::share(route.nodes_here());
        let pages = pages_of(settings, memory_bytes_max)?;
        let (message_bytes_max, queue_bytes_max) = bounds(pages);
        let limits = TcpSettings { deadline, message_bytes_max, queue_bytes_max };
        let agreed = [pages as u64, u64::from(settings.locks), scheme as u64, 0];
        let (transport, me, nodes) = connect(route, agreed, limits, &|| to_join(&launcher))?;
        let layout = layout(nodes, pages, settings.locks, scheme);
        let views = Arc::new(TwoViews::new(pages * PAGE_BYTES, Some(BASE))?);
        let counters = run.and_then(|run| match Counters::new(&run, me, nodes) {
            Ok(counters) => Some(counters),
            Err(why) => {
                last_words(&format!(
                    "kyocho-dsm: node {}: counters cannot be written: {why}",
                    me.0
                ));
                None
            }
        });
        let launcher = launcher.into_inner();
        let outside = OtherProcesses { counters, launcher, memory_bytes_max };
        Self::of(Running::start(me, layout, views, detection, transport, deadline, outside)?)
    }

    /// One node of several in this process, each on a thread of its own. For tests and experiments.
    /// The memory of each node has another address.
    ///
    /// # Errors
    /// [`Error::Size`], [`Error::Host`].
    pub fn inside(
        me: NodeId,
        layout: Layout,
        detection: Option<Detection>,
        transport: Box<dyn Transport>,
    ) -> Result<Self, Error> {
        let views = Arc::new(TwoViews::new(layout.regions.pages() * PAGE_BYTES, None)?);
        let deadline = Duration::from_secs(10);
        let memory_bytes_max = host_memory::share(usize::from(layout.nodes));
        let outside = OtherProcesses { counters: None, launcher: None, memory_bytes_max };
        Self::of(Running::start(me, layout, views, detection, transport, deadline, outside)?)
    }

    fn of(running: Running) -> Result<Self, Error> {
        let running = Arc::new(running);
        Ok(Self { running, _stack: handler_stack()?, _thread: PhantomData })
    }

    /// Converts the node for an interpreter, which never touches shared memory itself: every access
    /// is a call.
    #[must_use]
    pub fn checked(self) -> CheckedNode {
        CheckedNode::new(self.running)
    }

    /// This node's rank.
    #[must_use]
    pub fn rank(&self) -> u16 {
        self.running.me.0
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.running.nodes
    }

    /// How writes are detected on this node.
    #[must_use]
    pub fn detection(&self) -> Detection {
        self.running.detection
    }

    /// The region that the program joined with.
    #[must_use]
    pub fn first_region(&self) -> Region {
        self.running.first()
    }

    /// The region that was created with this number, counted from 0.
    #[must_use]
    pub fn numbered(&self, number: u16) -> Option<Region> {
        self.running.mappings.region(number)
    }

    /// The addresses of a region in this process. Those of the first region are the same on all
    /// nodes that joined by [`Self::join`].
    ///
    /// # Panics
    /// The region was created by another node, and not by this one.
    #[must_use]
    pub fn addresses(&self, region: Region) -> Range<usize> {
        self.running.addresses(region)
    }

    /// The pages of some addresses of one region in this process.
    #[must_use]
    pub fn pages_at(&self, addresses: Range<usize>) -> Option<Vec<PageId>> {
        self.running.mappings.pages_at(addresses)
    }

    /// Allocates an array of zeros, on pages of its own. All nodes allocate the same arrays, in the
    /// same order. Crosses a barrier.
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::Protocol`]: there is no such node; those of [`Self::barrier`].
    pub fn allocate<T: Pod>(
        &mut self,
        length: usize,
        placement: Placement,
    ) -> Result<SharedArray<T>, Error> {
        self.running.allocate(ThreadId::FIRST, length, placement)
    }

    /// Creates another region of shared memory, anywhere in a space of 2^64 bytes. All nodes create
    /// the same regions, in the same order. Crosses a barrier. The space between regions costs
    /// nothing. A region stays until the program ends.
    ///
    /// ```
    /// use kyocho_dsm::{Dsm, RegionSettings, Settings};
    ///
    /// let mut dsm = Dsm::join(Settings::default())?;
    /// let far = RegionSettings { address: Some(1 << 60), ..RegionSettings::of(1 << 20) };
    /// let region = dsm.region(far)?;
    /// let numbers = dsm.array::<f64>(region, 1000)?;
    /// dsm.cells(&numbers)[999].set(0.5);
    /// # dsm.leave()?;
    /// # Ok::<(), kyocho_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unaligned`]. [`Error::Protocol`] with
    /// [`DsmError::Misplaced`](crate::DsmError::Misplaced) or
    /// [`DsmError::OutOfRange`](crate::DsmError::OutOfRange): all nodes get the same error, and
    /// nothing has happened. [`Error::Protocol`] with
    /// [`DsmError::RegionMismatch`](crate::DsmError::RegionMismatch): a node creates another region
    /// or none, or its host refuses one, for lack of memory or because [`RegionSettings::here`] is
    /// in use. Then no node has the region, and the barrier is crossed. Those of [`Self::barrier`].
    pub fn region(&mut self, settings: RegionSettings) -> Result<Region, Error> {
        self.running.region(ThreadId::FIRST, settings)
    }

    /// Allocates an array of zeros in a region, on pages of its own, with the managers of the
    /// region. All nodes allocate the same arrays, in the same order. Waits for no other node.
    ///
    /// # Errors
    /// [`Error::Full`].
    ///
    /// # Panics
    /// The region was created by another node, and not by this one.
    pub fn array<T: Pod>(&self, region: Region, length: usize) -> Result<SharedArray<T>, Error> {
        self.running.array(region, length)
    }

    /// The elements of an array. An access may wait for its page. An access cannot return an error:
    /// if the page is lost with its node, the program ends with exit code 75 and a line that names
    /// both.
    ///
    /// # Panics
    /// This node has not allocated the array.
    #[must_use]
    #[expect(unsafe_code, reason = "makes cells of this node's memory")]
    pub fn cells<'a, T: Pod>(&'a self, array: &SharedArray<T>) -> &'a [Cell<T>] {
        let address = self.running.mappings.address(array);
        // SAFETY: allocated there (asserted), mapped as long as `self` lives, used by this thread
        // alone (`Dsm` is not `Send`, and is borrowed while slots exist), and its faults are
        // handled.
        unsafe { array.cells(address) }
    }

    /// Lets `count` threads of this program share its node, in place of this thread, until all
    /// slots are dropped. They are kernel threads or microprocesses, and take one slot each.
    ///
    /// ```
    /// use kyocho_dsm::{BarrierKind, Dsm, LockId, Mode, Placement, Settings};
    ///
    /// let mut dsm = Dsm::join(Settings::default())?;
    /// let counter = dsm.allocate::<u64>(1, Placement::Cyclic)?;
    /// std::thread::scope(|scope| {
    ///     for slot in dsm.thread_slots(4) {
    ///         scope.spawn(move || {
    ///             let mut member = slot.take()?;
    ///             member.acquire(LockId(0), Mode::Exclusive)?;
    ///             let cell = &member.cells(&counter)[0];
    ///             cell.set(cell.get() + 1);
    ///             member.release(LockId(0))?;
    ///             member.barrier(BarrierKind::Ordinary)
    ///         });
    ///     }
    /// });
    /// assert_eq!(dsm.cells(&counter)[0].get(), 4 * u64::from(dsm.nodes()));
    /// # dsm.leave()?;
    /// # Ok::<(), kyocho_dsm::Error>(())
    /// ```
    ///
    /// # Panics
    /// More than 32,767 threads.
    #[must_use]
    pub fn thread_slots(&mut self, count: u16) -> Vec<ThreadSlot<'_>> {
        assert!(count < 1 << 15, "a node has at most 32,767 threads");
        ThreadSlot::all(&self.running, count)
    }

    /// The same for threads that outlive the caller's scope, such as those of C.
    /// [`SharedNode::back`] returns the node to its own thread.
    ///
    /// # Panics
    /// More than 32,767 threads.
    #[must_use]
    pub fn share(self, count: u16) -> (SharedNode, Vec<ThreadSlot<'static>>) {
        assert!(count < 1 << 15, "a node has at most 32,767 threads");
        let slots = ThreadSlot::all(&self.running, count);
        (SharedNode(self), slots)
    }

    fn has_thread_slots(&self) -> bool {
        self.running.core.has_thread_slots()
    }

    lock_calls!();

    /// Waits for all nodes. Afterwards every node sees everything that was written before.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead.
    pub fn barrier(&mut self, kind: BarrierKind) -> Result<(), Error> {
        self.done(Call::Barrier(kind))
    }

    /// Moves a lock to another manager at the next barrier.
    ///
    /// # Errors
    /// [`Error::Protocol`]: the lock or the node is out of range, a node is dead, or the lock's
    /// manager has left.
    pub fn move_lock(&mut self, lock: LockId, to: NodeId) -> Result<(), Error> {
        self.done(Call::Move(Move::Lock(lock, to)))
    }

    /// Moves a page to another manager at the next barrier.
    ///
    /// # Errors
    /// [`Error::Protocol`]: the page or the node is out of range, a node is dead, or the page's
    /// manager has left.
    pub fn move_page(&mut self, page: PageId, to: NodeId) -> Result<(), Error> {
        self.done(Call::Move(Move::Page(page, to)))
    }

    /// Fetches a page. From now until the next barrier, accesses to it do not wait.
    ///
    /// # Errors
    /// [`Error::Protocol`]: a node is dead, or the page's manager has left. In these cases an
    /// access to the page would end the program. Also if there is no such page.
    pub fn fetch(&mut self, page: PageId) -> Result<(), Error> {
        self.running.core.fetch(ThreadId::FIRST, page)??;
        Ok(())
    }

    /// Discards what this node has written since its last acquire, release, publish, wait or
    /// barrier: no other node learns of it. For programs whose nodes all run the same
    /// initialisation, of which one is to count.
    ///
    /// # Errors
    /// [`Error::Host`].
    pub fn forget_writes(&mut self) -> Result<(), Error> {
        Ok(self.running.core.forget()?)
    }

    /// The counters of this node.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.running.core.statistics()
    }

    /// Messages and bytes exchanged with one peer: its part of [`Statistics::traffic`]. Zero for
    /// this node itself and for a node that does not exist.
    #[must_use]
    pub fn traffic_with(&self, peer: NodeId) -> Traffic {
        self.running.core.traffic_with(peer)
    }

    /// Crosses a last barrier, and leaves when all nodes have crossed it. A node that is dropped
    /// without leaving counts as dead. If other nodes cross more barriers, a call that needs this
    /// node returns an error which says that it has left.
    ///
    /// # Errors
    /// As for [`Self::barrier`].
    pub fn leave(self) -> Result<(), Error> {
        self.running.leave(ThreadId::FIRST)
    }

    fn call(&mut self, call: Call, limit: Limit<'_>) -> Result<Outcome, Error> {
        Ok(self.running.core.call(ThreadId::FIRST, call, limit)??)
    }
}

/// Fails if joining has become pointless.
fn to_join(launcher: &RefCell<Option<Launcher>>) -> Result<(), JoinError> {
    match launcher.borrow_mut().as_mut().and_then(Launcher::first_event) {
        None => Ok(()),
        Some(LauncherEvent::Ended(node)) => Err(JoinError::Ended(node, None)),
        Some(LauncherEvent::Gone) => Err(JoinError::Launcher),
    }
}

/// Connects to the other nodes, which must have the same `agreed` values. Returns this node's rank
/// and the number of nodes.
fn connect(
    route: Route,
    agreed: [u64; 4],
    limits: TcpSettings,
    check: &dyn Fn() -> Result<(), JoinError>,
) -> Result<(Box<dyn Transport>, NodeId, u16), JoinError> {
    match route {
        Route::Alone => Ok((Box::new(Local::mesh(1).remove(0)), NodeId(0), 1)),
        Route::Tcp(mut cluster, listener) => {
            cluster.layout = agreed;
            let tcp = match listener {
                Some(listener) => Tcp::join_while(&cluster, limits, &listener, check)?,
                None => Tcp::join_while(&cluster, limits, &cluster.listen()?, check)?,
            };
            Ok((Box::new(tcp), cluster.me, cluster.addresses.len() as u16))
        }
        Route::Shm(mut cluster, listener, shared) => {
            cluster.layout = agreed;
            let shm = match listener {
                Some(listener) => Shm::join_while(&cluster, limits, &listener, shared, check)?,
                None => Shm::join_while(&cluster, limits, &cluster.listen()?, shared, check)?,
            };
            Ok((Box::new(shm), cluster.me, cluster.addresses.len() as u16))
        }
        #[cfg(feature = "mpi")]
        Route::Mpi => {
            let mpi = crate::transport::Mpi::join(agreed, crate::launch::JOIN_WITHIN, limits)?;
            let (me, nodes) = (mpi.rank(), mpi.nodes());
            Ok((Box::new(mpi), me, nodes))
        }
    }
}

/// The layout of `pages` pages that no node has placed: pages and locks are assigned round robin.
fn layout(nodes: u16, pages: usize, locks: u32, scheme: Scheme) -> Layout {
    let managers = (0..pages).map(|page| Placement::Cyclic.manager(page, pages, nodes));
    let words_a_page = WORDS_A_PAGE as u32;
    let regions = managers.collect::<Vec<_>>().into();
    Layout { nodes, regions, words_a_page, locks, scheme }
}

fn pages_of(settings: Settings, bytes_max: usize) -> Result<usize, Error> {
    let bytes = settings.memory_bytes;
    if bytes == 0 || bytes > bytes_max {
        return Err(Error::Size { bytes, bytes_max });
    }
    Ok(bytes.div_ceil(PAGE_BYTES))
}

/// Writes a message to standard error that no call can return, such as why the program ends.
fn last_words(text: &str) {
    // One write, because other nodes may write at the same time. If standard error is closed, the
    // message is lost.
    let _written = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
