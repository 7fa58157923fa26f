//! Software distributed shared memory with implicit-binding entry consistency (Paper 3, SMS).
//!
//! [`Dsm`] is what programs use. `kyocho dsm run -n N PROGRAM` starts N nodes of one program. The
//! parts:
//!
//! ```text
//!   program ──> runtime ── Call, written words ──> node ── Send ──> wire ──> transport ══ network
//!      │           ^  <── Show, Hide, Return ──── (pure)                  (Tcp, Shm, Local)
//!      └─ fault ───┘ watch: which pages may be used, which were written
//! ```
//!
//! The protocol alone, as the simulator runs it:
//!
//! ```text
//!   program ── Call ──> Node ── Action::Send ──> Link ══ network ══> Link ─ Event::Message ─> Node
//!           <─ Return ─
//!
//!   Node is pure: step(event) -> actions. Link is pure: sequence numbers, acks, credit, deadline.
//! ```
//!
//! A [`Node`] is one virtual process of SMS, with its copies of shared pages. It manages some locks
//! and pages; node 0 also manages the barriers. A node uses no clock, no socket and no page table:
//! input comes as an [`Event`], output goes as [`Action`]s. So a simulator runs whole clusters from
//! a seed (`tests/cluster`). `docs/dsm-model.md` defines what a program may rely on.
//!
//! **Regions.** Shared pages have numbers below 2^52. They lie in runs ([`Regions`]), and a program
//! creates more of these at run time.
//!
//! **Updates.** A write is recorded as its address, its value and the Lamport time of its interval.
//! An interval lies between two synchronisations of a node. A node that acquires a lock receives
//! the writes made under it since the last barrier, by one of two schemes ([`Scheme`]). At a
//! barrier all writes go to the managers of their pages. The latest write of each word wins, and
//! copies that other nodes have written to are dropped.
//!
//! **Invariant:** the *master* of a page is its contents at the last barrier, kept by its manager.
//! It does not change between barriers. A copy is the master, plus the updates that its node
//! received with locks, plus the writes of its node.
//! **Invariant:** an epoch is the time between two barriers. A message of an earlier epoch changes
//! nothing. A message of the next epoch waits until that epoch begins.

mod address;
mod barrier;
pub mod counters;
mod directory;
mod encoding;
mod interface;
pub mod launch;
mod layout;
mod link;
mod lock;
mod log;
mod memory;
mod message;
mod node;
mod page;
mod region;
mod runtime;
pub mod transport;
mod update;
pub mod watch;
pub mod wire;
mod words;

pub use address::{Address, ConditionId, LockId, NodeId, PageId, ThreadId};
pub use interface::{
    Action, Call, DsmError, Event, Outcome, ProtocolViolation, Subject, WaitPolicy, Waiters,
};
pub use layout::{Layout, Scheme};
pub use link::{Frame, Link, LinkSettings, Lost};
pub use lock::Mode;
pub use memory::Absent;
pub use message::{BarrierKind, Message, Move};
pub use node::Node;
pub use page::Contents;
pub use region::mismatch::{RegionDifference, RegionFailure, RegionMismatch};
pub use region::{PAGES_MAX, Placement, PlacementError, REGIONS_MAX, RegionPlan, Regions};
pub use runtime::{
    CheckedNode, Dsm, Error, NodeThread, Region, RegionSettings, Settings, SharedArray, SharedCell,
    SharedNode, Statistics, ThreadSlot,
};
pub use update::Update;
