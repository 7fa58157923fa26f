//! Priority inheritance: who is waited for runs at the priority of whoever waits, through chains, exactly as long as the wait.
//!
//! ```text
//!   waiter, level 40 ── waits for ──► mutex ── donation: 40 ──► holder, asked for 10, runs at 40
//!                                                                 └── waits for ──► mutex ── donation: 40 ──► its holder ...
//! ```
//!
//! A lock with an owner (a mutex, a reader-writer lock that a writer holds) *donates* the level of its first waiter to the owner, and a
//! joiner its level to whom it joins. A record adds up what it is given: `effective = max(asked, inherited)`. Where nobody waits, there is no
//! donation, and locking and unlocking cost what they cost without all this. A waiter that is less urgent than the owner donates as well: the
//! owner may ask for less while it holds the lock, and nobody tells its locks. A joiner that is less urgent gives nothing: who is joined
//! knows its joiner, and has it look again when it asks for less (`remind_joiner`).
//!
//! When an effective level changes, the record's home is told (*Changed*), and if the record itself waits, it moves in the queue of what it
//! waits for, which may change that one's donation, and so on, for at most 64 steps ([`propagate`]). In a ring of waits levels
//! rise to the highest, so that ends; there they do not sink again, but nobody in a ring runs again either, unless by a time limit.
//!
//! | who waits for | who inherits |
//! |---|---|
//! | a mutex, alone or after a condition variable | its holder |
//! | a reader-writer lock that a writer holds | the writer; readers are many, and not known |
//! | the end of another | that one |
//! | a call to another process | its worker, by the level in the frame (`gate`) |
//! | a semaphore, a barrier, a scope, a notification | nobody: whoever will release, arrive or notify is not known before it does |
//! | room or a message in a channel | nobody: any holder of the other end may come, and ends are cloned and handed on |
//!
//! Where nobody inherits, waiters are served by priority, first come first served among equals, and one whose priority changes while it waits is
//! queued anew ([`Ranking`]). What needs more takes a mutex around its state, or a call.
//!
//! **Lock order:** an object's guard, then a record's inheritance lock; the other way round it is only tried ([`Source::try_pass_on`]). No two
//! inheritance locks are waited for at once.
//!
//! **Invariant:** while `waits` of a record is set, what it points to, the waiter's own frame and the object, is alive: it is cleared, under
//! the object's guard and the record's lock, before the wait ends.

mod chain;
mod donation;
mod given;
mod join;

pub(crate) use chain::{PassedOn, Ranked, Ranking, Source, Wait, propagate, take_over};
pub(crate) use donation::Donation;
pub(crate) use given::Inheritance;
pub(crate) use join::Join;

#[cfg(test)]
mod tests;
