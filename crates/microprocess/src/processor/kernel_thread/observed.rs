//! Where a kernel thread sleeps, as read from a file of `/proc` or written by a program in the
//! host's scheduler.
#![expect(unsafe_code, reason = "keeps descriptors and addresses of words in atomics")]

use core::mem::ManuallyDrop;
use core::ptr;
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::task::{Asleep, SystemCallReader, ThreadId, raise_descriptor_limit};

use super::KernelThread;
use crate::data::view::{View, ViewWords};

/// No file is open.
pub(super) const NO_FILE: RawFd = -1;

impl KernelThread {
    pub(super) fn set_reader(&self, reader: SystemCallReader) {
        let file = reader.into_raw_fd();
        let set = self.reader.compare_exchange(NO_FILE, file, Ordering::AcqRel, Ordering::Relaxed);
        if set.is_err() {
            // SAFETY: opened just now, and not stored anywhere.
            drop(unsafe { SystemCallReader::from_raw_fd(file) });
        }
    }

    /// Opens the file that shows where the thread sleeps, if the host refused that when the thread
    /// began: it may permit it by now. Allocates.
    pub(crate) fn ensure_reader(&self) {
        if self.reader.load(Ordering::Acquire) != NO_FILE {
            return;
        }
        // If the host refuses again, a later call tries again.
        if let Some(reader) = self.id().and_then(|id| SystemCallReader::open(id).ok()) {
            self.set_reader(reader);
        }
    }

    /// Closes the file. No other thread may look at this one any more.
    pub(crate) fn close_reader(&self) {
        let file = self.reader.swap(NO_FILE, Ordering::AcqRel);
        if file != NO_FILE {
            // SAFETY: `set_reader` took the number from a reader; the swap took the only copy.
            drop(unsafe { SystemCallReader::from_raw_fd(file) });
        }
    }

    /// What the host's scheduler writes about the thread, if there is a program that writes it.
    pub(crate) fn view(&self) -> Option<View> {
        // SAFETY: null, or set by `set_view` to words that are never freed.
        unsafe { self.view.load(Ordering::Acquire).as_ref() }.map(View::new)
    }

    /// Sets the words that the host's scheduler writes about the thread, for good.
    pub(crate) fn set_view(&self, words: &'static ViewWords) {
        self.view.store(ptr::from_ref(words).cast_mut(), Ordering::Release);
    }

    /// Where the thread sleeps in the kernel; `None` while it runs or is ready to run, or if the
    /// host does not permit the look.
    pub(crate) fn asleep(&self) -> Option<Asleep> {
        match self.view() {
            Some(view) if view.is_known() && !view.is_asleep() => None,
            Some(view) if view.is_known() => view.asleep().or_else(|| self.asleep_by_reader()),
            _ => self.asleep_by_reader(),
        }
    }

    fn asleep_by_reader(&self) -> Option<Asleep> {
        let file = self.reader.load(Ordering::Acquire);
        if file == NO_FILE {
            return None;
        }
        // SAFETY: the number belongs to a reader. `close_reader` closes it when no thread looks any
        // more; `ManuallyDrop` keeps it open here.
        let reader = ManuallyDrop::new(unsafe { SystemCallReader::from_raw_fd(file) });
        reader.asleep().ok()?
    }
}

/// Opens the file that shows where the calling thread sleeps. If the process runs out of
/// descriptors, this raises its limit to the greatest that the host permits. A shell sets a limit
/// of 1,024, and a thousand sleeping threads are common.
pub(super) fn open_reader() -> Option<SystemCallReader> {
    let open = || SystemCallReader::open(ThreadId::current());
    match open() {
        Err(Errno::MFILE) if raise_descriptor_limit().is_ok() => open().ok(),
        opened => opened.ok(),
    }
}
