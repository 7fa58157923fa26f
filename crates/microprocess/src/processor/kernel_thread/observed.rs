//! Where a kernel thread sleeps: by a file of `/proc`, or by what a program in the host's scheduler writes.
#![expect(unsafe_code, reason = "keeps descriptors and addresses of words in atomics")]

use core::mem::ManuallyDrop;
use core::ptr;
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::task::{Asleep, SystemCallReader, ThreadId, raise_descriptor_limit};

use super::KernelThread;
use crate::data::view::{View, ViewWords};

/// Nothing is open.
pub(super) const NO_FILE: RawFd = -1;

impl KernelThread {
    pub(super) fn set_reader(&self, reader: SystemCallReader) {
        let file = reader.into_raw_fd();
        let set = self.reader.compare_exchange(NO_FILE, file, Ordering::AcqRel, Ordering::Relaxed);
        if set.is_err() {
            // SAFETY: opened just now, and nobody else knows it.
            drop(unsafe { SystemCallReader::from_raw_fd(file) });
        }
    }

    /// Makes it possible to look where the thread sleeps, if that was refused when it began: it may be granted now. Allocates.
    pub(crate) fn ensure_reader(&self) {
        if self.reader.load(Ordering::Acquire) != NO_FILE {
            return;
        }
        // Refused again: then later.
        if let Some(reader) = self.id().and_then(|id| SystemCallReader::open(id).ok()) {
            self.set_reader(reader);
        }
    }

    /// Stops watching the thread. Nobody looks any more.
    pub(crate) fn close_reader(&self) {
        let file = self.reader.swap(NO_FILE, Ordering::AcqRel);
        if file != NO_FILE {
            // SAFETY: `set_reader` made the number out of a reader; the swap took the only copy.
            drop(unsafe { SystemCallReader::from_raw_fd(file) });
        }
    }

    /// What the host's scheduler writes about it.
    pub(crate) fn view(&self) -> Option<View> {
        // SAFETY: null or set by `set_view` to words that live for ever.
        unsafe { self.view.load(Ordering::Acquire).as_ref() }.map(View::new)
    }

    /// Sets what the host's scheduler writes about it to, for ever.
    pub(crate) fn set_view(&self, words: &'static ViewWords) {
        self.view.store(ptr::from_ref(words).cast_mut(), Ordering::Release);
    }

    /// Where it sleeps in the kernel; `None` while it runs or wants to, or where we may not look.
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
        // SAFETY: a reader's, closed once nobody looks any more, and not here.
        let reader = ManuallyDrop::new(unsafe { SystemCallReader::from_raw_fd(file) });
        reader.asleep().ok()?
    }
}

/// Opens the file that tells where the calling thread sleeps. Where descriptors run out, the process takes those that it may have
/// but did not ask for: a shell gives 1,024, and a thousand sleepers are nothing unusual.
pub(super) fn open_reader() -> Option<SystemCallReader> {
    let open = || SystemCallReader::open(ThreadId::current());
    match open() {
        Err(Errno::MFILE) if raise_descriptor_limit().is_ok() => open().ok(),
        opened => opened.ok(),
    }
}
