//! An entry has one owner, and invalid contents are ignored.

use std::ffi::CString;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::shared_file::SharedFile;

use super::{BYTES, Claim, ENTRIES_MAX, STALE_NS, Table};

/// Two views of a file, as two processes have, after its name was removed.
fn two_views(name: &str) -> (Table, Table) {
    let path = std::env::temp_dir().join(format!("kyocho-table-{}-{name}", std::process::id()));
    let c_path = CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    let open = || Table::new(SharedFile::open(&c_path, BYTES).unwrap());
    let views = (open(), open());
    std::fs::remove_file(path).unwrap();
    views
}

fn seen(table: &Table, own: usize, now_ns: u64) -> Vec<Claim> {
    table.claims(own, now_ns).collect()
}

#[test]
fn an_entry_has_one_owner_until_it_is_released_or_its_owner_is_gone() {
    let (one, another) = two_views("owner");
    assert!(one.claim(3));
    assert!(!another.claim(3));
    one.release(3);
    assert!(another.claim(3));
    drop(another);
    assert!(one.claim(3));
}

#[test]
fn published_levels_are_seen_by_others_while_they_are_fresh() {
    let (one, another) = two_views("seen");
    assert!(one.claim(5));
    one.entry(5).move_to(2);
    one.entry(5).beat(1_000);
    assert_eq!(seen(&another, ENTRIES_MAX, 1_000), []);
    one.entry(5).want(Some(63));
    let claim = Claim { index: 5, level: 63, cpu: 2 };
    assert_eq!(seen(&another, ENTRIES_MAX, 1_000 + STALE_NS), [claim]);
    assert_eq!(seen(&another, ENTRIES_MAX, 1_001 + STALE_NS), []);
    assert_eq!(seen(&another, 5, 1_000), []);
    one.entry(5).want(None);
    assert_eq!(seen(&another, ENTRIES_MAX, 1_000), []);
}

#[test]
fn invalid_entries_are_ignored() {
    let (one, _) = two_views("nonsense");
    assert!(one.claim(0));
    one.used().store(u32::MAX, Ordering::Relaxed);
    one.entry(0).beat(1_000);
    for wanted in [65, 0x100, u32::MAX] {
        one.entry(0).wanted.store(wanted, Ordering::Relaxed);
        assert_eq!(seen(&one, ENTRIES_MAX, 1_000), []);
    }
    one.entry(0).want(Some(1));
    assert_eq!(seen(&one, ENTRIES_MAX, 1_000).len(), 1);
    // A beat in the future is invalid.
    one.entry(0).beat(u64::MAX);
    assert_eq!(seen(&one, ENTRIES_MAX, 1_000), []);
}

#[test]
fn more_urgent_sleepers_are_woken() {
    let (one, another) = two_views("rouse");
    for (index, level) in [(0, 10), (1, 20), (2, 30)] {
        assert!(one.claim(index));
        one.entry(index).move_to(usize::from(index == 1));
        one.entry(index).want(Some(level));
        one.entry(index).yielded.store(1, Ordering::Relaxed);
    }
    another.rouse_above(0, Some(10));
    let yielded = |index| one.entry(index).yielded.load(Ordering::Relaxed);
    assert_eq!([yielded(0), yielded(1), yielded(2)], [1, 1, 0]);
    another.rouse_above(0, None);
    assert_eq!([yielded(0), yielded(1), yielded(2)], [0, 1, 0]);
}
