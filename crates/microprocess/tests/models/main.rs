//! The runtime's protocols in every order of memory accesses of two or three threads (loom).
//!
//! The models run the real code: files of `src` are compiled a second time here, against a [`prim`]
//! and a [`futex`] that use loom. If they use more of the runtime, it is replaced by as little as
//! they need (`kernel_thread`, `guarded`, ...). Code that is duplicated instead is marked.
//!
//! | model | real code | mutants, which must fail |
//! |---|---|---|
//! | [`bias`] | `bias.rs`, `claim.rs`'s mask | coming in without waiting for sections; a section without a barrier; relaxed orderings |
//! | [`claim`] | `claim.rs` | a look before the claim; a look that ignores the mask, or the program counter |
//! | [`wait_word`] | `wait_word.rs` | a wait that does not compare, a look that does not acquire; relaxed orderings |
//! | [`inbox`] | `inbox.rs`, `attention.rs` | resting although something was raised; a handled message that keeps its link; relaxed orderings |
//! | [`closed`] | `inbox.rs` | an inbox that is not closed; a message that is dropped there, or only where the home is the same; relaxed orderings |
//! | [`idle`] | `attention.rs`, `inbox.rs` | a check of a sleeping holder's data without a claim, or before it; a holder that rises without waiting; relaxed orderings |
//! | [`pool`] | `pool.rs` | a head without a tag; a reserve that is taken for a spare |
//! | [`tenure`] | `tenure.rs` | a state that is set before the home; an id that is not ended first; relaxed orderings |
//! | [`ordered`] | `orders/word.rs`, `inbox.rs`, `attention.rs` | an order after its message; a kill that does not end a wait; a resume without effect, or one that ends a wait; an id that is not checked; relaxed orderings |
//! | [`host_level`] | `reflection/host_level.rs` | two changes at once, or one recorded too early; a process started during a change; relaxed orderings |
//! | [`bell`] | `bell/ring.rs` | a last check or a count at the wrong time, on either side; relaxed orderings |
//! | [`locks`] | `sync/` | a guard that is left before its waiter is parked; relaxed orderings |
//! | [`inheritance`] | `inherit/`, `sync/owned.rs`, `sync/raw_mutex.rs` | a home that applies no level; chains without locks; relaxed orderings |
//! | [`channels`] | `channel/`, and select's waits in `sync/wait.rs` | a guard that is left before its waiter is parked |
//!
//! `cargo test -p kyocho-microprocess --test models` takes some seconds. If three threads have too
//! many orders, loom bounds the preemptions: see [`explore`].
#![expect(
    unsafe_code,
    reason = "the unsafe code of the real files, and words shared between loom's threads"
)]
#![expect(dead_code, unreachable_pub, reason = "the models use only a part of the real code")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "a replacement has the name of what it replaces"
)]

// Makes `kyocho_sys::prim` in the real code refer to the modules here.
extern crate self as kyocho_sys;

pub mod futex;
pub mod prim;
pub mod scheduling;
pub mod task;

mod bell;
mod bias;
mod claim;
mod closed;
mod host_level;
mod idle;
mod inbox;
mod inheritance;
mod ordered;
mod pool;
mod tenure;
mod wait_word;

mod channels;
mod locks;

// Replacements for the rest of the runtime, under the names that the real code uses.
mod channel;
mod foreign_locks;
mod guarded;
mod inherit;
mod instruments;
mod kernel_thread;
mod kill_point;
#[path = "../../src/data/priority.rs"]
mod priority;
mod record;
mod reflection;
mod schedule;
mod select;
mod spin;
mod sync;
mod vp;

// The folders of `src`, for the paths in the real code.
mod data {
    pub(crate) use crate::priority;
}
mod protocol {
    pub(crate) mod pause {
        pub(crate) use crate::reflection::{RAISED, let_others_run};
    }
}
mod processor {
    pub(crate) use crate::{foreign_locks, inherit, instruments, kernel_thread, record, spin, vp};
}
mod wait {
    pub(crate) use crate::{select, sync};
}

/// Runs `body` in every order with at most `preemptions_max` preemptions; `None`: in every order.
fn explore(preemptions_max: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions_max;
    builder.check(body);
}

/// Leaks `value` for the length of the test: the real code takes static references.
fn for_ever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Runs a model of a mutant, which must fail.
fn must_fail(model: impl FnOnce()) {
    let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(model));
    assert!(outcome.is_err(), "the mutant passes in every order");
}
