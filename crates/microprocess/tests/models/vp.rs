//! A virtual processor; each microprocess of a model has its own. It handles what others ask of it.
//!
//! A mutant: while [`forget_changes`] is in force, it applies no new level.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;

use crate::inherit::take_over;
use crate::prim::atomic::Ordering;
use crate::record::{MicroprocessRef, Record};

thread_local! {
    // Loom runs all its threads on one kernel thread.
    static FORGETS: Cell<bool> = const { Cell::new(false) };
}

/// From here on no microprocess of this test applies a new level.
pub(crate) fn forget_changes() {
    FORGETS.set(true);
}

pub(crate) mod attention {
    pub(crate) const RECONSIDER: u32 = 1;
}

#[derive(Debug)]
pub(crate) struct Vp {
    pub(crate) current: Current,
    pub(crate) attention: Attention,
}

impl Vp {
    pub(crate) const fn new() -> Self {
        Self { current: Current, attention: Attention }
    }

    pub(crate) fn changed(&self, record: &'static Record) {
        if !FORGETS.get() {
            take_over(record);
        }
    }
}

/// Access to the holder's data. Every thread of a model has it, for its own virtual processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Masked<'section> {
    vp: &'static Vp,
    section: PhantomData<&'section ()>,
}

impl Masked<'_> {
    pub(crate) const fn of(vp: &'static Vp) -> Self {
        Self { vp, section: PhantomData }
    }

    pub(crate) fn is_home_of(self, record: &'static Record) -> bool {
        core::ptr::eq(record.home(), self.vp)
    }
}

impl Deref for Masked<'_> {
    type Target = Vp;

    fn deref(&self) -> &Vp {
        self.vp
    }
}

/// The running microprocess is always the caller.
#[derive(Debug)]
pub(crate) struct Current;

impl Current {
    pub(crate) fn get(&self) -> Option<&'static Record> {
        Some(MicroprocessRef::current().0)
    }
}

/// No other microprocess runs there that could be more urgent.
#[derive(Debug)]
pub(crate) struct Attention;

impl Attention {
    pub(crate) fn fetch_or(&self, _bits: u32, _ordering: Ordering) {}
}
