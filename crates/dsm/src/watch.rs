//! Detection of writes: which pages the program may access, and which it has written.
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
//! | [`Detection::Scan`] | the kernel permits and records it; `take_written` asks the kernel (`WP_ASYNC`, `PAGEMAP_SCAN`). If it mostly asks in vain, writes are faults for a while | Linux 6.7 |
//! | [`Detection::Userfault`] | `SIGBUS` on the thread, handled there (userfaultfd) | Linux 5.19, and permission |
//! | [`Detection::Protect`] | `SIGSEGV`, handled by `mprotect` | nothing |
//!
//! Paper 3 has the last one, which took 49 % of its time (§6). No twins are made: a node's copy of
//! a page has the contents of the page when it was last watched.

mod balance;
mod diff;
mod faults;
mod protect;
mod region;
mod userfault;

use core::fmt;
use core::ops::Range;
use core::str::FromStr;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::two_views::TwoViews;

use crate::address::PageId;
use protect::Protect;
use region::Watched;
use userfault::Faults;

pub use crate::page::WORDS_A_PAGE;
pub use diff::Pages;
pub use faults::{Answer, Faulting, Guarded};

/// A way to detect writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// The kernel records written pages and is asked for them. Writes are traps only while traps
    /// cost less than asking.
    Scan,
    /// A write to a watched page is a `SIGBUS` of the program's thread.
    Userfault,
    /// A write to a watched page is a `SIGSEGV`. Every host supports it.
    Protect,
}

impl Detection {
    /// All of them, in the order of preference.
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

/// The name of no [`Detection`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDetection(pub String);

impl fmt::Display for UnknownDetection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no detection of writes is called {:?}: use scan, userfault or protect", self.0)
    }
}

impl core::error::Error for UnknownDetection {}

/// The program's rights to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Hidden,
    Watched,
    Written,
    Open,
}

/// The page table's entry of a page that the program may access.
#[derive(Debug)]
enum Entry {
    /// Present: another thread had the fault first.
    Present,
    /// Absent: the host reclaimed the page. It stays absent until the runtime readmits it.
    Absent(Reclaimed),
}

/// A page that the host reclaimed. The record of its writes in the page table is lost when the page
/// is readmitted, so only the holder of this value may do so ([`Detector::readmit`]).
#[derive(Debug)]
struct Reclaimed {
    page: usize,
    written: bool,
}

/// What a way of detection implements. Pages are numbered from the start of the region.
trait Detector: fmt::Debug + Send {
    /// A detector for another region.
    fn beside(&self, views: Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno>;

    /// The page table's entry of a page with these rights, after a fault.
    fn entry(&self, page: usize, access: Access) -> Result<Entry, Errno>;

    /// Puts a page back into the page table, with its rights.
    fn readmit(&mut self, reclaimed: &Reclaimed, access: Access) -> Result<(), Errno>;

    /// Changes the rights of pages that all have the rights `from`.
    fn admit(&mut self, pages: Range<usize>, from: Access, to: Access) -> Result<(), Errno>;

    /// Whether writes to watched pages are faults now.
    fn traps(&self) -> bool;

    /// Makes writes to watched pages faults; `watched` has all of these pages. An error changes
    /// nothing.
    fn begin_traps(&mut self, watched: &[Range<usize>]) -> Result<(), Errno>;

    /// Makes the kernel record writes instead. Returns `false` if it does already, or cannot.
    fn end_traps(&mut self, watched: &[Range<usize>]) -> Result<bool, Errno>;

    /// The pages of `pages` that were written, or never watched. Writes that were faults are not
    /// among them.
    fn written(&mut self, pages: Range<usize>, on_written: OnWritten) -> Result<Vec<usize>, Errno>;
}

/// What happens to pages that are found written.
#[derive(Debug, Clone, Copy)]
enum OnWritten {
    /// They stay as they are.
    Leave,
    /// They are watched from the same moment on.
    WatchAnew,
}

/// The watched memory of one node: all its regions.
#[derive(Debug)]
pub struct Watch {
    detection: Detection,
    /// Ascending; at least one.
    regions: Vec<Watched>,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The page is hidden: it must be fetched.
    Absent,
    /// A write was recorded; it can be made now.
    Noted,
}

impl Watch {
    /// Watches `views`, the first region of the shared space, with all pages hidden.
    ///
    /// # Errors
    /// The host cannot, or does not permit it.
    pub fn new(views: &Arc<TwoViews>, detection: Detection) -> Result<Self, Errno> {
        let detector: Box<dyn Detector> = match detection {
            Detection::Scan => Box::new(Faults::scanning(views.clone())?),
            Detection::Userfault => Box::new(Faults::trapping(views.clone())?),
            Detection::Protect => Box::new(Protect::new(views.clone())),
        };
        Ok(Self { detection, regions: vec![Watched::new(PageId(0), views.clone(), detector)] })
    }

    /// Uses the best way of detection that this host permits.
    ///
    /// # Errors
    /// Why the last one of them is not available.
    pub fn best(views: &Arc<TwoViews>) -> Result<Self, Errno> {
        let better = Detection::ALL.into_iter().find_map(|way| Self::new(views, way).ok());
        better.map_or_else(|| Self::new(views, Detection::Protect), Ok)
    }

    /// Watches another region, which starts with the page `first` and overlaps no other. All its
    /// pages are hidden.
    ///
    /// # Errors
    /// The host cannot, or does not permit it.
    pub fn add(&mut self, first: PageId, views: &Arc<TwoViews>) -> Result<(), Errno> {
        let detector = self.regions[0].beside(views)?;
        let place = self.regions.partition_point(|region| region.first() < first);
        self.regions.insert(place, Watched::new(first, views.clone(), detector));
        Ok(())
    }

    /// Stops watching the region that starts with the page `first`; others remain.
    pub fn remove(&mut self, first: PageId) {
        self.regions.retain(|region| region.first() != first);
    }

    /// The way of detection.
    #[must_use]
    pub fn detection(&self) -> Detection {
        self.detection
    }

    /// The pages of this page's region, in the runtime's view.
    ///
    /// # Panics
    /// The page lies in no region; this may be noticed only when the result is used. The same holds
    /// for all other calls about pages.
    #[must_use]
    pub fn at(&self, page: PageId) -> Pages<'_> {
        self.regions[self.place(page)].pages()
    }

    /// The region of a page.
    fn place(&self, page: PageId) -> usize {
        let behind = self.regions.partition_point(|region| region.first() <= page);
        behind.checked_sub(1).expect("a page lies in a region")
    }

    /// Hides pages from the program. Cheapest for ascending pages.
    ///
    /// # Errors
    /// Those of the host.
    pub fn hide(&mut self, pages: &[PageId]) -> Result<(), Errno> {
        self.set(pages, Access::Hidden)
    }

    /// Lets the program access pages, and records writes from now on.
    ///
    /// # Errors
    /// Those of the host.
    pub fn show(&mut self, pages: &[PageId]) -> Result<(), Errno> {
        self.set(pages, Access::Watched)
    }

    /// Lets the program access pages, and records no writes.
    ///
    /// # Errors
    /// Those of the host.
    pub fn open(&mut self, pages: &[PageId]) -> Result<(), Errno> {
        self.set(pages, Access::Open)
    }

    /// Whether the program can access a page.
    #[must_use]
    pub fn is_visible(&self, page: PageId) -> bool {
        self.regions[self.place(page)].is_visible(page)
    }

    /// Number of pages that the program can access, in all regions.
    #[must_use]
    pub fn visible_count(&self) -> usize {
        self.regions.iter().map(Watched::visible_count).sum()
    }

    fn set(&mut self, mut pages: &[PageId], access: Access) -> Result<(), Errno> {
        while let Some(page) = pages.first() {
            let place = self.place(*page);
            let region = &mut self.regions[place];
            let (here, rest) = pages.split_at(region.leading(pages));
            assert!(!here.is_empty(), "a page lies in a region");
            region.set(here, access)?;
            pages = rest;
        }
        Ok(())
    }

    /// Handles a fault of the program.
    ///
    /// # Errors
    /// Those of the host.
    pub fn fault(&mut self, page: PageId) -> Result<Fault, Errno> {
        let place = self.place(page);
        self.regions[place].fault(page)
    }

    /// The pages written since they were shown or reported, ascending. Later writes are reported by
    /// the next call. So the contents of a page that are read after this call are at least as new
    /// as the reported writes.
    ///
    /// # Errors
    /// Those of the host. The next call reports what this one found.
    pub fn take_written(&mut self) -> Result<Vec<PageId>, Errno> {
        self.regions.iter_mut().try_for_each(Watched::find_written)?;
        let mut written = Vec::new();
        self.regions.iter_mut().for_each(|region| region.report(&mut written));
        Ok(written)
    }
}
