#![expect(unsafe_code, reason = "touches pages")]

use super::{Admission, Userfault, Writes};
use crate::memory::PAGE_BYTES;
use crate::pagemap::PageMap;
use crate::skip::skip;
use crate::two_views::{Protection, TwoViews};

fn word(address: usize) -> *mut u64 {
    core::ptr::with_exposed_provenance_mut(address)
}

#[test]
fn written_pages_are_reported_without_a_signal() {
    let views = TwoViews::new(4 * PAGE_BYTES, None).unwrap();
    let base = views.program();
    let faults = match Userfault::of(base, views.bytes(), Writes::Pass) {
        Ok(faults) => faults,
        Err(errno) => {
            return skip("written_pages_are_reported_without_a_signal", &errno.to_string());
        }
    };
    views.protect(0, views.bytes(), Protection::ReadWrite).unwrap();
    for page in 0..4 {
        // SAFETY: mapped, writable, aligned, and not shared; creates the page.
        unsafe { word(views.runtime() + page * PAGE_BYTES).write(0) };
    }
    faults.admit(base, views.bytes(), Admission::WriteProtected).unwrap();
    let map = PageMap::open().unwrap();
    let mut written = Vec::new();
    map.take_written(base, views.bytes(), |start, bytes| written.push((start, bytes))).unwrap();
    assert_eq!(written, []);
    for page in [0, 2, 3] {
        // SAFETY: as above.
        unsafe { word(base + page * PAGE_BYTES + 8).write(1) };
    }
    let expected = [(base, PAGE_BYTES), (base + 2 * PAGE_BYTES, 2 * PAGE_BYTES)];
    for _ in 0..2 {
        // Looking for written pages changes nothing.
        written.clear();
        map.look_for_written(base, views.bytes(), |start, bytes| written.push((start, bytes)))
            .unwrap();
        assert_eq!(written, expected);
    }
    written.clear();
    map.take_written(base, views.bytes(), |start, bytes| written.push((start, bytes))).unwrap();
    assert_eq!(written, expected);
    // A reported page is clean again, and reported again after another write.
    written.clear();
    map.take_written(base, views.bytes(), |start, bytes| written.push((start, bytes))).unwrap();
    assert_eq!(written, []);
    // SAFETY: as above.
    unsafe { word(base + 8).write(2) };
    // Pages that are in the page table already do not change.
    faults.admit(base, views.bytes(), Admission::WriteProtected).unwrap();
    map.take_written(base, views.bytes(), |start, bytes| written.push((start, bytes))).unwrap();
    assert_eq!(written, [(base, PAGE_BYTES)]);
    // SAFETY: as above.
    unsafe { word(base + 8).write(3) };
    faults.write_protect(base, views.bytes(), Admission::WriteProtected).unwrap();
    written.clear();
    map.take_written(base, views.bytes(), |start, bytes| written.push((start, bytes))).unwrap();
    assert_eq!(written, []);
}

#[test]
fn pages_that_do_not_exist_cannot_be_admitted() {
    let views = TwoViews::new(PAGE_BYTES, None).unwrap();
    let faults = match Userfault::of(views.program(), PAGE_BYTES, Writes::Stop) {
        Ok(faults) => faults,
        Err(errno) => {
            return skip("pages_that_do_not_exist_cannot_be_admitted", &errno.to_string());
        }
    };
    let answer = faults.admit(views.program(), PAGE_BYTES, Admission::ReadWrite);
    assert_eq!(answer, Err(crate::error::Errno::FAULT));
}
