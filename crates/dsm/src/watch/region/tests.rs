//! A simulated page table that the host and another thread change between any two calls of the
//! runtime. No write is lost in any order, nor when the host fails.

use core::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use super::Watched;
use crate::address::PageId;
use crate::watch::{Access, Detection, Detector, Entry, Fault, OnWritten, Reclaimed, Watch};

/// The entry of the only page, as in Linux for a shared mapping with `WP_ASYNC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pte {
    None,
    Marker,
    Protected,
    Writable,
}

/// What happens between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventBetween {
    Nothing,
    Write,
    Reclaim,
    WriteThenReclaim,
}

const ALL: [EventBetween; 4] = [
    EventBetween::Nothing,
    EventBetween::Write,
    EventBetween::Reclaim,
    EventBetween::WriteThenReclaim,
];

#[derive(Debug)]
struct Host {
    pte: Pte,
    /// There was a write that was not reported to the runtime.
    is_unreported: bool,
    /// What happens before each of the next calls, in reverse order.
    meanwhile: Vec<EventBetween>,
}

impl Host {
    fn interfere(&mut self) {
        let now = self.meanwhile.pop().unwrap_or(EventBetween::Nothing);
        if matches!(now, EventBetween::Write | EventBetween::WriteThenReclaim) {
            self.write();
        }
        if matches!(now, EventBetween::Reclaim | EventBetween::WriteThenReclaim) {
            self.reclaim();
        }
    }

    /// A write by another thread. If the page is absent, the thread waits for the handling of its
    /// fault.
    fn write(&mut self) {
        if matches!(self.pte, Pte::Protected | Pte::Writable) {
            (self.pte, self.is_unreported) = (Pte::Writable, true);
        }
    }

    fn watch_anew(&mut self) {
        self.pte = if self.pte == Pte::None { Pte::Marker } else { Pte::Protected };
        self.is_unreported = false;
    }

    fn reclaim(&mut self) {
        self.pte = match self.pte {
            Pte::Protected | Pte::Marker => Pte::Marker,
            Pte::Writable | Pte::None => Pte::None,
        };
    }
}

#[derive(Debug, Clone)]
struct PageTable(Arc<Mutex<Host>>);

impl PageTable {
    fn call<T>(&self, act: impl FnOnce(&mut Host) -> T) -> T {
        let mut host = self.0.lock().expect("no call panics");
        host.interfere();
        act(&mut host)
    }
}

impl Detector for PageTable {
    fn beside(&self, _views: Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno> {
        Ok(Box::new(self.clone()))
    }

    fn entry(&self, page: usize, _access: Access) -> Result<Entry, Errno> {
        Ok(self.call(|host| match host.pte {
            Pte::None => Entry::Absent(Reclaimed { page, written: true }),
            Pte::Marker => Entry::Absent(Reclaimed { page, written: false }),
            Pte::Protected | Pte::Writable => Entry::Present,
        }))
    }

    fn readmit(&mut self, reclaimed: &Reclaimed, access: Access) -> Result<(), Errno> {
        self.admit(reclaimed.page..reclaimed.page + 1, Access::Hidden, access)
    }

    fn admit(&mut self, _pages: Range<usize>, from: Access, to: Access) -> Result<(), Errno> {
        assert_eq!((from, to), (Access::Hidden, Access::Watched), "no other rights are given here");
        self.call(|host| {
            if matches!(host.pte, Pte::None | Pte::Marker) {
                host.pte = Pte::Protected;
            }
        });
        Ok(())
    }

    fn traps(&self) -> bool {
        false
    }

    fn begin_traps(&mut self, _watched: &[Range<usize>]) -> Result<(), Errno> {
        Ok(())
    }

    fn end_traps(&mut self, _watched: &[Range<usize>]) -> Result<bool, Errno> {
        Ok(false)
    }

    fn written(&mut self, pages: Range<usize>, on_written: OnWritten) -> Result<Vec<usize>, Errno> {
        let is_written = self.call(|host| {
            let is_written = matches!(host.pte, Pte::None | Pte::Writable);
            if matches!(on_written, OnWritten::WatchAnew) && is_written {
                host.watch_anew();
            }
            is_written
        });
        Ok(pages.filter(|_| is_written).collect())
    }
}

/// A fault in a page that is present or was reclaimed, and then the question which pages were
/// written.
fn is_reported(begin: Pte, meanwhile: &[EventBetween]) -> (bool, bool) {
    let views = Arc::new(TwoViews::new(PAGE_BYTES, None).expect("there is memory for one page"));
    let is_unreported = matches!(begin, Pte::None | Pte::Writable);
    let host = Host { pte: Pte::None, is_unreported, meanwhile: Vec::new() };
    let table = PageTable(Arc::new(Mutex::new(host)));
    let mut region = Watched::new(PageId(0), views, Box::new(table.clone()));
    region.set(&[PageId(0)], Access::Watched).expect("the host permits it");
    {
        let mut host = table.0.lock().expect("no call panics");
        (host.pte, host.meanwhile) = (begin, meanwhile.to_vec());
    }
    region.fault(PageId(0)).expect("the host permits it");
    // The rest of the list happens between the answer and the question.
    let was_written = table.call(|host| {
        while !host.meanwhile.is_empty() {
            host.interfere();
        }
        host.is_unreported
    });
    let mut reported = Vec::new();
    region.find_written().expect("the host permits it");
    region.report(&mut reported);
    (was_written, reported == [PageId(0)])
}

#[test]
fn no_write_is_lost_whatever_the_host_reclaims_during_a_fault() {
    let orders = ALL.into_iter().flat_map(|before| {
        ALL.into_iter().flat_map(move |between| ALL.map(|after| [after, between, before]))
    });
    let begins = [Pte::None, Pte::Marker, Pte::Protected, Pte::Writable];
    for (meanwhile, begin) in orders.flat_map(|order| begins.map(|begin| (order, begin))) {
        let (was_written, is_reported) = is_reported(begin, &meanwhile);
        assert_eq!(is_reported, was_written, "{begin:?}, the last first: {meanwhile:?}");
    }
}

const REGION_PAGES: usize = 4;

/// The memory of one region on a host that fails in the middle of one of its calls.
#[derive(Debug)]
struct Failing {
    written: Vec<bool>,
    /// Whether a write is a fault, by page.
    protected: Vec<bool>,
    traps: bool,
    /// Calls of all regions until one fails.
    fails_in: Arc<Mutex<Option<usize>>>,
}

impl Failing {
    fn host_fails(&self) -> bool {
        let mut fails_in = self.fails_in.lock().expect("no call panics");
        *fails_in = fails_in.and_then(|calls| calls.checked_sub(1));
        *fails_in == Some(0)
    }
}

/// The error of a host that fails.
const EIO: Errno = Errno::new(5);

/// A [`Failing`] that the test can access as well.
#[derive(Debug, Clone)]
struct Shared(Arc<Mutex<Failing>>);

impl Shared {
    fn host(&self) -> MutexGuard<'_, Failing> {
        self.0.lock().expect("no call panics")
    }
}

impl Detector for Shared {
    fn beside(&self, _views: Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno> {
        Ok(Box::new(self.clone()))
    }

    fn entry(&self, _page: usize, _access: Access) -> Result<Entry, Errno> {
        Ok(Entry::Present)
    }

    fn readmit(&mut self, _reclaimed: &Reclaimed, _access: Access) -> Result<(), Errno> {
        Ok(())
    }

    fn admit(&mut self, pages: Range<usize>, _from: Access, to: Access) -> Result<(), Errno> {
        let mut host = self.host();
        if host.host_fails() {
            return Err(EIO);
        }
        for page in pages {
            host.protected[page] = to == Access::Watched;
            host.written[page] &= to != Access::Watched || host.traps;
        }
        Ok(())
    }

    fn traps(&self) -> bool {
        self.host().traps
    }

    fn begin_traps(&mut self, _watched: &[Range<usize>]) -> Result<(), Errno> {
        let mut host = self.host();
        if host.host_fails() {
            return Err(EIO);
        }
        host.traps = true;
        Ok(())
    }

    fn end_traps(&mut self, watched: &[Range<usize>]) -> Result<bool, Errno> {
        let mut host = self.host();
        if host.host_fails() {
            return Err(EIO);
        }
        host.traps = false;
        watched.iter().cloned().flatten().for_each(|page| host.written[page] = false);
        Ok(true)
    }

    fn written(&mut self, pages: Range<usize>, on_written: OnWritten) -> Result<Vec<usize>, Errno> {
        let mut host = self.host();
        let fails = host.host_fails();
        let reached = if fails { pages.start..pages.start + pages.len() / 2 } else { pages };
        let found: Vec<_> = reached.filter(|page| host.written[*page]).collect();
        if matches!(on_written, OnWritten::WatchAnew) {
            found.iter().for_each(|page| host.written[*page] = false);
        }
        if fails { Err(EIO) } else { Ok(found) }
    }
}

/// Two regions of four pages each, all watched, on one host.
fn two_regions(traps: bool) -> (Watch, [Shared; 2], Arc<Mutex<Option<usize>>>) {
    let fails_in = Arc::new(Mutex::new(None));
    let host = || {
        let (written, protected) = (vec![false; REGION_PAGES], vec![true; REGION_PAGES]);
        let fails_in = Arc::clone(&fails_in);
        Shared(Arc::new(Mutex::new(Failing { written, protected, traps, fails_in })))
    };
    let hosts = [host(), host()];
    let region = |(host, first): (&Shared, u64)| {
        let views = TwoViews::new(REGION_PAGES * PAGE_BYTES, None).expect("there is memory");
        Watched::new(PageId(first), Arc::new(views), Box::new(host.clone()))
    };
    let regions = hosts.iter().zip([0, 100]).map(region).collect();
    let mut watch = Watch { detection: Detection::Scan, regions };
    let pages: Vec<_> = (0..4).chain(100..104).map(PageId).collect();
    watch.show(&pages).expect("the host permits it");
    (watch, hosts, fails_in)
}

/// A program writes to a page.
fn write(watch: &mut Watch, hosts: &[Shared; 2], page: u64) {
    let (host, place) = (&hosts[(page / 100) as usize], (page % 100) as usize);
    let faults = host.traps() && host.host().protected[place];
    if faults {
        assert_eq!(watch.fault(PageId(page)), Ok(Fault::Noted));
    }
    host.host().written[place] = true;
}

/// Writes pages and asks for them, `intervals` times. In the last interval the host fails at its
/// call number `fails_in`. Returns whether it did.
fn a_failure_loses_nothing(traps: bool, intervals: usize, fails_in: usize) -> bool {
    const PAGES: [u64; 4] = [1, 3, 100, 103];
    let (mut watch, hosts, fails) = two_regions(traps);
    for _ in 1..intervals {
        PAGES.iter().for_each(|page| write(&mut watch, &hosts, *page));
        assert_eq!(watch.take_written(), Ok(PAGES.map(PageId).to_vec()));
    }
    PAGES.iter().for_each(|page| write(&mut watch, &hosts, *page));
    *fails.lock().expect("no call panics") = Some(fails_in);
    let first = watch.take_written();
    *fails.lock().expect("no call panics") = None;
    // A write after the failure is reported as well.
    write(&mut watch, &hosts, 2);
    let reported =
        [first.clone().unwrap_or_default(), watch.take_written().expect("it works again")];
    let reported = reported.concat();
    for page in PAGES.into_iter().chain([2]).map(PageId) {
        assert!(
            reported.contains(&page),
            "{page:?} of {reported:?}, {traps}, {intervals}, {fails_in}"
        );
    }
    assert_eq!(watch.take_written(), Ok(Vec::new()), "nothing was written since");
    PAGES.iter().for_each(|page| write(&mut watch, &hosts, *page));
    assert_eq!(watch.take_written(), Ok(PAGES.map(PageId).to_vec()), "all are watched again");
    first.is_err()
}

#[test]
fn a_host_that_fails_while_it_is_asked_loses_no_written_page() {
    for (traps, intervals) in [(false, 1), (true, 1), (true, 40), (true, 200)] {
        let failures = (1..).take_while(|nth| a_failure_loses_nothing(traps, intervals, *nth));
        assert!(failures.count() >= 2, "each region asks at least once");
    }
}
