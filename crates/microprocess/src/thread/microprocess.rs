//! Handles to microprocesses, and the calls of a microprocess about itself.

use core::fmt;
use core::ptr;
use core::time::Duration;

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::data::deadline::Deadline;
use crate::data::priority::Priority;
use crate::processor::inherit;
use crate::processor::instruments;
use crate::processor::record::{ANYWHERE, Record, remote};
use crate::processor::vp::attention;
use crate::schedule::{self, mask};

/// A handle to a microprocess. It may be kept after the microprocess has ended.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// use kyocho_microprocess::{Microprocess, park, spawn};
/// let me = Microprocess::current();
/// spawn(move || me.unpark());
/// park();
/// # }).unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct Microprocess {
    record: &'static Record,
    id: u64,
}

impl fmt::Debug for Microprocess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Microprocess").field("id", &self.id).finish_non_exhaustive()
    }
}

impl PartialEq for Microprocess {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.record, other.record) && self.id == other.id
    }
}

impl Eq for Microprocess {}

impl Microprocess {
    pub(crate) fn new(record: &'static Record, id: u64) -> Self {
        Self { record, id }
    }

    pub(crate) fn of(record: &'static Record) -> Self {
        Self::new(record, record.id())
    }

    /// The caller.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    #[must_use]
    pub fn current() -> Self {
        Self::of(schedule::current())
    }

    /// The caller, if it is a microprocess; `None` on other kernel threads.
    #[must_use]
    pub fn try_current() -> Option<Self> {
        schedule::try_current().map(Self::of)
    }

    /// Its id, which no other microprocess of the address space has or had.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn record(&self) -> &'static Record {
        self.record
    }

    fn is_alive(&self) -> bool {
        self.record.id() == self.id
    }

    /// The name it was given, while it lives.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let section = mask();
        let name = self.record.name.get();
        let alive = self.is_alive();
        section.leave();
        if alive { name.as_str().map(str::to_owned) } else { None }
    }

    /// Its priority; the lowest once it has ended.
    #[must_use]
    pub fn priority(&self) -> Priority {
        let section = mask();
        let level = self.record.asked_level();
        section.leave();
        Priority::new(level).unwrap_or(Priority::LOWEST)
    }

    /// The priority at which it runs: its own, or one that it inherits from its waiters. The lowest
    /// once it has ended.
    #[must_use]
    pub fn effective_priority(&self) -> Priority {
        let section = mask();
        let level = if self.is_alive() { self.record.effective_level() } else { 0 };
        section.leave();
        Priority::new(level).unwrap_or(Priority::LOWEST)
    }

    /// Changes its priority. If it is runnable, it is queued anew, behind those of its new
    /// priority. If it runs, it continues unless another one is more urgent now. If it waits, it is
    /// queued anew where it waits. On another virtual processor this happens at the next scheduling
    /// point. While more urgent microprocesses wait for it, it runs at their priority all the same.
    pub fn set_priority(&self, priority: Priority) {
        self.change(|record| record.ask_level(priority.level()));
    }

    /// Sets its parameter for the user scheduler: see
    /// [`Builder::parameter`](crate::Builder::parameter).
    pub fn set_parameter(&self, parameter: u64) {
        self.change(|record| record.scheduling.set_parameter(parameter));
    }

    /// Pins it to virtual processor `index`, or to none. It moves there at its next scheduling
    /// point; if it makes no call into the runtime, at the end of its time slice. An index without
    /// a running virtual processor has no effect.
    ///
    /// ```
    /// # kyocho_microprocess::Runtime::builder().virtual_processors(2).build().run(|| {
    /// use kyocho_microprocess::{Microprocess, virtual_processor};
    /// Microprocess::current().set_virtual_processor(Some(1));
    /// assert_eq!(virtual_processor(), 1);
    /// # }).unwrap();
    /// ```
    pub fn set_virtual_processor(&self, index: Option<usize>) {
        self.change(|record| record.pin_to(index.unwrap_or(ANYWHERE)));
    }

    /// The virtual processor it is pinned to.
    #[must_use]
    pub fn pinned_to(&self) -> Option<usize> {
        Some(self.record.pin()).filter(|&pin| pin != ANYWHERE && self.is_alive())
    }

    /// Changed: stores what is asked for, and informs its virtual processor.
    fn change(&self, ask: impl FnOnce(&'static Record)) {
        let section = mask();
        if self.is_alive() {
            ask(self.record);
            let vp = section.masked();
            if vp.is_home_of(self.record) {
                vp.changed(self.record);
                vp.attention.fetch_or(attention::RECONSIDER, Ordering::Relaxed);
            } else {
                self.record.post_from(vp, remote::CHANGED);
            }
            inherit::propagate(vp, self.record);
        }
        section.leave();
    }

    /// Ends its [`park`], or the next one if it is not parked. May be called from any kernel
    /// thread.
    ///
    /// Does nothing once it has ended.
    pub fn unpark(&self) {
        let section = mask();
        instruments::release(self.record);
        if self.is_alive() {
            let vp = section.masked();
            if vp.is_home_of(self.record) {
                vp.unpark(self.record);
            } else {
                self.record.post_from(vp, remote::UNPARK);
            }
        }
        section.leave();
    }

    /// A word that becomes non-zero when a stackless microprocess should end its step: its time
    /// slice is over, a more urgent microprocess waits, or there is an order for it. The word is
    /// cleared when the next step begins. Polling costs a single load.
    #[must_use]
    pub fn poll_word(&self) -> &AtomicU32 {
        &self.record.poll
    }

    /// Whether [`poll_word`](Self::poll_word) is non-zero.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.record.poll.load(Ordering::Relaxed) != 0
    }
}

/// Whether the caller is a microprocess without a stack, in a step.
///
/// # Panics
/// The caller is not a microprocess.
#[must_use]
pub fn is_stackless() -> bool {
    schedule::current().is_stackless.get()
}

/// The index of the caller's virtual processor, which may change at the next call.
///
/// # Panics
/// The caller is not a microprocess.
#[must_use]
pub fn virtual_processor() -> usize {
    let section = mask();
    let index = section.vp.running().home().index;
    section.leave();
    index
}

/// Lets others of the caller's priority or above run first.
///
/// # Panics
/// The caller is not a microprocess.
#[inline]
pub fn yield_now() {
    schedule::yield_now();
}

/// Waits for an [`unpark`](Microprocess::unpark); returns at once if one came already. May return
/// without one.
///
/// # Panics
/// The caller is not a microprocess.
pub fn park() {
    schedule::park(None);
}

/// As [`park`], but at most for `limit`.
///
/// # Panics
/// The caller is not a microprocess.
pub fn park_timeout(limit: Duration) {
    schedule::park(Deadline::after(limit));
}

/// Waits for `duration`. Other microprocesses run meanwhile.
///
/// # Panics
/// The caller is not a microprocess.
pub fn sleep(duration: Duration) {
    match Deadline::after(duration) {
        Some(deadline) => schedule::sleep_until(deadline),
        // The end is past the clock's range.
        None => loop {
            park();
        },
    }
}
