//! Threads never wait if nothing is taken, and never take more than the room. The paces follow each
//! other in order.

use super::{Pace, Plan};
use proptest::prelude::{prop_assert, proptest};

#[test]
fn the_due_bytes_grow_with_the_marked_bytes_and_stay_below_the_room() {
    let plan = Plan::new(800, 160, 1000);
    assert_eq!(plan.due_bytes(0), 0);
    // 160 and an eighth are likely: five eighths of the room.
    assert_eq!(plan.due_bytes(90), 250);
    assert_eq!(plan.due_bytes(180), 500);
    assert_eq!(plan.due_bytes(1000), 700);
    assert_eq!(plan.due_bytes(2000), 700);
}

#[test]
fn paces_follow_each_other_as_more_is_taken() {
    let plan = Plan::new(800, 160, 1000);
    let pace = |taken| plan.pace(taken, 90);
    assert_eq!(
        [pace(0), pace(225), pace(226), pace(250)],
        [Pace::Ahead, Pace::Ahead, Pace::Even, Pace::Even]
    );
    assert_eq!(
        [pace(251), pace(350), pace(351), pace(800), pace(801)],
        [Pace::Behind, Pace::Behind, Pace::HeldUp, Pace::HeldUp, Pace::Exhausted]
    );
}

#[test]
fn the_live_bytes_are_unknown_at_first() {
    let plan = Plan::new(800, 0, 1000);
    assert_eq!(plan.due_bytes(500), 350);
}

#[test]
fn a_number_is_that_of_its_pace() {
    for pace in Pace::ALL {
        assert_eq!(Pace::of_number(pace.number()), pace);
    }
}

proptest! {
    #[test]
    fn more_marked_never_slows_threads_down(
        room in 0..1_usize << 40,
        live in 0..1_usize << 40,
        used in 0..1_usize << 40,
        taken in 0..1_usize << 41,
        marked in 0..1_usize << 41,
        more in 0..1_usize << 40,
    ) {
        let plan = Plan::new(room, live, used);
        prop_assert!(plan.due_bytes(marked + more) >= plan.due_bytes(marked));
        prop_assert!(plan.due_bytes(marked) <= room);
        prop_assert!(plan.pace(taken, marked + more) <= plan.pace(taken, marked));
        prop_assert!(plan.pace(taken, marked) <= plan.pace(taken + more, marked));
        prop_assert!(plan.pace(0, marked) <= Pace::Even);
    }
}
