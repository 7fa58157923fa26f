//! The bias of the short locks: while only one virtual processor is awake, short locks are not
//! taken.
//!
//! Masking events excludes everything else on the same virtual processor, so locks are needed only
//! against other virtual processors. While only one virtual processor of the whole process is
//! awake, a lock is just a load and a branch. The second one to wake *revokes* the bias before it
//! touches anything. The last but one to fall asleep restores it.
//!
//! ```text
//!   awake:  0 ── enter ──► 1 ── enter: revoke, settle ──► 2, 3, …        biased: a section begins with a load
//!                            ◄── leave: restore ─────────                revoked: locks are taken
//! ```
//! To revoke is a store, then a memory barrier in all threads of the process, then a wait for every
//! section that began before. A section sets its mask first and reads the bias afterwards. So after
//! the barrier, either the revoking thread sees the section's mask, or the section sees the store.
//! A thread that enters sections needs no barrier of its own.
//!
//! The sections of a kernel thread outside any runtime cannot be waited for. The first such thread
//! revokes the bias for good.
//!
//! **Invariant:** a member calls [`Bias::enter`] outside any section, and begins none before it
//! returns. A member that leaves begins no section before it enters again.
//!
//! Source: Paper 0 (no atomic instruction if no other thread runs); biased locks, as `tst` has them
//! for one lock.
#![expect(unsafe_code, reason = "a list that is accessed under the gate")]

use core::cell::Cell;
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_sys::prim::hint::spin_loop;

use crate::protocol::pause::let_others_run;

/// How often a wait checks its condition before it lets other threads run.
const LOOKS: u32 = 200;

/// A member of the bias: a virtual processor.
pub(crate) trait Member: Sync + 'static {
    fn presence(&self) -> &Presence<Self>
    where
        Self: Sized;
    /// Whether the member's events are masked, so that it may be in a section that began without
    /// locks.
    fn may_be_in_section(&self) -> bool;
}

/// The state that the bias keeps for one member.
pub(crate) struct Presence<M: 'static> {
    is_inside: AtomicBool,
    /// The next member inside. Guarded by the gate.
    next: Cell<Option<&'static M>>,
}

impl<M> Presence<M> {
    pub(crate) const fn new() -> Self {
        Self { is_inside: AtomicBool::new(false), next: Cell::new(None) }
    }
}

/// The members that are inside. Guarded by the gate.
struct Inside<M: 'static> {
    first: Option<&'static M>,
    count: u32,
    /// A member whose sections cannot be waited for is inside for good.
    forever: bool,
}

/// A bias shared by its members.
pub(crate) struct Bias<M: 'static> {
    revoked: AtomicBool,
    gate: AtomicBool,
    inside: UnsafeCell<Inside<M>>,
}

// SAFETY: `inside` is accessed only with the gate held.
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

    /// Whether sections must take the short locks. Called in a section: the caller may rely on the
    /// answer until its section ends. If no locks are needed, the caller sees everything that other
    /// members did before they left.
    #[inline(always)]
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// `member` enters, outside any section. `barrier` returns once every other thread has passed a
    /// full memory barrier.
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

    /// `member` leaves, outside any section.
    pub(crate) fn leave(&self, member: &'static M) {
        // Before the gate is taken: the thread behind the gate may wait for this member's sections.
        member.presence().is_inside.store(false, Ordering::SeqCst);
        self.behind_the_gate(|inside| {
            inside.take_out(member);
            inside.count -= 1;
            if inside.count == 1 && !inside.forever {
                self.revoked.store(false, Ordering::Release);
            }
        });
    }

    /// A member enters for good; its sections cannot be waited for.
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

    /// Makes all members take locks, and waits for the sections that began without them.
    fn revoke(&self, inside: &Inside<M>, barrier: impl Fn()) {
        self.revoked.store(true, Ordering::SeqCst);
        barrier();
        let mut at = inside.first;
        while let Some(member) = at {
            let presence = member.presence();
            wait_while(|| presence.is_inside.load(Ordering::SeqCst) && member.may_be_in_section());
            at = presence.next.get();
        }
    }

    fn behind_the_gate(&self, body: impl FnOnce(&mut Inside<M>)) {
        wait_while(|| self.gate.swap(true, Ordering::Acquire));
        // SAFETY: the gate admits one thread at a time.
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

/// Waits while `holds` returns `true`.
fn wait_while(holds: impl Fn() -> bool) {
    let mut looks = 0_u32;
    while holds() {
        looks += 1;
        if looks.is_multiple_of(LOOKS) {
            let_others_run();
        }
        spin_loop();
    }
}
