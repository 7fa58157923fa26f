//! Detecting writes on a host that refuses mappings: asking the kernel needs only one.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "support/memory.rs"]
mod memory;

use kyocho_dsm::PageId;
use kyocho_dsm::watch::Detection;
use kyocho_sys::error::Errno;
use kyocho_sys::fault::{Call, Injection, Kinds};
use memory::Memory;

#[test]
fn without_room_for_mappings_writes_are_reported_all_the_same() {
    let name = "without_room_for_mappings_writes_are_reported_all_the_same";
    let refused = (1..).take_while(|nth| {
        let Some(memory) = Memory::new(name, Detection::Scan) else { return false };
        let refusal = Injection::new(Kinds::Only(Call::Mprotect), *nth, Errno::NOMEM);
        for page in [1, 3, 5] {
            memory.read(page, 0);
        }
        (0..400).for_each(|_| assert_eq!(memory.written(), [] as [u64; 0]));
        for round in 0..3 {
            memory.watch(|watch| watch.open(&[PageId(1)]).unwrap());
            memory.write(1, 0, round);
            memory.write(3, 0, round);
            memory.write(8, 0, round);
            assert_eq!(memory.written(), [3, 8], "refusal {nth}, round {round}");
            memory.watch(|watch| watch.show(&[PageId(1)]).unwrap());
            memory.write(1, 0, round + 10);
            assert_eq!(memory.written(), [1]);
            memory.watch(|watch| watch.hide(&[PageId(8)]).unwrap());
        }
        assert_eq!((memory.read(1, 0), memory.read(3, 0), memory.read(8, 0)), (12, 2, 108));
        refusal.fired()
    });
    let refused = refused.count();
    if Memory::new(name, Detection::Scan).is_some() {
        assert!(refused > 10, "the kernel was asked, then writes were traps: {refused} refusals");
    }
}
