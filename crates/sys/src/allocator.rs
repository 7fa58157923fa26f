//! When the C library's allocator returns freed memory to the host.
#![expect(unsafe_code, reason = "a call of the C library")]

/// Blocks of at least this size are mappings of their own.
const LARGE_BYTES: i32 = 256 * 1024;

/// From now on, freed large blocks are returned to the host at once.
///
/// By default, glibc raises its threshold to the size of the largest freed block, up to 32 MiB
/// (mallopt(3), `M_MMAP_THRESHOLD`). Blocks below the threshold come from its arenas, and each
/// arena keeps twice the threshold of free memory. A process whose kernel threads come and go has
/// up to eight arenas for each processor: 300 MiB and more of unused memory if the largest block
/// was 32 MiB. The price is two system calls for each large block.
///
/// Call it while the process has one thread.
pub fn give_back_large_blocks() {
    // SAFETY: takes numbers; the process has one thread, so no other one allocates.
    let is_taken = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
    // The call accepts thresholds up to 32 MiB. If it refused, nothing would change.
    let _costs_memory_at_most = is_taken;
}
