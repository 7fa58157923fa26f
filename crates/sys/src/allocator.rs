//! What the C library's allocator does with memory that is free again.
#![expect(unsafe_code, reason = "a call of the C library")]

/// Blocks of so many bytes and more are mappings of their own.
const LARGE_BYTES: i32 = 256 * 1024;

/// Has large blocks given back to the host as soon as they are freed, from now on.
///
/// Left to itself, glibc takes the largest block that was freed, up to 32 MiB, for usual (mallopt(3), `M_MMAP_THRESHOLD`): blocks of that size
/// come from its arenas then, and each arena keeps twice as much that is free. A process whose kernel threads come and go has up to eight arenas a
/// processor: 300 MiB and more that nobody uses, where the largest block is 32 MiB. Costs two system calls for each large block.
///
/// To be called while the process has one thread.
pub fn give_back_large_blocks() {
    // SAFETY: takes numbers; nobody else allocates, by the contract.
    let is_taken = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
    // It takes thresholds up to 32 MiB; refused, all is as it was.
    let _costs_memory_at_most = is_taken;
}
