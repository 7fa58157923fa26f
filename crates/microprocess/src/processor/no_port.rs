//! The I/O port in a build without feature `io`: no virtual processor has one.

use kyocho_sys::prim::atomic::AtomicU32;

use crate::data::deadline::Deadline;

/// A port, of which there is none.
#[derive(Debug)]
pub(crate) enum Port {}

impl Port {
    pub(crate) fn put(&'static self) {
        match *self {}
    }

    pub(crate) fn is_pending(&self) -> bool {
        match *self {}
    }

    pub(crate) fn reap(&self) {
        match *self {}
    }

    pub(crate) fn wait(&self, _: Option<Deadline>, _: Option<(&'static AtomicU32, u32)>) {
        match *self {}
    }

    pub(crate) fn wake(&self) {
        match *self {}
    }

    pub(crate) fn quiesce(&self) {
        match *self {}
    }
}
