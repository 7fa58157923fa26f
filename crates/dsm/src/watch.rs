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
//! | [`Detection::Scan`] | the kernel lets it pass and notes it; `take_written` asks (`WP_ASYNC`, `PAGEMAP_SCAN`); where that is mostly in vain, writes are faults for a while | Linux 6.7 |
//! | [`Detection::Userfault`] | `SIGBUS` on the thread, answered there (userfaultfd) | Linux 5.19, and permission |
//! | [`Detection::Protect`] | `SIGSEGV`, answered by `mprotect` | nothing |
//!
//! Paper 3 has the last one, and found 49 % of its time in it (§6). Twins are not made here: a node's copy of a page is what it was
//! when it was last watched.

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

/// A way to learn of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// The kernel notes written pages and is asked for them; a write is a trap only where asking costs more than traps do.
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

/// What the page table holds of a page that the program may use.
#[derive(Debug)]
enum Entry {
    /// The page: another thread had the fault first.
    Present,
    /// No page: the host reclaimed it. It stays out until the runtime puts it back.
    Absent(Reclaimed),
}

/// A page that the host reclaimed. What the page table still says of its writes is lost once the
/// page is back, so only this gives it back ([`Detector::readmit`]).
#[derive(Debug)]
struct Reclaimed {
    page: usize,
    written: bool,
}

/// What the three have to do. Pages are numbered from the begin of the region.
trait Detector: fmt::Debug + Send {
    /// The same for another region.
    fn beside(&self, views: Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno>;

    /// What the page table holds of a page with these rights, to which an access was a fault.
    fn entry(&self, page: usize, access: Access) -> Result<Entry, Errno>;

    /// Puts a page back into the page table, with the rights that it had.
    fn readmit(&mut self, reclaimed: &Reclaimed, access: Access) -> Result<(), Errno>;

    /// Gives pages that all have the rights `from` others: none, all but unnoticed writing, or all.
    fn admit(&mut self, pages: Range<usize>, from: Access, to: Access) -> Result<(), Errno>;

    /// Whether a write to a watched page is a fault now.
    fn traps(&self) -> bool;

    /// From now on it is, on these, which are all that are watched. Nothing changes where that fails.
    fn begin_traps(&mut self, watched: &[Range<usize>]) -> Result<(), Errno>;

    /// From now on the kernel notes it instead; `false` where it does already, or cannot.
    fn end_traps(&mut self, watched: &[Range<usize>]) -> Result<bool, Errno>;

    /// Those of `pages` that are not watched any more as they were written to, where that was no fault, and those that never were.
    fn written(&mut self, pages: Range<usize>, then: Then) -> Result<Vec<usize>, Errno>;
}

/// What becomes of pages that are found written.
#[derive(Debug, Clone, Copy)]
enum Then {
    /// They stay as they are.
    Leave,
    /// They are watched, from the same moment on.
    WatchAnew,
}

/// The watched memory of one node: all its regions.
#[derive(Debug)]
pub struct Watch {
    detection: Detection,
    /// Ascending; never none.
    regions: Vec<Watched>,
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
    /// Hides all pages of `views`, which are the first ones of the shared space.
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

    /// The best way that this host permits.
    ///
    /// # Errors
    /// Why the last resort is not to be had either.
    pub fn best(views: &Arc<TwoViews>) -> Result<Self, Errno> {
        let better = Detection::ALL.into_iter().find_map(|way| Self::new(views, way).ok());
        better.map_or_else(|| Self::new(views, Detection::Protect), Ok)
    }

    /// Watches another region in the same way, which begins with the page `first` and overlaps none; all its pages are hidden.
    ///
    /// # Errors
    /// The host cannot, or does not permit it.
    pub fn add(&mut self, first: PageId, views: &Arc<TwoViews>) -> Result<(), Errno> {
        let detector = self.regions[0].beside(views)?;
        let place = self.regions.partition_point(|region| region.first() < first);
        self.regions.insert(place, Watched::new(first, views.clone(), detector));
        Ok(())
    }

    /// Watches the region no more that begins with the page `first`. There are others.
    pub fn remove(&mut self, first: PageId) {
        self.regions.retain(|region| region.first() != first);
    }

    /// The way that is used.
    #[must_use]
    pub fn detection(&self) -> Detection {
        self.detection
    }

    /// The pages of the region that this one lies in, through the runtime's view.
    ///
    /// # Panics
    /// It lies in none. So do all other calls about pages.
    #[must_use]
    pub fn at(&self, page: PageId) -> Pages<'_> {
        self.regions[self.place(page)].pages()
    }

    /// The region of a page.
    fn place(&self, page: PageId) -> usize {
        let behind = self.regions.partition_point(|region| region.first() <= page);
        behind.checked_sub(1).expect("a page lies in a region")
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
        self.regions[self.place(page)].is_shown(page)
    }

    /// How many pages the program can use, in all regions.
    #[must_use]
    pub fn shown(&self) -> usize {
        self.regions.iter().map(Watched::shown).sum()
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

    /// The program's thread could not do something to a page.
    ///
    /// # Errors
    /// The host's.
    pub fn fault(&mut self, page: PageId) -> Result<Fault, Errno> {
        let place = self.place(page);
        self.regions[place].fault(page)
    }

    /// The pages written to since they were shown, or reported, ascending. A write from now on is
    /// reported by the next call: what is read of a page after this call is at least as new as what
    /// was reported.
    ///
    /// # Errors
    /// The host's. The next call reports what this one found.
    pub fn take_written(&mut self) -> Result<Vec<PageId>, Errno> {
        self.regions.iter_mut().try_for_each(Watched::find_written)?;
        let mut written = Vec::new();
        self.regions.iter_mut().for_each(|region| region.report(&mut written));
        Ok(written)
    }
}
