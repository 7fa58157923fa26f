//! How levels map to the host's classes, for every possible permission.

use kyocho_sys::scheduling::Class;
use proptest::prelude::*;

use super::{NICE_HIGHEST, NICE_LOWEST, Permissions, REAL_TIME_MAX, REAL_TIME_MIN};
use crate::data::priority::Priority;

const ALL: Permissions =
    Permissions { real_time_max: REAL_TIME_MAX, nice: 0, nice_min: -20, nice_max: 19 };

fn any_permissions() -> impl Strategy<Value = Permissions> {
    let real_time = prop_oneof![Just(0), REAL_TIME_MIN..=REAL_TIME_MAX];
    let nices = [NICE_LOWEST..=0, 0..=NICE_HIGHEST, NICE_LOWEST..=NICE_HIGHEST];
    (real_time, nices).prop_map(|(real_time_max, [nice_min, nice_max, nice])| {
        let nice = nice.clamp(nice_min, nice_max);
        Permissions { real_time_max, nice, nice_min, nice_max }
    })
}

/// The host's order: the greater one runs first.
fn weight(permissions: Permissions, level: u8) -> (u8, i32) {
    let attributes = permissions.attributes(level);
    match attributes.class {
        Class::RoundRobin(level) => (level, 0),
        _ => (0, -attributes.nice),
    }
}

proptest! {
    #[test]
    fn a_more_urgent_level_never_stands_for_less(permissions in any_permissions(), level in 1_u8..64) {
        prop_assert!(weight(permissions, level) >= weight(permissions, level - 1));
    }

    #[test]
    fn a_level_stands_for_what_is_permitted(permissions in any_permissions(), level in 0_u8..64) {
        let attributes = permissions.attributes(level);
        prop_assert!((permissions.nice_min..=permissions.nice_max).contains(&attributes.nice));
        match attributes.class {
            Class::RoundRobin(real_time) => {
                // Above the sentinel, below monitor and maker.
                prop_assert!((2..permissions.real_time_max).contains(&real_time));
            }
            other => prop_assert_eq!(other, Class::Normal),
        }
    }

    #[test]
    fn the_normal_level_is_what_the_process_was_started_with(permissions in any_permissions()) {
        let attributes = permissions.attributes(Priority::NORMAL.level());
        prop_assert_eq!((attributes.class, attributes.nice), (Class::Normal, permissions.nice));
    }
}

#[test]
fn with_all_permissions_fixed_levels_map_to_distinct_host_levels() {
    for level in 32..=63 {
        assert_eq!(ALL.attributes(level).class, Class::RoundRobin(level - 30));
    }
    assert_eq!((ALL.attributes(0).nice, ALL.attributes(63).nice), (19, -20));
}
