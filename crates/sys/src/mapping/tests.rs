//! Ownership of a range.
#![expect(unsafe_code, reason = "touches mapped bytes")]

use core::ptr;

use super::Mapping;
use crate::memory::PAGE_BYTES;

#[test]
fn discarded_pages_read_as_zero_and_others_keep_their_bytes() {
    let mapping = Mapping::reserve(2 * PAGE_BYTES).unwrap();
    assert_eq!(mapping.bytes(), 2 * PAGE_BYTES);
    let bytes: [*mut u8; 2] =
        [0, PAGE_BYTES].map(|offset| ptr::with_exposed_provenance_mut(mapping.base() + offset));
    // SAFETY: inside the mapping, which the test owns; also below.
    bytes.iter().for_each(|&byte| unsafe { byte.write_volatile(7) });
    mapping.discard(0, PAGE_BYTES).unwrap();
    // SAFETY: as above.
    assert_eq!(bytes.map(|byte| unsafe { byte.read_volatile() }), [0, 7]);
}

#[test]
#[should_panic(expected = "the range exceeds the mapping")]
fn a_range_beyond_the_mapping_is_refused() {
    let mapping = Mapping::reserve(PAGE_BYTES).unwrap();
    mapping.discard(PAGE_BYTES, 1).unwrap();
}
