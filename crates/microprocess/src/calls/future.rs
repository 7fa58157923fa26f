//! Futures: a microprocess can wait for one, and a stackless microprocess can run one.
//!
//! # Futures of other runtimes
//! Nothing here depends on tokio, but futures for tokio work. A future asks to be polled by calling
//! a waker, and any thread may call that. What it needs in addition is the reactor for which it was
//! written, on a separate kernel thread:
//!
//! | futures of | need |
//! |---|---|
//! | channels, locks and timers of their own (`futures`, `async-channel`, `tokio::sync`) | nothing |
//! | `async-io` and what is built on it | nothing: it starts its reactor itself |
//! | `tokio::net`, `tokio::time`, `tokio::spawn`; `hyper`, `reqwest`, `sqlx` and their like | a tokio runtime somewhere, and [`within`] its context |
#![expect(unsafe_code, reason = "a waker that counts its clones")]

use core::any::Any;
use core::fmt;
use core::future::{Future, poll_fn};
use core::mem::{self, ManuallyDrop};
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::io;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::data::killed::Killed;
use crate::data::stackless::{Stackless, Step};
use crate::processor::record::{Kind, MicroprocessRef, Reason};
use crate::processor::shared::Shared;
use crate::schedule;
use crate::schedule::bound::bound;
use crate::schedule::guarded::{Guarded, WakeCause, make_runnable_from};
use crate::schedule::kill_point;
use crate::thread::microprocess::{Microprocess, park};
use crate::thread::spawn::Builder;

/// The microprocess that a waker wakes.
struct Target {
    microprocess: Microprocess,
    shared: &'static Shared,
}

/// Clones of a waker may be anywhere, also on kernel threads outside any runtime. While there is
/// one, no deadlock is reported.
const TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, forget);

/// The target behind a waker's pointer; the waker keeps its reference.
fn target(data: *const ()) -> ManuallyDrop<Arc<Target>> {
    // SAFETY: each waker's pointer comes from `Arc::into_raw` and owns one reference, which it
    // keeps.
    ManuallyDrop::new(unsafe { Arc::from_raw(data.cast()) })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    let target = target(data);
    target.shared.expect_outside();
    RawWaker::new(Arc::into_raw(Arc::clone(&target)).cast(), &TABLE)
}

unsafe fn wake(data: *const ()) {
    target(data).microprocess.unpark();
    // SAFETY: waking by value consumes the waker.
    unsafe { forget(data) };
}

unsafe fn wake_by_ref(data: *const ()) {
    target(data).microprocess.unpark();
}

unsafe fn forget(data: *const ()) {
    let target = ManuallyDrop::into_inner(target(data));
    target.shared.forget_outside();
}

/// The first waker of a microprocess, kept by the microprocess itself. Unlike its clones, it does
/// not prevent deadlock reports.
struct OwnWaker {
    waker: ManuallyDrop<Waker>,
    shared: &'static Shared,
}

impl OwnWaker {
    /// The waker of the calling microprocess.
    fn new() -> Self {
        let section = schedule::mask();
        let (record, shared) = (section.vp.running(), section.vp.shared());
        section.leave();
        let target = Arc::new(Target { microprocess: Microprocess::of(record), shared });
        let raw = RawWaker::new(Arc::into_raw(target).cast(), &TABLE);
        // SAFETY: the table satisfies the contract of wakers: `Target` may be shared between
        // threads, and each waker owns one reference.
        let waker = unsafe { Waker::from_raw(raw) };
        Self { waker: ManuallyDrop::new(waker), shared }
    }
}

impl Drop for OwnWaker {
    fn drop(&mut self) {
        // Balanced by `forget`.
        self.shared.expect_outside();
        // SAFETY: dropped only here.
        unsafe { ManuallyDrop::drop(&mut self.waker) };
    }
}

/// Polls `future`. If tokio panics because it finds no context, this panics with tokio's message
/// and with what to do about it.
fn poll<F: Future>(future: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(polled) => polled,
        Err(panic) => match misses_tokio(&*panic) {
            Some(said) => panic!("{said}: {NEEDS_CONTEXT}"),
            None => resume_unwind(panic),
        },
    }
}

/// What to do if a future of tokio finds no runtime.
const NEEDS_CONTEXT: &str = "keep a tokio runtime on a kernel thread of its own, and pass \
    `within(|poll| { let _context = handle.enter(); poll() }, future)` instead of the future: see `kyocho_microprocess::within`";

/// Tokio's message, if `panic` comes from a future that was polled outside a context of tokio.
fn misses_tokio(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.filter(|text| text.contains("must be called from the context of a Tokio"))
}

/// Waits for a future on the calling microprocess; others run meanwhile.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// assert_eq!(kyocho_microprocess::block_on(async { 6 * 7 }), 42);
/// # }).unwrap();
/// ```
///
/// # Panics
/// The caller is not a microprocess, or the future panics, as a future of tokio does outside
/// [`within`].
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let own = OwnWaker::new();
    let mut context = Context::from_waker(&own.waker);
    loop {
        // Bound, so that thread-local values stay the same during a poll, whatever it calls.
        if let Poll::Ready(value) = bound(|| poll(future.as_mut(), &mut context)) {
            return value;
        }
        park();
    }
}

/// Wraps `future` so that `around` polls it, after entering a context. For futures that find their
/// runtime through a thread-local value.
///
/// A context must not be entered for longer than a poll: it belongs to the kernel thread, which may
/// be another one after a wait. `around` must call its argument once.
///
/// ```
/// use core::time::Duration;
/// use kyocho_microprocess::{block_on, run, within};
///
/// // Its reactor and its tasks run on a separate kernel thread.
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// let handle = runtime.handle().clone();
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let reactor = std::thread::spawn(move || runtime.block_on(stopped));
///
/// run(|| {
///     let soon = async { tokio::time::sleep(Duration::from_millis(1)).await };
///     let entered = |poll: &mut dyn FnMut()| {
///         let _context = handle.enter();
///         poll();
///     };
///     block_on(within(entered, soon));
/// })
/// .unwrap();
/// drop(stop);
/// reactor.join().unwrap();
/// ```
pub fn within<F: Future>(
    around: impl Fn(&mut dyn FnMut()),
    future: F,
) -> impl Future<Output = F::Output> {
    let mut future = Box::pin(future);
    poll_fn(move |context| {
        let mut polled = Poll::Pending;
        around(&mut || polled = future.as_mut().poll(context));
        polled
    })
}

/// Runs a future as a stackless microprocess.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// let handle = kyocho_microprocess::spawn_future(async { 6 * 7 }).unwrap();
/// assert_eq!(handle.join().unwrap(), 42);
/// # }).unwrap();
/// ```
///
/// # Errors
/// There is no memory for its record.
///
/// # Panics
/// The caller is not a microprocess.
pub fn spawn_future<F>(future: F) -> io::Result<FutureHandle<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let end = Arc::new(Guarded::new(End { result: None, waiting: Waiting::Nobody }));
    let machine = Machine { future: Some(Box::pin(future)), own: None, end: Arc::clone(&end) };
    let microprocess = Builder::new().spawn_stackless(Box::new(machine))?;
    Ok(FutureHandle { end, microprocess })
}

type Outcome<T> = Result<T, Box<dyn Any + Send + 'static>>;

/// What waits for the end of a future.
enum Waiting {
    Nobody,
    Microprocess(MicroprocessRef),
    Task(Waker),
}

struct End<T> {
    result: Option<Outcome<T>>,
    waiting: Waiting,
}

struct Machine<F: Future> {
    /// `None` once it has ended.
    future: Option<Pin<Box<F>>>,
    own: Option<OwnWaker>,
    end: Arc<Guarded<End<F::Output>>>,
}

impl<F> Stackless for Machine<F>
where
    F: Future + Send,
    F::Output: Send,
{
    fn step(&mut self) -> Step {
        let own = self.own.get_or_insert_with(OwnWaker::new);
        let mut context = Context::from_waker(&own.waker);
        let Some(future) = self.future.as_mut() else { return Step::Done };
        // A panic ends only the future: it is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| poll(future.as_mut(), &mut context)));
        let outcome = match polled {
            Ok(Poll::Pending) => return Step::Park,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(panic) => Err(panic),
        };
        self.finish(outcome)
    }

    fn killed(&mut self) -> Step {
        self.finish(Err(Box::new(Killed::new())))
    }
}

impl<F: Future> Machine<F> {
    /// Drops the future and passes its outcome on.
    fn finish(&mut self, outcome: Outcome<F::Output>) -> Step {
        // A panic of its destructor is ignored.
        drop(catch_unwind(AssertUnwindSafe(|| self.future = None)));
        let mut end = self.end.enter();
        end.result = Some(outcome);
        let waiting = mem::replace(&mut end.waiting, Waiting::Nobody);
        if let Waiting::Microprocess(joiner) = waiting {
            make_runnable_from(end.vp(), joiner);
        }
        drop(end);
        if let Waiting::Task(waker) = waiting {
            waker.wake();
        }
        Step::Done
    }
}

/// The right to wait for the end of a spawned future and to take its result. It is a future itself.
#[must_use = "if it is dropped, the result of the future is lost"]
pub struct FutureHandle<T> {
    end: Arc<Guarded<End<T>>>,
    microprocess: Microprocess,
}

impl<T> fmt::Debug for FutureHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureHandle").field("id", &self.microprocess.id()).finish_non_exhaustive()
    }
}

impl<T> FutureHandle<T> {
    /// The microprocess that runs the future.
    #[must_use]
    pub fn microprocess(&self) -> Microprocess {
        self.microprocess
    }

    /// Whether the future has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.end.enter().result.is_some()
    }

    /// Waits for the end of the future.
    ///
    /// # Errors
    /// The payload, if it panicked. [`Killed`], if its microprocess was killed.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn join(self) -> Outcome<T> {
        loop {
            let mut end = self.end.enter_at_point();
            if let Some(outcome) = end.result.take() {
                drop(end);
                return outcome;
            }
            end.waiting = Waiting::Microprocess(MicroprocessRef::current());
            let reason = Reason { kind: Kind::Join, object: self.microprocess.id() as usize };
            if end.park(reason) == WakeCause::TimedOut {
                self.end.enter().waiting = Waiting::Nobody;
                kill_point::after_wait(None);
            }
        }
    }
}

impl<T> Future for FutureHandle<T> {
    type Output = Outcome<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Cloned before the section and dropped after it: either may allocate or free.
        let waker = context.waker().clone();
        let mut end = self.end.enter();
        if let Some(outcome) = end.result.take() {
            drop(end);
            return Poll::Ready(outcome);
        }
        let before = mem::replace(&mut end.waiting, Waiting::Task(waker));
        drop(end);
        drop(before);
        Poll::Pending
    }
}
