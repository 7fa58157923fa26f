//! Software distributed shared memory with implicit-binding entry consistency (Paper 3, SMS).
//!
//! [`Dsm`] is what programs use; `kyocho dsm run -n N PROGRAM` starts N nodes of one. Below it:
//!
//! ```text
//!   program ──> runtime ── Call, written words ──> node (pure) ── Send ──> wire ──> transport ══ network
//!      │           ^  <── Show, Hide, Return ───────                                (Tcp, Shm, Local)
//!      └─ fault ───┘ watch: which pages may be used, which were written
//! ```
//!
//! The protocol by itself, as the simulator runs it:
//!
//! ```text
//!   program ── Call ──>  Node  ── Action::Send ──>  Link  ══ network ══>  Link ── Event::Message ──>  Node
//!           <─ Return ──  (pure: step(event) -> actions)   (pure: sequence numbers, acks, credit, deadline)
//! ```
//!
//! A [`Node`] is one virtual process of SMS with its copies of shared pages, and the manager of some locks and pages; node
//! 0 is also the manager of barriers. It never looks at a clock, a socket or a page table: what happens comes as an
//! [`Event`], what is to be done goes out as [`Action`]s, so that whole clusters run in a simulator from a seed
//! (`tests/cluster`). `docs/dsm-model.md` says what a program may rely on.
//!
//! **Regions.** Shared pages are numbered in a space of 2^52 of them and lie in runs ([`Regions`]), of which a program makes more while it runs.
//!
//! **Updates.** A write is known by its address, its value and the Lamport time of its interval (what lies between two
//! synchronisations of a node). Acquiring a lock brings the writes made under it since the last barrier, by one of two
//! ways ([`Scheme`]); at a barrier all writes go to the managers of their pages, where the latest of each word wins, and
//! copies that others wrote to are dropped.
//!
//! **Invariant:** the *master* of a page, at its manager, is its state at the last barrier; between barriers it does not
//! change. A copy is the master, what its node received with locks, and what its node wrote.
//! **Invariant:** messages of an epoch (the time between two barriers) that is over change nothing; those of one that
//! has not begun wait.

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
pub use interface::{Action, Breach, Call, DsmError, Event, Outcome, Patience, Subject, Who};
pub use layout::{Layout, Scheme};
pub use link::{Frame, Link, LinkSettings, Lost};
pub use lock::Mode;
pub use memory::Absent;
pub use message::{BarrierKind, Message, Move};
pub use node::Node;
pub use page::Contents;
pub use region::discord::{Discord, Hindrance, Instead};
pub use region::{Misplaced, PAGES_MAX, Placement, REGIONS_MAX, RegionPlan, Regions};
pub use runtime::{
    Aside, Checked, Dsm, Error, Hand, Region, RegionSettings, Seat, Settings, SharedArray,
    SharedCell, Statistics,
};
pub use update::Update;
