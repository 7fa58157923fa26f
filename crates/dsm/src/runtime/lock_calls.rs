//! Calls about locks, for a node's only thread (`Dsm`) and for one of several (`NodeThread`).

/// Defines the methods for a type that has a method `call` with a [`Call`](crate::interface::Call)
/// and its time limit.
macro_rules! lock_calls {
    () => {
        /// Acquires a lock. Waits for it, also if another thread of this node holds it.
        ///
        /// # Errors
        /// [`Error::Protocol`]: out of range, this thread already holds it, a node is dead.
        pub fn acquire(&mut self, lock: LockId, mode: Mode) -> Result<(), Error> {
            self.done(Call::Acquire(lock, mode, WaitPolicy::Wait))
        }

        /// Acquires a lock if it is free. Returns whether it did.
        ///
        /// # Errors
        /// As for [`Self::acquire`].
        pub fn try_acquire(&mut self, lock: LockId, mode: Mode) -> Result<bool, Error> {
            let call = Call::Acquire(lock, mode, WaitPolicy::Try);
            Ok(self.call(call, Limit::None)? == Outcome::Done)
        }

        /// Acquires a lock, and waits at most `limit`. Returns whether it did.
        ///
        /// # Errors
        /// As for [`Self::acquire`].
        pub fn acquire_within(
            &mut self,
            lock: LockId,
            mode: Mode,
            limit: Duration,
        ) -> Result<bool, Error> {
            let call = Call::Acquire(lock, mode, WaitPolicy::Wait);
            Ok(self.call(call, Limit::After(limit))? == Outcome::Done)
        }

        /// Releases a lock.
        ///
        /// # Errors
        /// [`Error::Protocol`]: this thread does not hold it, a node is dead.
        pub fn release(&mut self, lock: LockId) -> Result<(), Error> {
            self.done(Call::Release(lock))
        }

        /// Adds all writes of this epoch that this node knows, by any node, to a lock that it holds
        /// exclusively. The next holder sees them, as under release consistency. The cost is that
        /// of sending them with the lock. Snapshots of other locks that the next holder has may
        /// change.
        ///
        /// # Errors
        /// As for [`Self::release`].
        pub fn publish(&mut self, lock: LockId) -> Result<(), Error> {
            self.done(Call::Publish(lock))
        }

        /// Releases an exclusive lock, waits for a signal, and acquires the lock again.
        ///
        /// # Errors
        /// As for [`Self::release`].
        pub fn wait(&mut self, lock: LockId, condition: ConditionId) -> Result<(), Error> {
            self.done(Call::WaitOn(lock, condition))
        }

        /// Signals threads that wait on a condition of a lock. The caller need not hold the lock.
        ///
        /// # Errors
        /// [`Error::Protocol`]: out of range, a node is dead.
        pub fn signal(
            &mut self,
            lock: LockId,
            condition: ConditionId,
            who: Waiters,
        ) -> Result<(), Error> {
            self.done(Call::Signal(lock, condition, who))
        }

        fn done(&mut self, call: Call) -> Result<(), Error> {
            self.call(call, Limit::None).map(|_| ())
        }
    };
}

pub(crate) use lock_calls;
