//! How and where a microprocess is created.
#![expect(unsafe_code, reason = "passes the caller's promise about borrows on")]

use std::io;

use kyocho_arch::Context;

use super::{JoinHandle, spawn_with};
use crate::data::deadline::Deadline;
use crate::data::priority::Priority;
use crate::data::stackless::Stackless;
use crate::processor::record::{ANYWHERE, Name, Record};
use crate::processor::scheduler::Arrival;
use crate::processor::slot;
use crate::processor::vp::{Masked, Vp};
use crate::schedule::{Section, mask};
use crate::thread::microprocess::Microprocess;

/// How a microprocess is created: its name, priority, stack, virtual processor and parameter.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// use kyocho_microprocess::{Builder, Priority};
/// let handle = Builder::new()
///     .name("urgent")
///     .priority(Priority::HIGHEST)
///     .spawn(|| 6 * 7)?;
/// assert_eq!(handle.join().unwrap(), 42);
/// # Ok::<(), std::io::Error>(()) }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    name: Option<String>,
    /// `None`: the priority of the spawner.
    priority: Option<Priority>,
    class: u8,
    placement: Placement,
}

/// The parameter for the user scheduler, and the pin of a new microprocess.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placement {
    /// A virtual processor, or [`ANYWHERE`].
    pub(super) pin: usize,
    parameter: u64,
}

impl Placement {
    pub(super) const ANY: Self = Self { pin: ANYWHERE, parameter: 0 };
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// No name, the priority of the spawner, 64 KiB of stack.
    #[must_use]
    pub const fn new() -> Self {
        Self { name: None, priority: None, class: slot::NORMAL, placement: Placement::ANY }
    }

    /// Sets the name for reports; the first 39 bytes are kept.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the priority.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the least stack size: rounded up to 64 KiB, 256 KiB, 1 MiB or 8 MiB, which is the
    /// greatest.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.class = slot::class_for(bytes);
        self
    }

    /// Pins the microprocess to virtual processor `index`. It runs only there, until
    /// [`Microprocess::set_virtual_processor`] changes that.
    #[must_use]
    pub const fn virtual_processor(mut self, index: usize) -> Self {
        self.placement.pin = index;
        self
    }

    /// Sets the parameter that the user scheduler reads with
    /// [`Entry::parameter`](crate::processor::scheduler::Entry::parameter). Its meaning is up to
    /// the scheduler: tickets or a `nice` value, for example.
    #[must_use]
    pub const fn parameter(mut self, parameter: u64) -> Self {
        self.placement.parameter = parameter;
        self
    }

    /// Sets the deadline for [`EarliestDeadline`](crate::scheduler::EarliestDeadline), as the
    /// parameter.
    #[must_use]
    pub const fn deadline(self, deadline: Deadline) -> Self {
        self.parameter(deadline.ns())
    }

    /// Creates a microprocess that runs `body`; it starts behind the runnable ones of its priority.
    ///
    /// # Errors
    /// There is no memory for a stack, or no such virtual processor (`InvalidInput`).
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn spawn<F, T>(self, body: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (name, priority) = (self.name.as_deref().map(Name::new), self.priority);
        // SAFETY: closure and result own everything that they refer to.
        unsafe { spawn_with(self.class, name, priority, self.placement, body) }
    }

    /// As [`spawn`](Self::spawn), for a closure that borrows from the caller.
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn).
    ///
    /// # Safety
    /// The microprocess ends before what `body` and `T` borrow.
    pub(crate) unsafe fn spawn_borrowing<F, T>(self, body: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let (name, priority) = (self.name.as_deref().map(Name::new), self.priority);
        // SAFETY: the caller's promise.
        unsafe { spawn_with(self.class, name, priority, self.placement, body) }
    }

    /// Creates a microprocess without a stack.
    ///
    /// # Errors
    /// There is no memory for its record, or no such virtual processor (`InvalidInput`).
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn spawn_stackless(self, machine: Box<dyn Stackless>) -> io::Result<Microprocess> {
        let name = self.name.as_deref().map(Name::new);
        let section = mask();
        let vp = section.masked();
        let spawner = vp.running();
        if !self.placement.is_possible(&vp) {
            return no_such_processor(section, self.placement.pin);
        }
        let Some(record) = vp.take_slot(slot::STACKLESS) else { return no_memory(section) };
        let level = level_for(self.priority, spawner);
        record.renew(vp.vp(), vp.new_id(), level, Context::NULL);
        record.name.set(name.unwrap_or(Name::NONE));
        record.is_stackless.set(true);
        record.in_place.set(true);
        record.special.set(true);
        // Empty before: the former machine was removed when it ended.
        record.machine.set(Some(machine));
        vp.counters.spawned.bump();
        let microprocess = Microprocess::of(record);
        start(vp, record, self.placement);
        section.leave();
        Ok(microprocess)
    }
}

impl Placement {
    #[inline]
    pub(super) fn is_possible(self, vp: &Vp) -> bool {
        self.pin == ANYWHERE || vp.shared().vp(self.pin).is_some()
    }
}

#[cold]
pub(super) fn no_such_processor<T>(section: Section, index: usize) -> io::Result<T> {
    let count = section.vp.shared().concurrency();
    section.leave();
    let text =
        format!("there is no virtual processor {index}: they are numbered 0 to {}", count - 1);
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Makes a new microprocess runnable on a virtual processor where it may run.
#[inline]
pub(super) fn start(vp: Masked<'_>, record: &'static Record, placement: Placement) {
    if placement.parameter != 0 {
        record.scheduling.set_parameter(placement.parameter);
    }
    if placement.pin != ANYWHERE {
        record.pin_to(placement.pin);
        if let Some(destination) = record.destination() {
            return record.send_to(vp, destination);
        }
    }
    vp.queue().push(record, Arrival::Spawned);
    vp.contend(record);
}

pub(super) fn level_for(priority: Option<Priority>, spawner: &'static Record) -> u8 {
    priority.map_or_else(|| spawner.asked_level(), Priority::level)
}

#[cold]
pub(super) fn no_memory<T>(section: Section) -> io::Result<T> {
    section.leave();
    Err(io::ErrorKind::OutOfMemory.into())
}
