//! Learning which pages a program writes to: rights of pages in its view, and who tells of a write.
//!
//! ```text
//!               show                  write              take_written
//!   Hidden ────────────> Watched ────────────> Written ─────────────────> Watched
//!      ^  access: Absent    │                                                │
//!      └──── hide ──────────┴── open ──> Open (unwatched: the page is owned) ┘
//! ```
//!
//! | detection | the arrow `write` | needs |
//! |---|---|---|
//! | [`Detection::Scan`] | the kernel lets it pass and notes it; `take_written` asks (`WP_ASYNC`, `PAGEMAP_SCAN`) | Linux 6.7 |
//! | [`Detection::Userfault`] | `SIGBUS` on the thread, answered there (userfaultfd) | Linux 5.19, and permission |
//! | [`Detection::Protect`] | `SIGSEGV`, answered by `mprotect` | nothing |
//!
//! Paper 3 has the last one, and found 49 % of its time in it (§6). Twins are not made here: a node's copy of a page is what it was
//! when it was last watched.

mod diff;
mod faults;
mod protect;
mod userfault;

use core::fmt;
use core::ops::Range;
use core::str::FromStr;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use crate::address::PageId;
use protect::Protect;
use userfault::Faults;

pub use diff::{Pages, WORDS_A_PAGE};
pub use faults::{Answer, Faulting, Guarded};

/// A way to learn of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// The kernel notes written pages and is asked for them; no write is a trap.
    Scan,
    /// A write to a watched page is a `SIGBUS` of the program's thread.
    Userfault,
    /// It is a `SIGSEGV`; everywhere to be had.
    Protect,
}

impl Detection {
    /// All of them, the one to be preferred first.
    pub const ALL: [Self; 3] = [Self::Scan, Self::Userfault, Self::Protect];
}

impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scan => "scan",
            Self::Userfault => "userfault",
            Self::Protect => "protect",
        })
    }
}

impl FromStr for Detection {
    type Err = UnknownDetection;

    fn from_str(name: &str) -> Result<Self, UnknownDetection> {
        let named = Self::ALL.into_iter().find(|detection| detection.to_string() == name);
        named.ok_or_else(|| UnknownDetection(name.to_owned()))
    }
}

/// A name that is no [`Detection`]'s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDetection(pub String);

impl fmt::Display for UnknownDetection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no detection of writes is called {:?}: use scan, userfault or protect", self.0)
    }
}

impl core::error::Error for UnknownDetection {}

/// What the program may do with pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Hidden,
    Watched,
    Written,
    Open,
}

/// What the three have to do. Pages are numbered from the begin of the memory.
trait Detector: fmt::Debug + Send {
    /// Gives pages that all have the rights `from` others: none, all but unnoticed writing, or all.
    fn admit(&mut self, pages: Range<usize>, from: Access, to: Access) -> Result<(), Errno>;

    /// Those of `watched` that were written to, where a write was no fault; they are watched anew.
    fn take_written(&mut self, watched: Range<usize>) -> Result<Vec<usize>, Errno>;
}

/// The watched memory of one node.
#[derive(Debug)]
pub struct Watch {
    detector: Box<dyn Detector>,
    detection: Detection,
    access: Vec<Access>,
    /// Pages whose write was a fault.
    faulted: Vec<usize>,
    /// Where the kernel is asked for written pages, as long as no page's rights change: a lock is taken more often than that, and memory may be
    /// thousands of pages.
    asked: Option<Vec<Range<usize>>>,
}

/// What a fault was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The page is hidden: it must be fetched.
    Absent,
    /// A write was noted; it can be made now.
    Noted,
}

impl Watch {
    /// Hides all pages of `views`.
    ///
    /// # Errors
    /// The host cannot, or does not permit it.
    pub fn new(views: &Arc<TwoViews>, detection: Detection) -> Result<Self, Errno> {
        let detector: Box<dyn Detector> = match detection {
            Detection::Scan => Box::new(Faults::scanning(views.clone())?),
            Detection::Userfault => Box::new(Faults::trapping(views.clone())?),
            Detection::Protect => Box::new(Protect::new(views.clone())),
        };
        let access = vec![Access::Hidden; views.bytes() / PAGE_BYTES];
        Ok(Self { detector, detection, access, faulted: Vec::new(), asked: None })
    }

    /// The best way that this host permits.
    ///
    /// # Errors
    /// Why the last resort is not to be had either.
    pub fn best(views: &Arc<TwoViews>) -> Result<Self, Errno> {
        let better = Detection::ALL.into_iter().find_map(|way| Self::new(views, way).ok());
        better.map_or_else(|| Self::new(views, Detection::Protect), Ok)
    }

    /// The way that is used.
    #[must_use]
    pub fn detection(&self) -> Detection {
        self.detection
    }

    /// Takes pages from the program. Ascending pages cost least.
    ///
    /// # Errors
    /// The host's.
    pub fn hide(&mut self, pages: &[PageId]) -> Result<(), Errno> {
        self.set(pages, Access::Hidden)
    }

    /// Lets the program use pages; from now on writes are noted.
    ///
    /// # Errors
    /// The host's.
    pub fn show(&mut self, pages: &[PageId]) -> Result<(), Errno> {
        self.set(pages, Access::Watched)
    }

    /// Lets the program use pages, and write to them unnoted.
    ///
    /// # Errors
    /// The host's.
    pub fn open(&mut self, pages: &[PageId]) -> Result<(), Errno> {
        self.set(pages, Access::Open)
    }

    /// Whether the program can use a page.
    #[must_use]
    pub fn is_shown(&self, page: PageId) -> bool {
        self.access[page.0 as usize] != Access::Hidden
    }

    /// How many pages the program can use.
    #[must_use]
    pub fn shown(&self) -> usize {
        self.access.iter().filter(|access| **access != Access::Hidden).count()
    }

    fn set(&mut self, pages: &[PageId], access: Access) -> Result<(), Errno> {
        let now = |page: &PageId| self.access[page.0 as usize];
        let alike = |one: &PageId, next: &PageId| one.0 + 1 == next.0 && now(one) == now(next);
        if !pages.is_empty() {
            self.asked = None;
        }
        let runs: Vec<_> = pages.chunk_by(alike).map(|run| (run, now(&run[0]))).collect();
        for (run, before) in runs {
            let range = run[0].0 as usize..run[0].0 as usize + run.len();
            self.detector.admit(range.clone(), before, access)?;
            self.access[range].fill(access);
        }
        Ok(())
    }

    /// The program's thread could not do something to a page.
    ///
    /// # Errors
    /// The host's.
    pub fn fault(&mut self, page: PageId) -> Result<Fault, Errno> {
        let place = page.0 as usize;
        match self.access[place] {
            Access::Hidden => Ok(Fault::Absent),
            Access::Watched if self.detection != Detection::Scan => {
                self.detector.admit(place..place + 1, Access::Watched, Access::Written)?;
                self.access[place] = Access::Written;
                self.faulted.push(place);
                Ok(Fault::Noted)
            }
            // Somebody else was faster, or the host has taken the page out of the page table, for want of memory.
            access => {
                self.detector.admit(place..place + 1, Access::Hidden, access)?;
                Ok(Fault::Noted)
            }
        }
    }

    /// The pages written to since they were shown, or told of, ascending. A write from now on is told of by the next call: what is
    /// read of a page after this call is at least as new as what was told of.
    ///
    /// # Errors
    /// The host's.
    pub fn take_written(&mut self) -> Result<Vec<PageId>, Errno> {
        if self.detection == Detection::Scan {
            let asked = self.asked.take().unwrap_or_else(|| self.watched_runs());
            let mut written = Vec::new();
            for run in &asked {
                written.extend(self.detector.take_written(run.clone())?);
            }
            self.asked = Some(asked);
            return Ok(written.into_iter().map(|page| PageId(page as u64)).collect());
        }
        let mut written = core::mem::take(&mut self.faulted);
        // A page that was hidden or shown meanwhile has nothing to tell.
        written.retain(|&page| self.access[page] == Access::Written);
        written.sort_unstable();
        written.dedup();
        let written: Vec<_> = written.into_iter().map(|page| PageId(page as u64)).collect();
        self.show(&written)?;
        Ok(written)
    }

    fn watched_runs(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let runs = self.access.chunk_by(|one, next| one == next).map(|run| {
            let pages = start..start + run.len();
            start = pages.end;
            (run[0], pages)
        });
        runs.filter(|(access, _)| *access == Access::Watched).map(|(_, pages)| pages).collect()
    }
}
