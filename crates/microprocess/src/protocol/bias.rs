//! The bias of the short locks: whoever is alone need not take them.
//!
//! Masking events excludes everybody on the same virtual processor, so locks are for those on others. While one virtual processor of the
//! whole process is awake, there are none: a lock is a load and a branch. The second to wake *revokes* the bias before it touches
//! anything, and the last but one to fall asleep restores it.
//!
//! ```text
//!   awake:  0 ── enter ──► 1 ── enter: revoke, settle ──► 2, 3, …        biased: a section begins with a load
//!                            ◄── leave: restore ─────────                revoked: locks are taken
//! ```
//! Revoking is a store, then a memory barrier in all threads of the process, then a wait for every section that began before: a section sets
//! its mask first and looks at the bias afterwards, so after the barrier either its mask is seen or it sees the store. Who enters
//! sections pays no barrier of its own.
//!
//! A kernel thread of no runtime has nobody who could wait for its sections: the first one revokes the bias for good.
//!
//! **Invariant:** who enters is in no section, and enters none before [`Bias::enter`] returns; who leaves enters none before it enters again.
//!
//! Source: Paper 0 (no atomic instruction where nobody else runs); biased locks, as `tst` has them for one lock.
#![expect(unsafe_code, reason = "a list behind a gate")]

use core::cell::Cell;
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_sys::prim::hint::spin_loop;

use crate::protocol::pause::let_others_run;

/// Looks before the host is asked to run somebody else.
const LOOKS: u32 = 200;

/// Who enters: a virtual processor.
pub(crate) trait Member: Sync + 'static {
    fn presence(&self) -> &Presence<Self>
    where
        Self: Sized;
    /// Whether its events are masked, in a section that may have begun without locks.
    fn may_be_in_section(&self) -> bool;
}

/// What the bias keeps of one member.
pub(crate) struct Presence<M: 'static> {
    is_inside: AtomicBool,
    /// Behind the gate.
    next: Cell<Option<&'static M>>,
}

impl<M> Presence<M> {
    pub(crate) const fn new() -> Self {
        Self { is_inside: AtomicBool::new(false), next: Cell::new(None) }
    }
}

/// Who is inside. Behind the gate.
struct Inside<M: 'static> {
    first: Option<&'static M>,
    count: u32,
    /// Somebody whose sections nobody can wait for is inside for good.
    forever: bool,
}

/// A bias among members.
pub(crate) struct Bias<M: 'static> {
    revoked: AtomicBool,
    gate: AtomicBool,
    inside: UnsafeCell<Inside<M>>,
}

// SAFETY: `inside` is touched behind the gate alone.
unsafe impl<M: Sync> Sync for Bias<M> {}

impl<M: Member> Bias<M> {
    pub(crate) const fn new() -> Self {
        let inside = Inside { first: None, count: 0, forever: false };
        Self {
            revoked: AtomicBool::new(false),
            gate: AtomicBool::new(false),
            inside: UnsafeCell::new(inside),
        }
    }

    /// Whether locks are taken. In a section: the answer holds until it is left. What those did who were inside before is seen.
    #[inline(always)]
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// `member` comes in, from outside of any section. `barrier` returns once every other thread has passed a full memory barrier.
    pub(crate) fn enter(&self, member: &'static M, barrier: impl Fn()) {
        self.behind_the_gate(|inside| {
            let presence = member.presence();
            presence.is_inside.store(true, Ordering::SeqCst);
            presence.next.set(inside.first);
            inside.count += 1;
            if inside.count == 2 && !inside.forever {
                self.revoke(inside, barrier);
            }
            inside.first = Some(member);
        });
    }

    /// `member` goes out; it is in no section.
    pub(crate) fn leave(&self, member: &'static M) {
        // Before the gate: who is in there may wait for us.
        member.presence().is_inside.store(false, Ordering::SeqCst);
        self.behind_the_gate(|inside| {
            inside.take_out(member);
            inside.count -= 1;
            if inside.count == 1 && !inside.forever {
                self.revoked.store(false, Ordering::Release);
            }
        });
    }

    /// Somebody comes in whose sections nobody can wait for, and stays.
    pub(crate) fn enter_for_good(&self, barrier: impl Fn()) {
        self.behind_the_gate(|inside| {
            if inside.forever {
                return;
            }
            inside.forever = true;
            if inside.count < 2 {
                self.revoke(inside, barrier);
            }
        });
    }

    /// Has everybody take locks: from their present sections on, which it waits for.
    fn revoke(&self, inside: &Inside<M>, barrier: impl Fn()) {
        self.revoked.store(true, Ordering::SeqCst);
        barrier();
        let mut at = inside.first;
        while let Some(member) = at {
            let presence = member.presence();
            patiently(|| presence.is_inside.load(Ordering::SeqCst) && member.may_be_in_section());
            at = presence.next.get();
        }
    }

    fn behind_the_gate(&self, body: impl FnOnce(&mut Inside<M>)) {
        patiently(|| self.gate.swap(true, Ordering::Acquire));
        // SAFETY: the gate lets one in at a time.
        body(unsafe { &mut *self.inside.get() });
        self.gate.store(false, Ordering::Release);
    }
}

impl<M: Member> Inside<M> {
    fn take_out(&mut self, member: &'static M) {
        let next = member.presence().next.take();
        let mut before: Option<&'static M> = None;
        let mut at = self.first;
        while let Some(here) = at.filter(|here| !ptr::eq(*here, member)) {
            (before, at) = (Some(here), here.presence().next.get());
        }
        match before {
            Some(before) => before.presence().next.set(next),
            None => self.first = next,
        }
    }
}

/// Waits while `holds`.
fn patiently(holds: impl Fn() -> bool) {
    let mut looks = 0_u32;
    while holds() {
        looks += 1;
        if looks.is_multiple_of(LOOKS) {
            let_others_run();
        }
        spin_loop();
    }
}
