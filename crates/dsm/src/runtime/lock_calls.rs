//! What every thread of a program does with locks, whether it is the node's only one (`Dsm`) or one of several (`Hand`).

/// The methods, in an `impl` of who has a `call` that takes a [`Call`](crate::interface::Call) and how long it may take.
macro_rules! lock_calls {
    () => {
        /// Takes a lock; waits for it, and for another thread of this node that holds it.
        ///
        /// # Errors
        /// [`Error::Protocol`]: out of range, this thread holds it already, a node is dead.
        pub fn acquire(&mut self, lock: LockId, mode: Mode) -> Result<(), Error> {
            self.done(Call::Acquire(lock, mode, Patience::Wait))
        }

        /// Takes a lock if nobody has it; whether it did.
        ///
        /// # Errors
        /// As for [`Self::acquire`].
        pub fn try_acquire(&mut self, lock: LockId, mode: Mode) -> Result<bool, Error> {
            let call = Call::Acquire(lock, mode, Patience::Try);
            Ok(self.call(call, Limit::None)? == Outcome::Done)
        }

        /// Takes a lock, waits at most so long; whether it did.
        ///
        /// # Errors
        /// As for [`Self::acquire`].
        pub fn acquire_within(
            &mut self,
            lock: LockId,
            mode: Mode,
            limit: Duration,
        ) -> Result<bool, Error> {
            let call = Call::Acquire(lock, mode, Patience::Wait);
            Ok(self.call(call, Limit::After(limit))? == Outcome::Done)
        }

        /// Gives a lock back.
        ///
        /// # Errors
        /// [`Error::Protocol`]: this thread does not hold it, a node is dead.
        pub fn release(&mut self, lock: LockId) -> Result<(), Error> {
            self.done(Call::Release(lock))
        }

        /// Counts all that this node knows of this epoch, by whomever it was written, as written under a lock that it holds exclusively: who takes
        /// the lock next sees it, as under release consistency. Costs as much as all that goes with the lock then. Snapshots of other locks, which that
        /// node has, may change by it.
        ///
        /// # Errors
        /// As for [`Self::release`].
        pub fn publish(&mut self, lock: LockId) -> Result<(), Error> {
            self.done(Call::Publish(lock))
        }

        /// Gives an exclusive lock back, waits for a signal, and takes it again.
        ///
        /// # Errors
        /// As for [`Self::release`].
        pub fn wait(&mut self, lock: LockId, condition: ConditionId) -> Result<(), Error> {
            self.done(Call::WaitOn(lock, condition))
        }

        /// Signals who waits on a condition of a lock, which need not be held.
        ///
        /// # Errors
        /// [`Error::Protocol`]: out of range, a node is dead.
        pub fn signal(
            &mut self,
            lock: LockId,
            condition: ConditionId,
            who: Who,
        ) -> Result<(), Error> {
            self.done(Call::Signal(lock, condition, who))
        }

        fn done(&mut self, call: Call) -> Result<(), Error> {
            self.call(call, Limit::None).map(|_| ())
        }
    };
}

pub(crate) use lock_calls;
