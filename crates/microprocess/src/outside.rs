//! Wakes that come from outside the runtime.

use core::fmt;

use crate::schedule;
use crate::shared::Shared;

/// Says that a kernel thread of no runtime will wake somebody: while one exists, waiting for that is no deadlock.
///
/// Such a thread may call whatever does not wait: it may unpark, release, notify, and send where there is room. A runtime in
/// which everybody waits for it looks stuck from inside; this tells otherwise.
///
/// ```
/// use kyocho_microprocess::{Outside, channel, run};
///
/// let sum: u32 = run(|| {
///     let (sender, receiver) = channel::unbounded();
///     let outside = Outside::expect();
///     std::thread::spawn(move || {
///         (1..=4).for_each(|n| sender.send(n).unwrap());
///         drop(sender);
///         drop(outside);
///     });
///     receiver.into_iter().sum()
/// })
/// .unwrap();
/// assert_eq!(sum, 10);
/// ```
#[must_use = "the promise ends when it is dropped"]
pub struct Outside {
    shared: &'static Shared,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

impl Outside {
    /// Makes the promise to the caller's runtime; it may be dropped on any kernel thread.
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn expect() -> Self {
        let section = schedule::mask();
        let shared = section.vp.shared();
        section.leave();
        shared.expect_outside();
        Self { shared }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.shared.forget_outside();
    }
}

#[cfg(test)]
mod tests {
    use super::Outside;
    use crate::{Runtime, sleep};
    use core::time::Duration;

    #[test]
    fn waiting_is_a_deadlock_only_once_nobody_outside_is_expected() {
        let (tell, told) = std::sync::mpsc::channel();
        let run = kyocho_sys::prim::thread::spawn(move || {
            let main = move || {
                tell.send(Outside::expect()).unwrap();
                sleep(Duration::MAX);
            };
            Runtime::builder().virtual_processors(1).build().run(main)
        });
        let outside: Outside = told.recv().unwrap();
        // However long it waits: nothing ends it before this.
        drop(outside);
        let deadlock = run.join().unwrap();
        assert_eq!(deadlock.unwrap_err().waiting.len(), 1);
    }
}
