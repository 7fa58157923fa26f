//! Which words of a view mean that the thread sleeps, and where.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::atomic::unmodelled::AtomicU64;

use super::{ASLEEP, Asleep, CHANGE, RUNNING, View, WAITING, WORDS};

/// The stack pointer of every thread in these tests.
const STACK: u64 = 0x7ff0;

/// A view in this state, with this program counter.
fn view(moment: i32, pc: u64) -> View {
    let words: &'static [AtomicU64; WORDS] = Box::leak(Box::default());
    words[0].store(moment as u64, Ordering::Relaxed);
    words[2].store(pc, Ordering::Relaxed);
    words[5].store(STACK, Ordering::Relaxed);
    View(words)
}

#[test]
fn sleeping_is_distinguished_from_running_and_runnable() {
    let asleep = view(7 * CHANGE + ASLEEP, 0x1000).asleep();
    assert_eq!(asleep, Some(Asleep { sp: STACK as usize, pc: 0x1000 }));
    for state in [RUNNING, WAITING] {
        assert_eq!(view(7 * CHANGE + state, 0x1000).asleep(), None);
    }
}

#[test]
fn sleeper_with_events_masked_is_not_seen() {
    assert_eq!(view(ASLEEP, 0).asleep(), None);
}

#[test]
fn only_a_running_thread_is_on_a_cpu() {
    assert!(view(3 * CHANGE + RUNNING, 0).is_on_cpu());
    assert!(!view(3 * CHANGE + WAITING, 0).is_on_cpu());
    assert!(!view(3 * CHANGE + ASLEEP, 0).is_on_cpu());
}

#[test]
fn view_of_an_ended_thread_is_ignored() {
    let view = view(ASLEEP, 0x1000);
    assert!(!view.is_known());
    view.belong_to(0x2000);
    assert!(view.is_known());
}
