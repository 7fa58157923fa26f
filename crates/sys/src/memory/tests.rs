//! Reservations, guards, and returning memory.
#![expect(unsafe_code, reason = "touches mapped bytes")]

use core::ptr::NonNull;
use std::fs;

use super::{
    Guard, PAGE_BYTES, discard, guard_page, markers_supported, populate, readable, release,
    reserve, unguard_page,
};
use crate::error::Errno;
use crate::skip::skip;

/// The start of page `n` of a reservation.
fn page(base: NonNull<u8>, n: usize) -> NonNull<u8> {
    // SAFETY: the tests below stay inside their reservation.
    unsafe { base.add(n * PAGE_BYTES) }
}

fn byte(at: NonNull<u8>) -> u8 {
    // SAFETY: as above; nothing else uses the memory.
    unsafe { at.as_ptr().read_volatile() }
}

fn set_byte(at: NonNull<u8>, value: u8) {
    // SAFETY: as above.
    unsafe { at.as_ptr().write_volatile(value) };
}

/// Number of mappings of this process that start in a range.
fn mappings_within(base: NonNull<u8>, bytes: usize) -> usize {
    let range = base.as_ptr() as usize..base.as_ptr() as usize + bytes;
    let starts = |line: &str| usize::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| range.contains(&starts(line))).count()
}

#[test]
fn too_large_a_reservation_is_an_error() {
    assert_eq!(reserve(usize::MAX - 10).err(), Some(Errno::NOMEM));
    assert_eq!(reserve(1 << 60).err(), Some(Errno::NOMEM));
    assert_eq!(reserve(0).err(), Some(Errno::INVAL));
}

#[test]
fn discarded_pages_read_as_zero_and_others_keep_their_bytes() {
    let base = reserve(2 * PAGE_BYTES).unwrap();
    assert_eq!((byte(base), byte(page(base, 1))), (0, 0));
    set_byte(base, 1);
    set_byte(page(base, 1), 2);
    // SAFETY: the test does not need the first page any more.
    unsafe { discard(base, PAGE_BYTES) }.unwrap();
    assert_eq!((byte(base), byte(page(base, 1))), (0, 2));
    // SAFETY: the test is done with the memory.
    unsafe { release(base, 2 * PAGE_BYTES) };
}

#[test]
fn markers_forbid_access_without_splitting_the_mapping() {
    const PAGES: usize = 64;
    if !markers_supported() {
        skip("markers_forbid_access", "this kernel has no MADV_GUARD_INSTALL (Linux 6.13)");
        return;
    }
    let base = reserve(PAGES * PAGE_BYTES).unwrap();
    let before = mappings_within(base, PAGES * PAGE_BYTES);
    for n in (0..PAGES).step_by(2) {
        // SAFETY: nothing uses these pages.
        assert_eq!(unsafe { guard_page(page(base, n)) }, Ok(Guard::Marker));
    }
    assert!(!readable(base) && readable(page(base, 1)));
    assert_eq!(mappings_within(base, PAGES * PAGE_BYTES), before);
    // SAFETY: the test is done with the guard.
    unsafe { unguard_page(base) }.unwrap();
    assert!(readable(base));
    // SAFETY: the test is done with the memory.
    unsafe { release(base, PAGES * PAGE_BYTES) };
}

#[test]
fn populated_memory_stays_usable_and_released_memory_is_gone() {
    // Another test may map memory there at once, so this is repeated until none does.
    let is_gone = (0..100).any(|_| {
        let base = reserve(4 * PAGE_BYTES).unwrap();
        // SAFETY: reserved above.
        unsafe { populate(base, 2 * PAGE_BYTES) }.unwrap();
        set_byte(base, 9);
        assert_eq!(byte(base), 9);
        // SAFETY: not used any more.
        unsafe { release(base, 4 * PAGE_BYTES) };
        mappings_within(base, 4 * PAGE_BYTES) == 0
    });
    assert!(is_gone);
}
