use super::{Protection, TwoViews};
use crate::error::Errno;
use crate::memory::PAGE_BYTES;

fn word(address: usize) -> *mut u64 {
    core::ptr::with_exposed_provenance_mut(address)
}

#[test]
#[expect(unsafe_code, reason = "reads through one view what the other one wrote")]
fn both_views_show_the_same_pages() {
    let views = TwoViews::new(2 * PAGE_BYTES, None).unwrap();
    views.protect(0, PAGE_BYTES, Protection::ReadWrite).unwrap();
    // SAFETY: mapped, writable, aligned, and not shared.
    unsafe { word(views.program()).write(7) };
    // SAFETY: as above.
    assert_eq!(unsafe { word(views.runtime()).read() }, 7);
    views.unlink(0, PAGE_BYTES).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { word(views.program()).read() }, 7, "the page must keep its contents");
}

#[test]
fn requested_address_is_used_or_refused() {
    let first = TwoViews::new(PAGE_BYTES, None).unwrap();
    let at = first.program();
    let second = TwoViews::new(PAGE_BYTES, Some(at));
    assert_eq!(second.unwrap_err(), Errno::new(libc::EEXIST));
    // Addresses at the upper end of the page table, which the kernel returns only on request.
    let place = 0x0a00_0000_0000;
    assert_eq!(TwoViews::new(PAGE_BYTES, Some(place)).unwrap().program(), place);
}

#[test]
#[should_panic(expected = "the range exceeds the memory")]
fn rights_of_other_memory_do_not_change() {
    let views = TwoViews::new(PAGE_BYTES, None).unwrap();
    let _unreached = views.protect(PAGE_BYTES, PAGE_BYTES, Protection::Read);
}
