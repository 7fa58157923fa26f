//! Large blocks are returned to the host, whatever was freed before. A program of its own, because
//! setting and count belong to the process.

use core::hint::black_box;

const LARGE_BYTES: usize = 8 << 20;

/// Number of blocks that are mappings of their own.
#[expect(unsafe_code, reason = "a call of the C library")]
fn mapped() -> usize {
    // SAFETY: takes nothing, and returns numbers.
    unsafe { libc::mallinfo2() }.hblks
}

#[test]
fn a_large_block_is_a_mapping_of_its_own_also_after_one_was_freed() {
    kyocho_sys::allocator::give_back_large_blocks();
    for _ in 0..3 {
        let before = mapped();
        let block = black_box(vec![1u8; LARGE_BYTES]);
        assert_eq!(mapped(), before + 1);
        drop(block);
        assert_eq!(mapped(), before);
    }
}
