//! How levels map to the host's classes, for every possible permission.

use kyocho_sys::scheduling::Class;
use proptest::prelude::*;

use super::{Means, NICE_HIGHEST, NICE_LOWEST, REAL_TIME_MAX, REAL_TIME_MIN};
use crate::data::priority::Priority;

const ALL: Means = Means { real_time_max: REAL_TIME_MAX, nice: 0, nice_min: -20, nice_max: 19 };

fn any_means() -> impl Strategy<Value = Means> {
    let real_time = prop_oneof![Just(0), REAL_TIME_MIN..=REAL_TIME_MAX];
    let nices = [NICE_LOWEST..=0, 0..=NICE_HIGHEST, NICE_LOWEST..=NICE_HIGHEST];
    (real_time, nices).prop_map(|(real_time_max, [nice_min, nice_max, nice])| {
        let nice = nice.clamp(nice_min, nice_max);
        Means { real_time_max, nice, nice_min, nice_max }
    })
}

/// The host's order: the greater one runs first.
fn weight(means: Means, level: u8) -> (u8, i32) {
    let attributes = means.attributes(level);
    match attributes.class {
        Class::RoundRobin(level) => (level, 0),
        _ => (0, -attributes.nice),
    }
}

proptest! {
    #[test]
    fn a_more_urgent_level_never_stands_for_less(means in any_means(), level in 1_u8..64) {
        prop_assert!(weight(means, level) >= weight(means, level - 1));
    }

    #[test]
    fn a_level_stands_for_what_is_permitted(means in any_means(), level in 0_u8..64) {
        let attributes = means.attributes(level);
        prop_assert!((means.nice_min..=means.nice_max).contains(&attributes.nice));
        match attributes.class {
            Class::RoundRobin(real_time) => {
                // Above the sentinel, below monitor and maker.
                prop_assert!((2..means.real_time_max).contains(&real_time));
            }
            other => prop_assert_eq!(other, Class::Normal),
        }
    }

    #[test]
    fn the_normal_level_is_what_the_process_was_started_with(means in any_means()) {
        let attributes = means.attributes(Priority::NORMAL.level());
        prop_assert_eq!((attributes.class, attributes.nice), (Class::Normal, means.nice));
    }
}

#[test]
fn with_all_permissions_fixed_levels_map_to_distinct_host_levels() {
    for level in 32..=63 {
        assert_eq!(ALL.attributes(level).class, Class::RoundRobin(level - 30));
    }
    assert_eq!((ALL.attributes(0).nice, ALL.attributes(63).nice), (19, -20));
}
