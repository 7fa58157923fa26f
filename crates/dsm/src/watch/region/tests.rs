//! A page table that the host and another thread change between any two calls of the runtime: no
//! write is lost in any order of these.

use core::ops::Range;
use std::sync::{Arc, Mutex};

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use super::Watched;
use crate::address::PageId;
use crate::watch::{Access, Detector, Entry, Reclaimed, Then};

/// The entry of the only page, as Linux keeps it for a shared mapping with `WP_ASYNC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pte {
    None,
    Marker,
    Protected,
    Writable,
}

/// What happens between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    Write,
    Reclaim,
    WriteThenReclaim,
}

const ALL: [Meanwhile; 4] =
    [Meanwhile::Nothing, Meanwhile::Write, Meanwhile::Reclaim, Meanwhile::WriteThenReclaim];

#[derive(Debug)]
struct Host {
    pte: Pte,
    /// There was a write that the runtime has not been told of.
    is_untold: bool,
    /// Before each of the next calls, the first one last.
    meanwhile: Vec<Meanwhile>,
}

impl Host {
    fn interfere(&mut self) {
        let now = self.meanwhile.pop().unwrap_or(Meanwhile::Nothing);
        if matches!(now, Meanwhile::Write | Meanwhile::WriteThenReclaim) {
            self.write();
        }
        if matches!(now, Meanwhile::Reclaim | Meanwhile::WriteThenReclaim) {
            self.reclaim();
        }
    }

    /// By another thread: one that meets no page waits until its fault is answered.
    fn write(&mut self) {
        if matches!(self.pte, Pte::Protected | Pte::Writable) {
            (self.pte, self.is_untold) = (Pte::Writable, true);
        }
    }

    fn watch_anew(&mut self) {
        self.pte = if self.pte == Pte::None { Pte::Marker } else { Pte::Protected };
        self.is_untold = false;
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

    fn written(&mut self, pages: Range<usize>, then: Then) -> Result<Vec<usize>, Errno> {
        let is_written = self.call(|host| {
            let is_written = matches!(host.pte, Pte::None | Pte::Writable);
            if matches!(then, Then::WatchAnew) && is_written {
                host.watch_anew();
            }
            is_written
        });
        Ok(pages.filter(|_| is_written).collect())
    }
}

/// A fault in a page that is there, or was reclaimed, and then the question what was written.
fn is_told(begin: Pte, meanwhile: &[Meanwhile]) -> (bool, bool) {
    let views = Arc::new(TwoViews::new(PAGE_BYTES, None).expect("there is memory for one page"));
    let is_untold = matches!(begin, Pte::None | Pte::Writable);
    let host = Host { pte: Pte::None, is_untold, meanwhile: Vec::new() };
    let table = PageTable(Arc::new(Mutex::new(host)));
    let mut region = Watched::new(PageId(0), views, Box::new(table.clone()));
    region.set(&[PageId(0)], Access::Watched).expect("the host permits it");
    {
        let mut host = table.0.lock().expect("no call panics");
        (host.pte, host.meanwhile) = (begin, meanwhile.to_vec());
    }
    region.fault(PageId(0)).expect("the host permits it");
    // What is left of the list happens between the answer and the question.
    let was_written = table.call(|host| {
        while !host.meanwhile.is_empty() {
            host.interfere();
        }
        host.is_untold
    });
    let mut told = Vec::new();
    region.take_written(&mut told).expect("the host permits it");
    (was_written, told == [PageId(0)])
}

#[test]
fn no_write_is_lost_whatever_the_host_reclaims_during_a_fault() {
    let orders = ALL.into_iter().flat_map(|before| {
        ALL.into_iter().flat_map(move |between| ALL.map(|after| [after, between, before]))
    });
    let begins = [Pte::None, Pte::Marker, Pte::Protected, Pte::Writable];
    for (meanwhile, begin) in orders.flat_map(|order| begins.map(|begin| (order, begin))) {
        let (was_written, is_told) = is_told(begin, &meanwhile);
        assert_eq!(is_told, was_written, "{begin:?}, the last first: {meanwhile:?}");
    }
}
