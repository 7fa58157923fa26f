//! Microprocesses that may borrow from the code that creates them.
#![expect(
    unsafe_code,
    reason = "promises that borrowing microprocesses end before what they borrow"
)]

use core::{fmt, marker::PhantomData, panic::AssertUnwindSafe, ptr};
use std::{
    io::Result,
    panic::{catch_unwind, resume_unwind},
    sync::Arc,
};

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};

use crate::processor::record::{Kind, Reason, Record};
use crate::processor::slot;
use crate::schedule;
use crate::schedule::guarded::Guarded;
use crate::schedule::kill_point;
use crate::thread::microprocess::Microprocess;
use crate::thread::spawn::{Builder, JoinHandle};
use crate::wait::sync::{
    wait::{Outcome, Waiter, wait},
    wait_queue::WaitQueue,
};

/// The common state of the microprocesses of a scope. Lies in the frame of [`scope`].
#[derive(Debug)]
struct Members {
    state: Guarded<State>,
    /// A member that was not joined has panicked.
    panicked: AtomicBool,
    /// The microprocess that waits for the members was killed, so they are killed, too.
    killed: AtomicBool,
}

#[derive(Debug)]
struct State {
    running: usize,
    /// The microprocess that leaves the scope.
    waiters: WaitQueue,
}

impl Members {
    fn enter(&self) -> Membership<'_> {
        self.state.enter().running += 1;
        Membership { members: self, has_begun: false }
    }

    fn leave(&self) {
        let mut state = self.state.enter();
        state.running -= 1;
        if state.running == 0
            && let Some(waiter) = state.waiters.pop()
        {
            waiter.wake(state.vp(), Outcome::Granted);
        }
    }

    /// Waits until all members have left.
    fn wait(&self) {
        loop {
            let state = self.state.enter();
            if state.running == 0 {
                return;
            }
            let waiter = Waiter::new(state.microprocess(), 0);
            let reason = Reason { kind: Kind::Scope, object: ptr::from_ref(self).addr() };
            let outcome =
                wait(&self.state, state, |state| &mut state.waiters, &waiter, None, reason);
            // The last member may still hold the guard.
            drop(self.state.enter());
            if outcome == Outcome::TimedOut {
                // Killed. The members must end first, since they borrow from this frame.
                self.kill();
            }
        }
    }

    /// Makes the calling microprocess a member.
    fn join(&self) {
        let me = schedule::current();
        me.scope.store(ptr::from_ref(self).cast_mut().cast(), Ordering::SeqCst);
        if self.killed.load(Ordering::SeqCst) {
            let _myself = Microprocess::of(me).kill();
        }
    }

    /// Kills all members. Those that have not begun kill themselves when they begin.
    fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        let scope = ptr::from_ref(self).addr();
        for record in
            slot::all().filter(|record| record.scope.load(Ordering::SeqCst).addr() == scope)
        {
            // If it has ended meanwhile, there is nothing to do.
            let _over = Microprocess::of(record).kill();
        }
    }
}

/// Counts one member, from its creation on, whether it ever begins or not. Dropped after everything
/// else of the member.
struct Membership<'scope> {
    members: &'scope Members,
    has_begun: bool,
}

impl Membership<'_> {
    /// Called when the microprocess of this member begins.
    fn begin(&mut self) {
        self.has_begun = true;
        self.members.join();
    }
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        if self.has_begun {
            schedule::current().scope.store(ptr::null_mut(), Ordering::SeqCst);
        }
        self.members.leave();
    }
}

/// A member that is to begin. If it is killed before that, its fields are dropped in this order.
struct Member<'scope, F, T> {
    body: F,
    packet: Arc<Packet<'scope, T>>,
    membership: Membership<'scope>,
}

impl<T, F: FnOnce() -> T> Member<'_, F, T> {
    fn run(self) {
        let Self { body, packet, mut membership } = self;
        membership.begin();
        let result = catch_unwind(AssertUnwindSafe(|| {
            kill_point::hot_point();
            body()
        }));
        *packet.result.enter() = Some(result);
        // The result may borrow from the code around the scope. If its handle was dropped, the
        // result is dropped here, before the scope can end.
        drop(packet);
        drop(membership);
    }
}

/// Removes `record`, abandoned while it ran, from its scope, if it is a member of one.
pub(crate) fn leave_abandoned(record: &Record) {
    let members = record.scope.swap(ptr::null_mut(), Ordering::SeqCst).cast::<Members>();
    // SAFETY: null, or the members of a scope that waits for this record to leave.
    if let Some(members) = unsafe { members.as_ref() } {
        members.leave();
    }
}

/// Creates microprocesses within [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    members: Members,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

/// Runs `body`, which may create microprocesses that borrow local variables. Returns when all of
/// them have ended, as [`std::thread::scope`] does.
///
/// ```
/// use kyocho_microprocess::{run, scope};
///
/// run(|| {
///     let words = ["one", "two", "three"];
///     let letters: usize = scope(|scope| {
///         let lengths = words.each_ref().map(|word| scope.spawn(|| word.len()));
///         lengths.into_iter().map(|length| length.join().unwrap()).sum()
///     });
///     assert_eq!(letters, 11);
/// })
/// .unwrap();
/// ```
///
/// # Panics
/// `body` panicked, or a microprocess of the scope that was not joined did.
pub fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let state = Guarded::new(State { running: 0, waiters: WaitQueue::new() });
    let members =
        Members { state, panicked: AtomicBool::new(false), killed: AtomicBool::new(false) };
    let scope = Scope { members, scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    scope.members.wait();
    kill_point::hot_point();
    match result {
        Err(panic) => resume_unwind(panic),
        Ok(_) if scope.members.panicked.load(Ordering::Relaxed) => {
            panic!("a scoped microprocess panicked")
        }
        Ok(value) => value,
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Creates a microprocess that runs `body` at the caller's priority.
    ///
    /// # Panics
    /// There is no memory for a stack: [`spawn_with`](Self::spawn_with) returns that as an error.
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_with(Builder::new(), body).expect("there is memory for one more stack")
    }

    /// Creates a microprocess as `builder` says.
    ///
    /// # Errors
    /// There is no memory for a stack, or no such virtual processor (`InvalidInput`).
    pub fn spawn_with<F, T>(
        &'scope self,
        builder: Builder,
        body: F,
    ) -> Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let members = &self.members;
        let packet = Arc::new(Packet { result: Guarded::new(None), members });
        let member = Member { body, packet: Arc::clone(&packet), membership: members.enter() };
        // SAFETY: the scope is not left before the membership is dropped, and after that the
        // microprocess uses nothing that it borrowed.
        let handle = unsafe { builder.spawn_borrowing(move || member.run()) }?;
        Ok(ScopedJoinHandle { handle, packet })
    }
}

/// Where a member leaves its result.
struct Packet<'scope, T> {
    result: Guarded<Option<std::thread::Result<T>>>,
    members: &'scope Members,
}

impl<T> Drop for Packet<'_, T> {
    fn drop(&mut self) {
        if matches!(self.result.get_mut(), Some(Err(_))) {
            self.members.panicked.store(true, Ordering::Relaxed);
        }
    }
}

/// The right to wait for a microprocess of a scope and to take its result.
pub struct ScopedJoinHandle<'scope, T> {
    handle: JoinHandle<()>,
    packet: Arc<Packet<'scope, T>>,
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the end of the microprocess.
    ///
    /// # Errors
    /// The payload, if it panicked.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn join(self) -> std::thread::Result<T> {
        self.handle.join()?;
        let result = self.packet.result.enter().take();
        result.expect("a member stores its result before it ends")
    }

    /// The microprocess.
    #[must_use]
    pub fn microprocess(&self) -> Microprocess {
        self.handle.microprocess()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

#[cfg(test)]
mod tests;
