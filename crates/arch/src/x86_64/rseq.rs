//! Linux's restartable sequences for x86-64, one CPU each: see `rseq.rs` of the crate for the
//! rules.
//!
//! ```text
//!   entry:   rseq_cs of this thread = descriptor   the kernel now knows start, post-commit, abort
//!   start:   this thread runs on r10's CPU?  ── no ──►  refused
//!            the operation           as in `restartable.rs`; its last instruction commits
//!   post-commit: return              rseq_cs stays: the kernel ignores it once the PC has left
//!   abort:   go to entry             after the signature; the kernel jumps here
//! ```
//!
//! **Invariant:** `start` is the address after the store to `rseq_cs`. If an instruction lay
//! between, a signal there could leave the descriptor of the handler's sequence behind, and this
//! sequence could not be aborted.
#![expect(unsafe_code, reason = "this is the assembly")]

#[cfg(feature = "mutants")]
pub(crate) mod mutants;

use core::arch::{asm, global_asm};

use super::restartable::{body, call, holder_methods};
use crate::cpu::{Cpu, Sequence};
use crate::restartable::{Holder, Outcome};

// SAFETY: each sequence compares `cpu_id` with the CPU between `start` and post-commit, where the
// kernel aborts it when the thread leaves the CPU or takes a signal.
unsafe impl Holder for Cpu {
    const NAME: &'static str = "rseq";

    holder_methods! {
        |cpu: Self| cpu.number() as usize,
        test_and_set = kyocho_rseq_test_and_set,
        compare_and_swap = kyocho_rseq_compare_and_swap,
        fetch_add = kyocho_rseq_fetch_add,
        push = kyocho_rseq_push,
        pop = kyocho_rseq_pop,
        enqueue = kyocho_rseq_enqueue,
        dequeue = kyocho_rseq_dequeue,
    }
}

unsafe extern "C" {
    static kyocho_rseq_table: Sequence;
    static kyocho_rseq_table_end: Sequence;
}

/// The sequences, for tests that interrupt them.
pub(crate) fn sequences() -> &'static [Sequence] {
    let table = [&raw const kyocho_rseq_table, &raw const kyocho_rseq_table_end];
    // SAFETY: the assembler laid out the table between its labels.
    unsafe { rows(table) }
}

/// The rows between two labels.
///
/// # Safety
/// The table lies between the two addresses, constant for the life of the program.
unsafe fn rows([table, end]: [*const Sequence; 2]) -> &'static [Sequence] {
    let count = (end as usize - table as usize) / size_of::<Sequence>();
    // SAFETY: guaranteed by the caller.
    unsafe { core::slice::from_raw_parts(table, count) }
}

/// Offset of the C library's area from the thread pointer, and its size in bytes: 0 if it has
/// registered none. `None` if the C library does not support rseq.
pub(crate) fn library_area() -> Option<(isize, u32)> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: loads two addresses, null if the symbols are not defined.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {1}, qword ptr [rip + __rseq_size@GOTPCREL]",
            out(reg) offset, out(reg) size, options(nostack, preserves_flags, readonly),
        );
    }
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: the C library defines it, a constant once the program runs; also below.
    let offset = unsafe { *offset };
    // SAFETY: as above.
    Some((offset, unsafe { *size }))
}

/// Offset of this crate's area from the thread pointer.
pub(crate) fn own_area() -> isize {
    let offset: isize;
    // SAFETY: loads a constant of the process.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_rseq_area@GOTTPOFF]",
            out(reg) offset, options(nostack, preserves_flags, readonly),
        );
    }
    offset
}

/// The address of this thread's area at an offset.
pub(crate) fn area_at(offset: isize) -> *mut u8 {
    let area: *mut u8;
    // SAFETY: the first word at the thread pointer is the thread pointer itself.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            out(reg) area, options(nostack, preserves_flags, readonly),
        );
    }
    area.wrapping_offset(offset)
}

/// Makes the sequences use the areas at this offset. Before that, they use this crate's area and
/// refuse.
///
/// # Safety
/// Every thread has an rseq area there.
pub(crate) unsafe fn set_area_offset(offset: isize) {
    // SAFETY: an aligned static word; the caller guarantees that areas are there.
    unsafe {
        asm!(
            "mov qword ptr [rip + kyocho_rseq_offset], {0}",
            in(reg) offset, options(nostack, preserves_flags),
        );
    }
}

/// `cpu_id` of this thread's area: negative if the kernel does not maintain it.
#[inline(always)]
pub(crate) fn cpu_id() -> i32 {
    let cpu: i32;
    // SAFETY: reads one word of this thread's area.
    unsafe {
        asm!(
            "mov {0:r}, qword ptr [rip + kyocho_rseq_offset]",
            "mov {0:e}, dword ptr fs:[{0:r} + 4]",
            out(reg) cpu, options(nostack, preserves_flags, readonly),
        );
    }
    cpu
}

// This crate's area (`struct rseq`: cpu_id_start, cpu_id = uninitialised, rseq_cs, flags, node_id,
// mm_cid), in static TLS, in case the C library has none; and the offset in use, at first that of
// this crate's area.
global_asm!(
    ".weak __rseq_offset",
    ".weak __rseq_size",
    ".pushsection .tdata.kyocho_rseq_area,\"awT\",@progbits",
    ".balign 32",
    ".globl kyocho_rseq_area",
    ".hidden kyocho_rseq_area",
    ".type kyocho_rseq_area, @object",
    ".size kyocho_rseq_area, 32",
    "kyocho_rseq_area:",
    ".long 0, -1",
    ".quad 0, 0, 0",
    ".popsection",
    ".pushsection .data.kyocho_rseq_offset,\"aw\",@progbits",
    ".balign 8",
    ".globl kyocho_rseq_offset",
    ".hidden kyocho_rseq_offset",
    ".type kyocho_rseq_offset, @object",
    ".size kyocho_rseq_offset, 8",
    "kyocho_rseq_offset:",
    ".quad 0",
    ".popsection",
    // Runs before `main`, because linkers for shared objects do not accept the distance as a
    // constant.
    ".pushsection .text.kyocho_rseq,\"ax\",@progbits",
    "kyocho_rseq_begin:",
    "mov rax, qword ptr [rip + kyocho_rseq_area@GOTTPOFF]",
    "mov qword ptr [rip + kyocho_rseq_offset], rax",
    "ret",
    ".popsection",
    ".pushsection .init_array,\"aw\",@init_array",
    ".balign 8",
    ".quad kyocho_rseq_begin",
    ".popsection",
);

// A sequence NAME has its descriptor (`struct rseq_cs`) in `.Lcs_NAME`, which `__rseq_cs_ptr_array`
// makes known to debuggers and checkpointers, and a row (entry, start, post-commit, abort) in this
// crate's table.
global_asm!(
    ".macro kyocho_rseq_sequence name",
    ".balign 16",
    ".globl kyocho_rseq_\\name",
    ".hidden kyocho_rseq_\\name",
    ".type kyocho_rseq_\\name, @function",
    "kyocho_rseq_\\name:",
    ".cfi_startproc",
    "mov r8, qword ptr [rip + kyocho_rseq_offset]",
    "lea rax, [rip + .Lcs_\\name]",
    "mov qword ptr fs:[r8 + 8], rax",
    ".Lstart_\\name:",
    "cmp dword ptr fs:[r8 + 4], r10d",
    "jne 9f",
    ".endm",
    // Reached after the commit; a sequence without anything to do jumps to 8.
    ".macro kyocho_rseq_committed name",
    ".Lpost_\\name:",
    "8:",
    "xor ecx, ecx",
    "ret",
    "9:",
    "mov ecx, 1",
    "ret",
    ".byte 0x0f, 0xb9, 0x3d", // ud1: a jump here traps instead of running data
    ".long 0x53053053",       // the signature
    ".Labort_\\name:",
    "jmp kyocho_rseq_\\name",
    ".cfi_endproc",
    ".size kyocho_rseq_\\name, . - kyocho_rseq_\\name",
    ".pushsection __rseq_cs,\"aw\",@progbits",
    ".balign 32",
    ".Lcs_\\name:",
    ".long 0, 0",
    ".quad .Lstart_\\name, .Lpost_\\name - .Lstart_\\name, .Labort_\\name",
    ".popsection",
    ".pushsection __rseq_cs_ptr_array,\"awR\",@progbits",
    ".quad .Lcs_\\name",
    ".popsection",
    ".pushsection .data.rel.ro.kyocho_rseq,\"aw\",@progbits",
    ".quad kyocho_rseq_\\name, .Lstart_\\name, .Lpost_\\name, .Labort_\\name",
    ".popsection",
    ".endm",
    ".pushsection .data.rel.ro.kyocho_rseq,\"aw\",@progbits",
    ".balign 8",
    ".globl kyocho_rseq_table",
    ".hidden kyocho_rseq_table",
    "kyocho_rseq_table:",
    ".popsection",
    ".pushsection .text.kyocho_rseq,\"ax\",@progbits",
    "kyocho_rseq_sequence test_and_set",
    body!(test_and_set),
    "kyocho_rseq_committed test_and_set",
    "kyocho_rseq_sequence compare_and_swap",
    body!(compare_and_swap),
    "kyocho_rseq_committed compare_and_swap",
    "kyocho_rseq_sequence fetch_add",
    body!(fetch_add),
    "kyocho_rseq_committed fetch_add",
    "kyocho_rseq_sequence push",
    body!(push),
    "kyocho_rseq_committed push",
    "kyocho_rseq_sequence pop",
    body!(pop),
    "kyocho_rseq_committed pop",
    "kyocho_rseq_sequence enqueue",
    body!(enqueue),
    "kyocho_rseq_committed enqueue",
    "kyocho_rseq_sequence dequeue",
    body!(dequeue),
    "kyocho_rseq_committed dequeue",
    ".popsection",
    ".pushsection .data.rel.ro.kyocho_rseq,\"aw\",@progbits",
    ".globl kyocho_rseq_table_end",
    ".hidden kyocho_rseq_table_end",
    "kyocho_rseq_table_end:",
    ".popsection",
);
