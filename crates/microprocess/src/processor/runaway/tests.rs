//! When a killed loop is abandoned.

use super::{SAME_DEPTH_MAX, SameDepth, code_of};

fn after(interruptions: impl IntoIterator<Item = (usize, bool)>) -> SameDepth {
    interruptions
        .into_iter()
        .fold(SameDepth::NONE, |same_depth, (sp, inside)| same_depth.after(sp, inside))
}

#[test]
fn loop_at_the_same_depth_is_abandoned() {
    let times = SAME_DEPTH_MAX as usize;
    assert!(!after((1..times).map(|_| (64, true))).is_enough());
    assert!(after((0..times).map(|_| (64, true))).is_enough());
}

#[test]
fn library_code_or_another_depth_restarts_the_count() {
    let times = SAME_DEPTH_MAX as usize;
    let interruption = |at: usize| if at == times / 2 { (64, false) } else { (64, true) };
    assert!(!after((0..=times).map(interruption)).is_enough());
    assert!(!after((0..2 * times).map(|at| (64 + at % 2 * 16, true))).is_enough());
}

#[test]
fn the_code_of_the_program_is_found_among_mappings() {
    let maps = "1000-2000 r--p 00000000 00:00 1 /bin/a b\n2000-5000 r-xp 00001000 00:00 1 /bin/a b\n\
                7000-9000 r-xp 00000000 00:00 2 /lib/c\n";
    assert_eq!(code_of(maps, "/bin/a b"), Some(0x2000..0x5000));
    assert_eq!(code_of(maps, "/bin/x"), None);
    assert_eq!(code_of("nonsense", "/bin/a"), None);
}
