//! Waiting for the first of several channel operations.
//!
//! ```text
//! try every arm, from a rotating start  -> one was ready: done
//! queue every arm under one episode     -> one became ready meanwhile: leave the queues, try again
//! park                                  <- a waker claims the episode, does that arm's operation
//! leave the queues                      -> the claimed arm, or none: the time limit passed
//! ```
//!
//! When the wait ends, the operation of the selected arm is done; the others have not happened. The
//! start rotates, so that arms that are always ready are selected in turn.
#![expect(unsafe_code, reason = "arms are queued by address")]

use core::{fmt, time::Duration};

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::processor::inherit::{Ranked, Ranking};
use crate::processor::record::{Kind, Reason, Record};
use crate::processor::vp::Masked;
use crate::schedule::current;
use crate::schedule::guarded::Deadline;
use crate::schedule::kill_point;
use crate::wait::channel::{Receiver, RecvArm, SendArm, Sender};
use crate::wait::sync::wait::Episode;

#[expect(unnameable_types, reason = "sealed: only the crate's own arms have operations")]
mod operation;

pub(crate) use operation::Operation;

/// An arm of a [`Select`]: a [`RecvArm`] or a [`SendArm`].
///
/// The trait cannot be implemented outside this crate.
pub trait Arm: Operation {}

impl<O: Operation> Arm for O {}

/// An arm that receives from `receiver`.
pub fn recv<T>(receiver: &Receiver<T>) -> RecvArm<'_, T> {
    RecvArm::new(receiver)
}

/// An arm that sends `message` to `sender`.
pub fn send<T>(sender: &Sender<T>, message: T) -> SendArm<'_, T> {
    SendArm::new(sender, message)
}

/// The arm with which the next `select` begins. Not an atomic addition, since a lost increment does
/// no harm.
static ROTATION: AtomicUsize = AtomicUsize::new(0);

/// A wait for the first of several operations. If the arms are known at compile time, use
/// [`select!`](crate::select!).
///
/// ```
/// use kyocho_microprocess::{channel, run, select::{self, Select}};
///
/// run(|| {
///     let (_quiet, first) = channel::bounded::<u32>(1);
///     let (talker, second) = channel::bounded(1);
///     talker.send(7).unwrap();
///     let arms = [select::recv(&first), select::recv(&second)];
///     let arms: Vec<_> = arms.iter().map(|arm| arm as &dyn select::Arm).collect();
///     assert_eq!(Select::new(&arms).wait(), 1);
/// })
/// .unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct Select<'s, 'a> {
    arms: &'s [&'a dyn Arm],
}

impl fmt::Debug for Select<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Select").field("arms", &self.arms.len()).finish()
    }
}

impl<'s, 'a> Select<'s, 'a> {
    /// A wait for the first of `arms`, each of which can be selected once.
    ///
    /// # Panics
    /// One of the arms has been selected before.
    #[must_use]
    pub fn new(arms: &'s [&'a dyn Arm]) -> Self {
        assert!(arms.iter().all(|arm| !arm.is_over()), "an arm can be selected once");
        Self { arms }
    }

    /// Waits until one operation is done and returns its index. Without arms it waits for ever.
    ///
    /// # Panics
    /// It has to wait, and the caller is not a microprocess.
    #[must_use]
    pub fn wait(self) -> usize {
        self.wait_until(None).expect("without a time limit only an arm ends the wait")
    }

    /// Waits for at most `timeout`.
    #[must_use]
    pub fn wait_timeout(self, timeout: Duration) -> Option<usize> {
        self.wait_until(Deadline::after(timeout))
    }

    /// Does one operation that needs no waiting, if there is one.
    #[must_use]
    pub fn try_now(self) -> Option<usize> {
        let start = ROTATION.load(Ordering::Relaxed);
        ROTATION.store(start.wrapping_add(1), Ordering::Relaxed);
        let count = self.arms.len();
        let mut order = (0..count).map(|offset| (start % count + offset) % count);
        order.find(|&index| self.arms[index].attempt())
    }

    fn wait_until(self, deadline: Option<Deadline>) -> Option<usize> {
        loop {
            kill_point::hot_point();
            if let Some(index) = self.try_now() {
                return Some(index);
            }
            let episode = Episode::new();
            let all_wait = self.enlist(&episode);
            let reason =
                Reason { kind: Kind::Select, object: core::ptr::from_ref(&episode).addr() };
            let ranked = Ranked { by: &self };
            let park = || {
                let me = current();
                me.begin_ranked(&ranked);
                let claimed = episode.park(deadline, reason);
                me.end_ranked();
                claimed
            };
            let claimed = if all_wait { park() } else { episode.close() };
            for arm in self.arms {
                arm.withdraw();
            }
            // An arm became ready while others were being queued, and is tried again. In each such
            // round another microprocess has made progress, so this loop cannot spin by itself.
            if let Some(index) = claimed {
                return Some(index as usize);
            }
            if all_wait {
                kill_point::after_wait(deadline);
                return None;
            }
        }
    }

    /// Queues the arms one by one; returns whether every one of them has to wait.
    fn enlist(self, episode: &Episode) -> bool {
        (0..).zip(self.arms).all(|(index, arm)| {
            // SAFETY: the arms are borrowed, and the episode lives until all arms are withdrawn.
            unsafe { arm.enlist(episode, index) }
        })
    }
}

impl Ranking for Select<'_, '_> {
    fn rank_anew(&self, record: &'static Record, _: Masked<'_>) -> Option<&'static Record> {
        self.arms.iter().for_each(|arm| arm.rank_anew(record.effective_level()));
        None
    }
}

/// Waits for the first of several channel operations and runs the body of its arm.
///
/// Arms are `recv(RECEIVER) -> RESULT => BODY` and `send(SENDER, MESSAGE) -> RESULT => BODY`, where
/// `RESULT` is a pattern for what `recv` or `send` returns. `default => BODY` runs if no arm is
/// ready, `default(TIMEOUT) => BODY` if none was ready for that time. Bodies may use `?`, `break`
/// and `return` of the code around them.
///
/// ```
/// use core::time::Duration;
/// use kyocho_microprocess::{channel, run, select, spawn};
///
/// run(|| {
///     let (to_us, numbers) = channel::rendezvous();
///     let (stop, stopped) = channel::rendezvous::<()>();
///     spawn(move || {
///         (1..=3).for_each(|number| to_us.send(number).unwrap());
///         drop(stop);
///         // The sender is kept, so that `numbers` does not end the loop below.
///         kyocho_microprocess::sleep(Duration::from_millis(1));
///         drop(to_us);
///     });
///     let mut sum = 0;
///     loop {
///         select! {
///             recv(numbers) -> number => sum += number.unwrap(),
///             recv(stopped) -> _ => break,
///             default(Duration::from_secs(60)) => panic!("no message came"),
///         }
///     }
///     assert_eq!(sum, 6);
/// })
/// .unwrap();
/// ```
///
/// A mistake in an arm is reported in the terms of this macro:
///
/// ```compile_fail
/// # use kyocho_microprocess::{channel, select};
/// # let (_sender, numbers) = channel::rendezvous::<u32>();
/// select! {
///     receive(numbers) -> number => drop(number),
/// }
/// ```
#[macro_export]
macro_rules! select {
    // All arms are parsed: bind them, wait, and run the body of the selected one.
    (@arms [$(($arm:ident $make:expr, $finish:ident, $result:pat, $body:expr))*]
     [$how:ident ($($timeout:expr)?) $otherwise:expr]) => {{
        $(let $arm = $make;)*
        let _ = $crate::select::Select::new(&[$(&$arm),*]).$how($($timeout)?);
        $(if $arm.is_selected() {
            let $result = $crate::select::$finish($arm);
            $body
        } else)* {
            $otherwise
        }
    }};
    (@arms $arms:tt [$($none:tt)*] default => $body:expr $(,)?) => {
        $crate::select!(@arms $arms [try_now () $body])
    };
    (@arms $arms:tt [$($none:tt)*] default($timeout:expr) => $body:expr $(,)?) => {
        $crate::select!(@arms $arms [wait_timeout ($timeout) $body])
    };
    (@arms [$($arms:tt)*] $end:tt recv($receiver:expr) -> $result:pat => $body:block $($rest:tt)*) => {
        $crate::select!(@comma [$($arms)*
            (arm $crate::select::recv(&$receiver), received, $result, $body)] $end $($rest)*)
    };
    (@arms [$($arms:tt)*] $end:tt recv($receiver:expr) -> $result:pat => $body:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@arms [$($arms)*
            (arm $crate::select::recv(&$receiver), received, $result, $body)] $end $($($rest)*)?)
    };
    (@arms [$($arms:tt)*] $end:tt send($sender:expr, $message:expr) -> $result:pat => $body:block $($rest:tt)*) => {
        $crate::select!(@comma [$($arms)*
            (arm $crate::select::send(&$sender, $message), sent, $result, $body)] $end $($rest)*)
    };
    (@arms [$($arms:tt)*] $end:tt send($sender:expr, $message:expr) -> $result:pat => $body:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@arms [$($arms)*
            (arm $crate::select::send(&$sender, $message), sent, $result, $body)] $end $($($rest)*)?)
    };
    // Not an arm: reports the mistake at that place. These rules come after those for arms, and
    // before the rules that accept anything.
    (@arms $arms:tt $end:tt default $($rest:tt)*) => {
        $crate::select!(@wrong "`default => BODY` or `default(TIMEOUT) => BODY` comes last")
    };
    (@arms $arms:tt $end:tt recv $($rest:tt)*) => {
        $crate::select!(@wrong "an arm that receives is `recv(RECEIVER) -> PATTERN => BODY`, with a comma behind it")
    };
    (@arms $arms:tt $end:tt send $($rest:tt)*) => {
        $crate::select!(@wrong "an arm that sends is `send(SENDER, MESSAGE) -> PATTERN => BODY`, with a comma behind it")
    };
    (@arms $arms:tt $end:tt $($rest:tt)*) => {
        $crate::select!(@wrong "an arm begins with `recv(...)`, `send(...)` or `default`")
    };
    (@wrong $what:literal) => {
        ::core::compile_error!(::core::concat!("select!: ", $what))
    };
    // A body in braces may or may not be followed by a comma.
    (@comma $arms:tt $end:tt , $($rest:tt)*) => { $crate::select!(@arms $arms $end $($rest)*) };
    (@comma $arms:tt $end:tt $($rest:tt)*) => { $crate::select!(@arms $arms $end $($rest)*) };
    ($($arms:tt)+) => {
        $crate::select!(@arms [] [wait () unreachable!("without a default an arm is selected")] $($arms)+)
    };
}

/// The result of a selected receive; for [`select!`](crate::select!).
#[doc(hidden)]
pub fn received<T>(arm: RecvArm<'_, T>) -> Result<T, crate::wait::channel::RecvError> {
    arm.finish().expect("this is the selected arm")
}

/// The result of a selected send; for [`select!`](crate::select!).
#[doc(hidden)]
pub fn sent<T>(arm: SendArm<'_, T>) -> Result<(), crate::wait::channel::SendError<T>> {
    match arm.finish() {
        Ok(result) => result,
        Err(_) => unreachable!("this is the selected arm"),
    }
}

#[cfg(test)]
mod tests;
