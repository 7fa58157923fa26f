//! Priority inheritance: the owner of a lock runs at the priority of its most urgent waiter,
//! exactly as long as the wait lasts. Chains of waits pass priorities on.
//!
//! ```text
//!   waiter, level 40 ── waits for ──► mutex ── donation: 40 ──► holder, asked for 10, runs at 40
//!                                                                 └── waits for ──► mutex ── donation: 40 ──► its holder ...
//! ```
//!
//! A lock with an owner (a mutex, a reader-writer lock that a writer holds) *donates* the level of
//! its first waiter to the owner. A joiner donates its level to the microprocess that it joins. A
//! record combines its donations: `effective = max(asked, inherited)`. Without waiters there is no
//! donation, and locking and unlocking cost nothing extra.
//!
//! A waiter that is less urgent than the owner donates as well. The owner may lower its own
//! priority while it holds the lock, and its locks are not informed of that. A joiner that is less
//! urgent donates nothing: the joined record knows its joiner, and makes it check again when its
//! own priority falls (`remind_joiner`).
//!
//! When an effective level changes, the record's home is informed (*Changed*). If the record itself
//! waits, it moves in the queue of the object that it waits for. That may change the donation of
//! that object, and so on, for at most 64 steps ([`propagate`]). In a ring of waits, levels rise to
//! the highest, so the propagation ends. They do not fall again in a ring, but microprocesses in a
//! ring do not run again either, except after a time limit.
//!
//! | a microprocess waits for | its level goes to |
//! |---|---|
//! | a mutex, directly or after a condition variable | the holder |
//! | a reader-writer lock that a writer holds | the writer; readers are many, and not recorded |
//! | the end of another microprocess | that microprocess |
//! | a call to another process | the worker, by the level in the frame (`gate`) |
//! | a semaphore, a barrier, a scope, a notification | none: it is not known in advance which microprocess will release, arrive or notify |
//! | room or a message in a channel | none: any holder of the other end may come, and ends are cloned and passed on |
//!
//! The objects of the last two rows pass no level on. They serve their waiters by priority, and
//! equal ones first come, first served. A waiter whose priority changes is queued anew
//! ([`Ranking`]). A program that needs inheritance there takes a mutex around its state, or makes a
//! call.
//!
//! **Lock order:** an object's guard, then a record's inheritance lock. In the opposite order the
//! guard is only tried ([`Source::try_pass_on`]). No thread waits for a second inheritance lock
//! while it holds one.
//!
//! **Invariant:** while `waits` of a record is set, what it points to is alive: the waiter's own
//! frame and the object. It is cleared before the wait ends, under the object's guard and the
//! record's lock.

mod chain;
mod donation;
mod join;
mod state;

pub(crate) use chain::{PassedOn, Ranked, Ranking, Source, Wait, propagate, take_over};
pub(crate) use donation::Donation;
pub(crate) use join::Join;
pub(crate) use state::Inheritance;

#[cfg(test)]
mod tests;
