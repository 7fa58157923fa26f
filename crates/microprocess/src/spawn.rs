//! Creating microprocesses, their first and last moments, and waiting for their end.
//!
//! ```text
//!   spawn: slot ◄─ closure        entry: closure ─► frame, run, result ─► slot        join: slot ─► result
//! ```
//!
//! Nothing is allocated on the way as long as closure and result are small: they lie in the microprocess's own slot.
#![expect(unsafe_code, reason = "moves closures and results into stack slots")]

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;
use std::{io, thread};

use kyocho_arch::{Context, prepare};

use crate::control::Killed;
use crate::deadline::Deadline;
use crate::inherit;
use crate::local;
use crate::microprocess::Microprocess;
use crate::orders;
use crate::priority::Priority;
use crate::record::{ANYWHERE, Kind, Name, Reason, Record, State, remote};
use crate::reflection::let_others_run;
use crate::schedule::{
    self, Section, WakeCause, mask, mask_at_point, park_in, resume_at_point, switch_away,
};
use crate::scheduler::Arrival;
use crate::slot::{self, PAYLOAD_BYTES_MAX, payload};
use crate::spin;
use crate::stackless::Stackless;
use crate::vp::Vp;

/// What a joined microprocess leaves: its value, or what it panicked with.
type Outcome<T> = thread::Result<T>;

/// How a microprocess is created: its name, priority and stack.
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
    /// `None`: the spawner's.
    priority: Option<Priority>,
    class: u8,
    placement: Placement,
}

/// What a user scheduler and the choice of a virtual processor need to know of a new microprocess.
#[derive(Debug, Clone, Copy)]
struct Placement {
    /// A virtual processor, or [`ANYWHERE`].
    pin: usize,
    parameter: u64,
}

impl Placement {
    const ANY: Self = Self { pin: ANYWHERE, parameter: 0 };
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// No name, the spawner's priority, 64 KiB of stack.
    #[must_use]
    pub const fn new() -> Self {
        Self { name: None, priority: None, class: slot::NORMAL, placement: Placement::ANY }
    }

    /// Names the microprocess, for reports; the first 39 bytes are kept.
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

    /// Asks for at least `bytes` of stack: rounded up to 64 KiB, 256 KiB, 1 MiB or 8 MiB, which is the most.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.class = slot::class_for(bytes);
        self
    }

    /// Pins the microprocess to virtual processor `index`: it runs there alone, until
    /// [`Microprocess::set_virtual_processor`] says otherwise.
    #[must_use]
    pub const fn virtual_processor(mut self, index: usize) -> Self {
        self.placement.pin = index;
        self
    }

    /// Sets what the user scheduler knows of the microprocess beyond its priority: tickets, a `nice` value, whatever it takes
    /// [`Entry::parameter`](crate::scheduler::Entry::parameter) for.
    #[must_use]
    pub const fn parameter(mut self, parameter: u64) -> Self {
        self.placement.parameter = parameter;
        self
    }

    /// Sets when the microprocess should be done, for [`EarliestDeadline`](crate::scheduler::EarliestDeadline): its parameter.
    #[must_use]
    pub const fn deadline(self, deadline: Deadline) -> Self {
        self.parameter(deadline.ns())
    }

    /// Creates a microprocess that runs `body`; it starts behind the runnable ones of its priority.
    ///
    /// # Errors
    /// No memory for a stack, or no such virtual processor (`InvalidInput`).
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn spawn<F, T>(self, body: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (name, priority) = (self.name.as_deref().map(Name::new), self.priority);
        // SAFETY: closure and result own what they refer to.
        unsafe { spawn_with(self.class, name, priority, self.placement, body) }
    }

    /// As [`spawn`](Self::spawn), for what borrows from the caller.
    ///
    /// # Errors
    /// No memory for a stack.
    ///
    /// # Safety
    /// The microprocess ends before what `body` and `T` borrow does.
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
    /// No memory for its record, or no such virtual processor (`InvalidInput`).
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn spawn_stackless(self, machine: Box<dyn Stackless>) -> io::Result<Microprocess> {
        let name = self.name.as_deref().map(Name::new);
        let section = mask();
        let vp = section.vp;
        if !self.placement.is_possible(vp) {
            return no_such_processor(section, self.placement.pin);
        }
        let spawner = vp.current.get();
        let Some(record) = vp.take_slot(slot::STACKLESS) else { return no_memory(section) };
        let level = level_for(self.priority, spawner);
        record.renew(vp, vp.new_id(), level, Context::NULL);
        record.name.set(name.unwrap_or(Name::NONE));
        record.is_stackless.set(true);
        record.in_place.set(true);
        record.special.set(true);
        // What a former machine left was taken out when it ended.
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
    fn is_possible(self, vp: &Vp) -> bool {
        self.pin == ANYWHERE || vp.shared().vp(self.pin).is_some()
    }
}

#[cold]
fn no_such_processor<T>(section: Section, index: usize) -> io::Result<T> {
    let count = section.vp.shared().concurrency();
    section.leave();
    let text =
        format!("there is no virtual processor {index}: they are numbered 0 to {}", count - 1);
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Makes a new microprocess runnable, where it may run.
#[inline]
fn start(vp: &'static Vp, record: &'static Record, placement: Placement) {
    if placement.parameter != 0 {
        record.scheduling.set_parameter(placement.parameter);
    }
    if placement.pin != ANYWHERE {
        record.pin_to(placement.pin);
        if let Some(destination) = record.destination() {
            return record.send_to(destination);
        }
    }
    vp.queue.push(record, Arrival::Spawned);
    vp.offer();
}

fn level_for(priority: Option<Priority>, spawner: Option<&'static Record>) -> u8 {
    match (priority, spawner) {
        (Some(priority), _) => priority.level(),
        (None, Some(spawner)) => spawner.asked_level(),
        (None, None) => Priority::NORMAL.level(),
    }
}

#[cold]
fn no_memory<T>(section: Section) -> io::Result<T> {
    section.leave();
    Err(io::ErrorKind::OutOfMemory.into())
}

/// Creates a microprocess that runs `body` at the caller's priority.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// let handle = kyocho_microprocess::spawn(|| 6 * 7);
/// assert_eq!(handle.join().unwrap(), 42);
/// # }).unwrap();
/// ```
///
/// # Panics
/// The caller is no microprocess, or there is no memory for a stack: [`Builder::spawn`] returns that as an error.
#[inline]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: closure and result own what they refer to.
    unsafe { spawn_with(slot::NORMAL, None, None, Placement::ANY, body) }
        .expect("memory for one more stack")
}

/// Whether a value of type `P` lies in the slot itself.
const fn fits<P>() -> bool {
    size_of::<P>() <= PAYLOAD_BYTES_MAX && align_of::<P>() <= 64
}

/// # Safety
/// The microprocess ends before what `body` and `T` borrow does.
#[inline]
unsafe fn spawn_with<F, T>(
    class: u8,
    name: Option<Name>,
    priority: Option<Priority>,
    placement: Placement,
    body: F,
) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    if const { !fits::<F>() } {
        let body: Box<dyn FnOnce() -> T + Send + '_> = Box::new(body);
        // SAFETY: the caller's promise.
        return unsafe { spawn_with(class, name, priority, placement, body) };
    }
    let section = mask();
    let vp = section.vp;
    let spawner = vp.running();
    if !placement.is_possible(vp) {
        let failed = no_such_processor(section, placement.pin);
        drop(body);
        return failed;
    }
    let Some(record) = vp.take_slot(class) else {
        let failed = no_memory(section);
        drop(body);
        return failed;
    };
    let level = level_for(priority, Some(spawner));
    let id = vp.new_id();
    // SAFETY: the slot was free.
    let context = unsafe { furnish::<F, T>(record, body) };
    record.renew(vp, id, level, context);
    match name {
        None => record.name.clear(),
        Some(name) => record.name.set(name),
    }
    vp.counters.spawned.bump();
    start(vp, record, placement);
    section.leave();
    Ok(JoinHandle { record, id, result: PhantomData })
}

/// Moves `body` into a free slot and lays out its stack.
///
/// # Safety
/// The slot is free and the caller's. The microprocess ends before what `body` and `T` borrow does.
pub(crate) unsafe fn furnish<F, T>(record: &'static Record, body: F) -> Context
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    // SAFETY: the place of the payload, right below the record of a free slot, is large enough.
    unsafe { payload::<F>(record).write(body) };
    let top = payload::<F>(record).addr().min(result_top::<T>(record));
    let top = ptr::from_ref(record).cast_mut().cast::<u8>().with_addr(top & !15);
    // SAFETY: the free stack lies below the payload.
    unsafe { prepare(top, entry::<F, T>, ptr::from_ref(record).expose_provenance()) }
}

/// Where a result of type `T` ends in the slot: the result itself, or its box where it would take too much room.
fn result_top<T>(record: &'static Record) -> usize {
    if const { fits::<Outcome<T>>() } {
        payload::<Outcome<T>>(record).addr()
    } else {
        payload::<Box<Outcome<T>>>(record).addr()
    }
}

/// Puts the result into the slot.
///
/// # Safety
/// The caller is the microprocess of the slot, and its closure is gone.
unsafe fn put_result<T>(record: &'static Record, outcome: Outcome<T>) {
    if const { fits::<Outcome<T>>() } {
        // SAFETY: the place below the record is large enough, and the stack ends below it.
        unsafe { payload::<Outcome<T>>(record).write(outcome) };
    } else {
        // SAFETY: as above.
        unsafe { payload::<Box<Outcome<T>>>(record).write(Box::new(outcome)) };
    }
}

/// Takes the result from the slot; the second value is to be dropped after the section is left.
///
/// # Safety
/// The microprocess has put it there, and nobody else takes it.
unsafe fn take_result<T>(record: &'static Record) -> Taken<T> {
    if const { fits::<Outcome<T>>() } {
        // SAFETY: the caller's promise.
        Taken::Here(unsafe { payload::<Outcome<T>>(record).read() })
    } else {
        // SAFETY: the caller's promise.
        Taken::Boxed(unsafe { payload::<Box<Outcome<T>>>(record).read() })
    }
}

/// A result on its way out of the slot. Unboxing frees memory, so it waits until events are unmasked.
enum Taken<T> {
    Here(Outcome<T>),
    Boxed(Box<Outcome<T>>),
}

impl<T> Taken<T> {
    fn into_outcome(self) -> Outcome<T> {
        match self {
            Self::Here(outcome) => outcome,
            Self::Boxed(outcome) => *outcome,
        }
    }
}

/// Where a microprocess starts. Events are masked.
unsafe extern "C" fn entry<F, T>(argument: usize) -> !
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let record = ptr::with_exposed_provenance::<Record>(argument);
    // SAFETY: `furnish` passed the address of a record.
    let record = unsafe { &*record };
    // SAFETY: `furnish` put the closure there, and nobody else takes it.
    let body = unsafe { payload::<F>(record).read() };
    // A panic ends the microprocess alone; what it shared is left as any panic leaves it. Killed before it began, it begins to unwind.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        resume_at_point();
        body()
    }));
    record.is_ending.set(true);
    local::end(record);
    // SAFETY: this is the microprocess, and the closure was moved out.
    unsafe { put_result(record, outcome) };
    finish(record, drop_result::<T>)
}

/// Ends the calling microprocess at once, with `value` as its result: calls `last`, drops microprocess-local values, and is gone.
///
/// For interfaces such as C's, whose threads may end in the middle of a call. From here on nobody can kill it, so `last` runs
/// to its end.
///
/// # Panics
/// The caller is no microprocess, or one without a stack.
///
/// # Safety
/// The microprocess was spawned with a closure that returns `T`. No value on its stack needs to be dropped, and nobody
/// else refers to one: the frames are gone without a trace, as after `longjmp`.
pub unsafe fn exit<T: Send>(value: T, last: impl FnOnce()) -> ! {
    let me = schedule::current();
    assert!(!me.is_stackless.get(), "a microprocess without a stack ends by `Step::Done`");
    me.in_place.set(false);
    me.is_ending.set(true);
    last();
    local::end(me);
    // SAFETY: this is the microprocess, whose closure was moved out when it started; `T` is the caller's promise.
    unsafe { put_result::<T>(me, Ok(value)) };
    finish(me, drop_result::<T>)
}

/// Drops the result in a slot.
fn drop_result<T>(record: &'static Record) {
    // SAFETY: called once, for a finished microprocess whose result nobody else takes.
    drop(unsafe { take_result::<T>(record) });
}

/// The last moments of the calling microprocess, whose result lies in its slot.
fn finish(me: &'static Record, drop_result: fn(&'static Record)) -> ! {
    let mut section = mask();
    me.completion.lock.acquire();
    if me.completion.detached.get() {
        me.completion.lock.release();
        section.leave();
        drop_result(me);
        section = mask();
        me.completion.lock.acquire();
    }
    let vp = section.vp;
    me.state.set(State::Finished);
    if spin::is_needed() {
        // A joiner elsewhere would recycle the stack we are on: the base finishes for us.
        me.completion.finishing.set(true);
        me.completion.lock.release();
        vp.exiting.set(Some(me));
        schedule::leave_stack(me);
    }
    me.completion.lock.release();
    // The joiner may recycle this stack, but not before it runs, which is after we have left it.
    conclude(vp, me);
    switch_away(vp, me);
    unreachable!("a finished microprocess runs")
}

/// Marks `record` finished and wakes its joiner, or frees the slot if there will be none.
#[inline]
pub(crate) fn conclude(vp: &'static Vp, record: &'static Record) {
    let completion = &record.completion;
    vp.counters.ended.bump();
    completion.lock.acquire();
    completion.finished.set(true);
    let joiner = completion.joiner.take();
    let detached = completion.detached.get();
    completion.lock.release();
    match joiner {
        Some(joiner) if ptr::eq(joiner.home(), vp) => vp.wake(joiner),
        Some(joiner) => joiner.post_from(vp, remote::WAKE),
        None if detached => vp.put_slot(record),
        None => {}
    }
}

/// Marks `record`, which runs on `vp`, ended where it stands, without a result: it never leaves its stack, which nobody gets.
pub(crate) fn conclude_abandoned(vp: &'static Vp, record: &'static Record) {
    record.state.set(State::Abandoned);
    let completion = &record.completion;
    completion.lock.acquire();
    completion.abandoned.set(true);
    // Nobody may put its slot among the free ones.
    completion.detached.set(false);
    completion.lock.release();
    conclude(vp, record);
}

/// The right to wait for a microprocess and to get its result. Dropping it lets the microprocess run on alone.
pub struct JoinHandle<T> {
    record: &'static Record,
    id: u64,
    result: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<T> JoinHandle<T> {
    /// The microprocess.
    #[must_use]
    pub fn microprocess(&self) -> Microprocess {
        Microprocess::new(self.record, self.id)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let section = mask();
        self.record.completion.lock.acquire();
        let finished = self.record.completion.finished.get();
        self.record.completion.lock.release();
        section.leave();
        finished
    }

    /// Waits for the end of the microprocess.
    ///
    /// # Errors
    /// It panicked: what it panicked with.
    ///
    /// # Panics
    /// The caller is no microprocess, and the one it waits for has not ended.
    #[inline]
    pub fn join(self) -> Result<T, Box<dyn Any + Send + 'static>> {
        let record = self.record;
        let completion = &record.completion;
        let mut section = mask_at_point();
        completion.lock.acquire();
        if !completion.finished.get() {
            let me = section.vp.running();
            completion.joiner.set(Some(me));
            completion.lock.release();
            me.joins.set(Some(record));
            let join = inherit::Join::new(record);
            let wait = inherit::Wait { source: &join };
            let ranked = inherit::Ranked { by: &join };
            me.begin_ranked(&ranked);
            if me.effective_level() > record.asked_level() {
                join.begin(section.vp, me, &wait);
            }
            let reason = Reason { kind: Kind::Join, object: self.id as usize };
            let cause = park_in(section, reason, None);
            section = mask();
            me.end_ranked();
            join.end(section.vp, me);
            if cause == WakeCause::TimedOut {
                section.leave();
                orders::after_wait(None);
                section = mask();
            }
            me.joins.set(None);
        } else {
            completion.lock.release();
        }
        if completion.abandoned.get() {
            mem::forget(self);
            section.leave();
            return Err(Box::new(Killed::new()));
        }
        // SAFETY: finished, and the handle, of which there is one, takes the result once.
        let stored = unsafe { take_result::<T>(record) };
        recycle(&section, record);
        mem::forget(self);
        section.leave();
        stored.into_outcome()
    }
}

/// Frees the slot of a finished microprocess whose result was taken.
#[inline]
fn recycle(section: &Section, record: &'static Record) {
    if section.vp.is_foreign() {
        slot::give_back(record);
    } else {
        section.vp.put_slot(record);
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let record = self.record;
        let completion = &record.completion;
        loop {
            let section = mask();
            completion.lock.acquire();
            let (finished, finishing) = (completion.finished.get(), completion.finishing.get());
            if !finished && !finishing {
                completion.detached.set(true);
            }
            completion.lock.release();
            if finished && completion.abandoned.get() {
                return section.leave();
            }
            if finished {
                // SAFETY: as in `join`.
                let stored = unsafe { take_result::<T>(record) };
                recycle(&section, record);
                section.leave();
                return drop(stored);
            }
            section.leave();
            if !finishing {
                return;
            }
            // On its way off its stack, on another virtual processor.
            let_others_run();
        }
    }
}
